package gate

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

// The forges whose API is known.
const (
	GitHub  = "github"
	Gitea   = "gitea"
	Forgejo = "forgejo"
)

// maxAnswer is more than any answer that is asked for: a file of 1 MiB in base64.
const maxAnswer = 2 << 20

// Client asks a forge's API. It only reads.
type Client struct {
	kind, base, token string
	http              *http.Client
}

// ClientOptions say which forge is asked, and by what right.
type ClientOptions struct {
	Kind  string // github, gitea or forgejo
	URL   string // of the API: GITHUB_API_URL
	Token string // the job's
	// Timeout of one request; 0 means 30 seconds.
	Timeout time.Duration
}

// NewClient returns a client, or what is wrong with the options.
func NewClient(o ClientOptions) (*Client, error) {
	switch o.Kind {
	case GitHub, Gitea, Forgejo:
	default:
		return nil, fmt.Errorf("the forge is %q; expected %s, %s or %s", o.Kind, GitHub, Gitea, Forgejo)
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("GITHUB_API_URL is no URL of an API; expected one such as https://forge.example.com/api/v1")
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		return nil, fmt.Errorf("GITHUB_API_URL is %s; expected https: over http anybody on the way could answer who the owners are", shown(o.URL))
	}
	if o.Token == "" {
		return nil, errors.New("GITHUB_TOKEN is empty; expected the job's token: pass it in the step's env")
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	return &Client{
		kind: o.Kind, base: strings.TrimSuffix(o.URL, "/"), token: o.Token,
		http: &http.Client{
			Timeout: o.Timeout,
			// A redirect could lead the token elsewhere, and the question to another
			// repository.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// get reads one answer into v.
func (c *Client) get(ctx context.Context, v any, elements ...string) error {
	return c.getPath(ctx, v, pathOf(elements...))
}

// pathOf returns the path of names, of which none is another path.
func pathOf(elements ...string) string {
	escaped := make([]string, len(elements))
	for i, e := range elements {
		escaped[i] = url.PathEscape(e)
	}
	return strings.Join(escaped, "/")
}

func (c *Client) getPath(ctx context.Context, v any, where string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/"+where, nil)
	if err != nil {
		return fmt.Errorf("the forge cannot be asked: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Accept", "application/json")
	if c.kind == GitHub {
		req.Header.Set("Accept", "application/vnd.github+json")
		req.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	}
	answer, err := c.http.Do(req)
	if err != nil {
		var urlError *url.Error
		if errors.As(err, &urlError) {
			err = urlError.Err // without the URL, which the caller names
		}
		return fmt.Errorf("%s cannot be asked: %w", shown(where), err)
	}
	defer func() { _ = answer.Body.Close() }() // was read as far as it is needed
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s was answered with %s%s", shown(where), shown(answer.Status), hint(answer.StatusCode))
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("%s was not answered to the end: %w", shown(where), err)
	}
	if len(data) > maxAnswer {
		return fmt.Errorf("%s was answered with more than %d bytes", shown(where), maxAnswer)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s was answered with something else than the API's JSON", shown(where))
	}
	return nil
}

func hint(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "; the job's token is not valid"
	case http.StatusForbidden:
		return "; the job's token may not read it: give it contents: read"
	case http.StatusNotFound:
		return "; it is not there, or the job's token may not see it"
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return "; redirects are not followed: the repository was renamed or moved"
	}
	return ""
}

// Asked is what a run needs from the default branch.
type Asked struct{ Owners, Policy string }

// Observe asks for everything that the verdict needs. Whatever goes wrong is in
// the facts; the bytes are the policy's, if one is asked for.
func (c *Client) Observe(ctx context.Context, e Event, asked Asked) (Forge, []byte) {
	var f Forge
	owner, name, ok := strings.Cut(e.Repository, "/")
	if !ok || !isElement(owner) || !isElement(name) {
		f.Problem = fmt.Sprintf("GITHUB_REPOSITORY is %q; expected owner/name", e.Repository)
	} else {
		c.observeRepository(ctx, &f, owner, name)
	}
	if f.Problem != "" {
		f.Default.Problem, f.Dispatched.Problem, f.OwnersProblem = f.Problem, f.Problem, f.Problem
		return f, nil
	}
	f.Default = c.branch(ctx, owner, name, f.Default.Name)
	f.Dispatched = f.Default
	if dispatched := branchOf(e.Ref); dispatched != f.Default.Name {
		f.Dispatched = Branch{Problem: "the run is on no branch"}
		if dispatched != "" {
			f.Dispatched = c.branch(ctx, owner, name, dispatched)
		}
	}
	repo := &reader{c, owner, name, f.Default}
	f.OwnersFile = shown(asked.Owners)
	if data, err := repo.file(ctx, asked.Owners); err != nil {
		f.OwnersProblem = err.Error()
	} else if f.Owners, err = ParseOwners(data); err != nil {
		f.OwnersProblem = err.Error()
	}
	if asked.Policy == "" {
		return f, nil
	}
	policy, err := repo.file(ctx, asked.Policy)
	if err != nil {
		// Without its policy a run would be allowed more, not less.
		f.OwnersProblem = strings.TrimPrefix(f.OwnersProblem+"; the policy cannot be read: "+err.Error(), "; ")
	}
	return f, policy
}

// isElement keeps a name from being another path of the API.
func isElement(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsFunc(s, notOfAnAccount)
}

func (c *Client) observeRepository(ctx context.Context, f *Forge, owner, name string) {
	var repository struct {
		FullName      string `json:"full_name"`
		Fork          *bool  `json:"fork"`
		DefaultBranch string `json:"default_branch"`
	}
	if err := c.get(ctx, &repository, "repos", owner, name); err != nil {
		f.Problem = err.Error()
		return
	}
	if !sameAccount(repository.FullName, owner+"/"+name) || repository.DefaultBranch == "" {
		f.Problem = "the forge described another repository than the one that was asked for"
		return
	}
	f.Default.Name = repository.DefaultBranch
	if repository.Fork != nil {
		f.Fork = answer(*repository.Fork)
	}
}

func answer(yes bool) Answer {
	if yes {
		return Yes
	}
	return No
}

// branch asks about one branch. GitHub and Gitea name the commit differently.
func (c *Client) branch(ctx context.Context, owner, repo, name string) Branch {
	b := Branch{Name: name}
	var found struct {
		Name      string `json:"name"`
		Protected *bool  `json:"protected"`
		Commit    struct {
			SHA string `json:"sha"`
			ID  string `json:"id"`
		} `json:"commit"`
	}
	if err := c.get(ctx, &found, "repos", owner, repo, "branches", name); err != nil {
		b.Problem = err.Error()
		return b
	}
	if found.Name != name {
		b.Problem = fmt.Sprintf("the forge described the branch %q instead of %q", found.Name, name)
		return b
	}
	b.Head = found.Commit.SHA
	if b.Head == "" {
		b.Head = found.Commit.ID
	}
	if found.Protected == nil {
		b.Problem = "the forge's answer does not say whether the branch is protected"
		return b
	}
	b.Protected = answer(*found.Protected)
	if b.Protected == No && c.kind == GitHub {
		c.rules(ctx, &b, owner, repo)
	}
	return b
}

// rules asks GitHub for the rules of rulesets, which protect branches beside the
// older branch protection. Only those that keep unreviewed changes out count.
func (c *Client) rules(ctx context.Context, b *Branch, owner, repo string) {
	var rules []struct {
		Type string `json:"type"`
	}
	// The most that one page has: a rule beyond them is not seen, and refuses.
	if err := c.getPath(ctx, &rules, pathOf("repos", owner, repo, "rules", "branches", b.Name)+"?per_page=100"); err != nil {
		b.Protected, b.Problem = Unknown, err.Error()
		return
	}
	for _, rule := range rules {
		if rule.Type == "pull_request" || rule.Type == "update" {
			b.Protected = Yes
		}
	}
}

// reader reads files of one commit through the API.
type reader struct {
	*Client
	owner, repo string
	at          Branch
}

func (r *reader) file(ctx context.Context, name string) ([]byte, error) {
	if !isTreePath(name) {
		return nil, fmt.Errorf("the path %s; expected one inside the repository, such as .mooring/owners", shown(name))
	}
	if r.at.Head == "" {
		return nil, fmt.Errorf("%s: the head of the default branch is not known", shown(name))
	}
	var found struct {
		Type     string `json:"type"`
		Encoding string `json:"encoding"`
		Content  string `json:"content"`
		Size     int    `json:"size"`
	}
	where := pathOf(append([]string{"repos", r.owner, r.repo, "contents"}, strings.Split(name, "/")...)...)
	if err := r.getPath(ctx, &found, where+"?ref="+url.QueryEscape(r.at.Head)); err != nil {
		return nil, err
	}
	if found.Type != "file" || found.Encoding != "base64" {
		return nil, fmt.Errorf("%s on the branch %q is no file of at most 1 MiB", shown(name), r.at.Name)
	}
	data, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(found.Content, "\n", ""))
	if err != nil || len(data) != found.Size {
		return nil, fmt.Errorf("%s on the branch %q was not answered whole", shown(name), r.at.Name)
	}
	return data, nil
}

// isTreePath says whether name is a path as git has it: relative, clean, inside.
func isTreePath(name string) bool {
	return name != "" && name != "." && path.Clean(name) == name && !path.IsAbs(name) &&
		name != ".." && !strings.HasPrefix(name, "../") && !strings.ContainsAny(name, "\x00\\")
}
