package gate_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mooring-k8s/mooring/internal/gate"
)

// api answers as GitHub's REST API is documented to, and as Gitea's source does:
// only the fields that are read, and some others around them.
type api struct {
	answers map[string]string // by path and query
	asked   []string
}

const (
	repoAnswer   = `{"id":1,"full_name":"team/storage","private":true,"fork":false,"default_branch":"main","permissions":{"pull":true}}`
	githubBranch = `{"name":"%s","commit":{"sha":"%s","node_id":"x","commit":{"message":"m"}},"_links":{"self":"x"},"protected":%v,"protection":{"enabled":true},"protection_url":"x"}`
	giteaBranch  = `{"name":"%s","commit":{"id":"%s","message":"m"},"protected":%v,"required_approvals":1,"user_can_push":false,"effective_branch_protection_name":""}`
)

func contents(text string) string {
	encoded := base64.StdEncoding.EncodeToString([]byte(text))
	if len(encoded) > 8 {
		encoded = encoded[:8] + `\n` + encoded[8:] // GitHub breaks lines
	}
	return fmt.Sprintf(`{"type":"file","encoding":"base64","size":%d,"name":"owners","path":".mooring/owners","content":"%s","sha":"x"}`, len(text), encoded)
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.asked = append(a.asked, r.Method+" "+r.URL.RequestURI())
	if r.Header.Get("Authorization") != "Bearer job-token" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	answer, ok := a.answers[r.URL.RequestURI()]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"message":"Not Found","documentation_url":"x","status":"404"}`)
		return
	}
	var status int
	if n, _ := fmt.Sscanf(answer, "status %d", &status); n == 1 {
		w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		w.WriteHeader(status)
		return
	}
	fmt.Fprint(w, answer)
}

const (
	repoPath   = "/repos/team/storage"
	branchPath = repoPath + "/branches/main"
	ownersPath = repoPath + "/contents/.mooring/owners?ref=" + commit
)

func goodAnswers(branch string) map[string]string {
	return map[string]string{
		repoPath: repoAnswer, branchPath: fmt.Sprintf(branch, "main", commit, true), ownersPath: contents("alice\ncarol\n"),
	}
}

func observe(t *testing.T, kind string, answers map[string]string, change func(*gate.ClientOptions, *gate.Event, *gate.Asked)) (gate.Facts, []byte, *api) {
	t.Helper()
	a := &api{answers: answers}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	options := gate.ClientOptions{Kind: kind, URL: server.URL, Token: "job-token"}
	facts := good()
	facts.Forge = gate.Forge{}
	asked := gate.Asked{Owners: ".mooring/owners"}
	if change != nil {
		change(&options, &facts.Event, &asked)
	}
	client, err := gate.NewClient(options)
	if err != nil {
		t.Fatal(err)
	}
	var policy []byte
	facts.Forge, policy = client.Observe(t.Context(), facts.Event, asked)
	return facts, policy, a
}

// The forges' documented answers open the gate, with as few questions as possible.
func TestForgeAnswers(t *testing.T) {
	for kind, branch := range map[string]string{gate.GitHub: githubBranch, gate.Gitea: giteaBranch, gate.Forgejo: giteaBranch} {
		facts, policy, a := observe(t, kind, goodAnswers(branch), nil)
		if v := gate.Judge(facts); !v.Open() {
			t.Errorf("%s: got %+v", kind, v.Refusals())
		}
		if len(a.asked) != 3 || policy != nil {
			t.Errorf("%s: asked %q", kind, a.asked)
		}
	}
}

func TestForgeRefusals(t *testing.T) {
	type answers = map[string]string
	for _, row := range []struct {
		name   string
		kind   string
		change func(answers)
		reason gate.Reason
		want   string
	}{
		{"not protected", gate.GitHub, func(a answers) {
			a[branchPath] = fmt.Sprintf(githubBranch, "main", commit, false)
			a[repoPath+"/rules/branches/main?per_page=100"] = `[]`
		}, gate.NotProtected, `the forge says that the branch "main" is not protected`},
		{"a ruleset that keeps nothing out", gate.GitHub, func(a answers) {
			a[branchPath] = fmt.Sprintf(githubBranch, "main", commit, false)
			a[repoPath+"/rules/branches/main?per_page=100"] = `[{"type":"commit_message_pattern","ruleset_source_type":"Repository","ruleset_id":1}]`
		}, gate.NotProtected, `the forge says that the branch "main" is not protected`},
		{"rules not told", gate.GitHub, func(a answers) {
			a[branchPath] = fmt.Sprintf(githubBranch, "main", commit, false)
			a[repoPath+"/rules/branches/main?per_page=100"] = `status 403`
		}, gate.ForgeUnknown, `rules/branches/main?per_page=100 was answered with 403 Forbidden`},
		{"Gitea has no rulesets", gate.Gitea, func(a answers) {
			a[branchPath] = fmt.Sprintf(giteaBranch, "main", commit, false)
			a[repoPath+"/rules/branches/main?per_page=100"] = `[{"type":"pull_request"}]`
		}, gate.NotProtected, `the forge says that the branch "main" is not protected`},
		{"protection left out", gate.Gitea, func(a answers) { a[branchPath] = `{"name":"main","commit":{"id":"` + commit + `"}}` },
			gate.ForgeUnknown, `the forge's answer does not say whether the branch is protected`},
		{"another branch described", gate.GitHub, func(a answers) { a[branchPath] = fmt.Sprintf(githubBranch, "other", commit, true) },
			gate.ForgeUnknown, `the forge described the branch "other" instead of "main"`},
		{"moved on", gate.GitHub, func(a answers) {
			a[branchPath] = fmt.Sprintf(githubBranch, "main", newer, true)
			a[repoPath+"/contents/.mooring/owners?ref="+newer] = contents("alice\n")
		}, gate.NotHead, `the branch moved on after the dispatch`},
		{"owner removed there", gate.GitHub, func(a answers) { a[ownersPath] = contents("carol\n") },
			gate.NotOwner, `"alice" is not among the owners`},
		{"fork", gate.GitHub, func(a answers) { a[repoPath] = strings.Replace(repoAnswer, `"fork":false`, `"fork":true`, 1) },
			gate.NotProtected, `team/storage is a fork`},
		{"fork left out", gate.GitHub, func(a answers) { a[repoPath] = strings.Replace(repoAnswer, `"fork":false,`, ``, 1) },
			gate.ForgeUnknown, `does not tell whether the repository is a fork`},
		{"another repository described", gate.GitHub, func(a answers) { a[repoPath] = strings.Replace(repoAnswer, "storage", "other", 1) },
			gate.ForgeUnknown, `the forge described another repository`},
		{"renamed", gate.GitHub, func(a answers) { a[repoPath] = "status 301" }, gate.ForgeUnknown, `301 Moved Permanently; redirects are not followed`},
		{"server error", gate.GitHub, func(a answers) { a[branchPath] = "status 500" }, gate.ForgeUnknown, `500 Internal Server Error`},
		{"not seen", gate.GitHub, func(a answers) { delete(a, repoPath) }, gate.ForgeUnknown, `404 Not Found; it is not there, or the job's token may not see it`},
		{"an error that calls itself a success", gate.GitHub, func(a answers) { a[repoPath] = `{"message":"Bad credentials","status":"401"}` }, gate.ForgeUnknown, `the forge described another repository`},
		{"a branch that is an error", gate.GitHub, func(a answers) { a[branchPath] = `{"message":"Branch not found","protected":true}` }, gate.ForgeUnknown, `the forge described the branch "" instead of "main"`},
		{"protection in words", gate.GitHub, func(a answers) {
			a[branchPath] = strings.Replace(a[branchPath], `"protected":true`, `"protected":"true"`, 1)
		}, gate.ForgeUnknown, `something else than the API's JSON`},
		{"protection null", gate.Gitea, func(a answers) {
			a[branchPath] = strings.Replace(a[branchPath], `"protected":true`, `"protected":null`, 1)
		}, gate.ForgeUnknown, `does not say whether the branch is protected`},
		{"rules null", gate.GitHub, func(a answers) {
			a[branchPath] = fmt.Sprintf(githubBranch, "main", commit, false)
			a[repoPath+"/rules/branches/main?per_page=100"] = `null`
		}, gate.NotProtected, `the forge says that the branch "main" is not protected`},
		{"rules an error", gate.GitHub, func(a answers) {
			a[branchPath] = fmt.Sprintf(githubBranch, "main", commit, false)
			a[repoPath+"/rules/branches/main?per_page=100"] = `{"message":"Not Found"}`
		}, gate.ForgeUnknown, `something else than the API's JSON`},
		{"two answers in one", gate.GitHub, func(a answers) { a[branchPath] += a[branchPath] }, gate.ForgeUnknown, `something else than the API's JSON`},
		{"owners that are no base64", gate.GitHub, func(a answers) {
			a[ownersPath] = `{"type":"file","encoding":"base64","content":"?","size":1}`
		}, gate.NotOwner, `was not answered whole`},
		{"no JSON", gate.GitHub, func(a answers) { a[branchPath] = "<html>sign in</html>" }, gate.ForgeUnknown, `something else than the API's JSON`},
		{"without end", gate.GitHub, func(a answers) { a[branchPath] = strings.Repeat(" ", 3<<20) }, gate.ForgeUnknown, `more than 2097152 bytes`},
		{"owners a directory", gate.GitHub, func(a answers) { a[ownersPath] = `[{"type":"file"}]` }, gate.NotOwner, `something else than the API's JSON`},
		{"owners too large", gate.GitHub, func(a answers) { a[ownersPath] = `{"type":"file","encoding":"none","content":"","size":2000000}` }, gate.NotOwner, `is no file of at most 1 MiB`},
		{"owners cut off", gate.GitHub, func(a answers) { a[ownersPath] = strings.Replace(contents("alice\n"), `"size":6`, `"size":60`, 1) }, gate.NotOwner, `was not answered whole`},
		{"owners a submodule", gate.Gitea, func(a answers) { a[ownersPath] = `{"type":"submodule","encoding":null,"content":null}` }, gate.NotOwner, `is no file of at most 1 MiB`},
	} {
		all := goodAnswers(githubBranch)
		if row.kind == gate.Gitea {
			all = goodAnswers(giteaBranch)
		}
		row.change(all)
		facts, _, _ := observe(t, row.kind, all, nil)
		v := gate.Judge(facts)
		var said []string
		for _, c := range v.Refusals() {
			said = append(said, c.Says)
		}
		if v.Open() || v.Reason() != row.reason || !strings.Contains(strings.Join(said, "\n"), row.want) {
			t.Errorf("%s: got open %v, reason %q, %q; want %q with %q", row.name, v.Open(), v.Reason(), said, row.reason, row.want)
		}
		if strings.Contains(strings.Join(said, "\n"), "job-token") {
			t.Errorf("%s: the token is told: %q", row.name, said)
		}
	}
}

// A ruleset protects a branch on GitHub, where older protection is not set up.
func TestRulesetProtects(t *testing.T) {
	for _, rule := range []string{"pull_request", "update"} {
		answers := goodAnswers(githubBranch)
		answers[branchPath] = fmt.Sprintf(githubBranch, "main", commit, false)
		answers[repoPath+"/rules/branches/main?per_page=100"] = `[{"type":"deletion"},{"type":"` + rule + `","ruleset_source_type":"Organization","ruleset_source":"team","ruleset_id":2}]`
		facts, _, _ := observe(t, gate.GitHub, answers, nil)
		if v := gate.Judge(facts); !v.Open() {
			t.Errorf("%s: got %+v", rule, v.Refusals())
		}
	}
}

// The owners and the policy are those of the default branch, whichever branch the
// run is on; a branch's name with a slash is one element of the path.
func TestOtherBranch(t *testing.T) {
	answers := goodAnswers(githubBranch)
	answers[repoPath+"/branches/release%2F1"] = fmt.Sprintf(githubBranch, "release/1", newer, true)
	answers[repoPath+"/contents/policy.yaml?ref="+commit] = contents("kind: RetainPolicy\n")
	facts, policy, _ := observe(t, gate.GitHub, answers, func(_ *gate.ClientOptions, e *gate.Event, a *gate.Asked) {
		e.Ref, e.Commit, a.Policy = "refs/heads/release/1", newer, "policy.yaml"
	})
	facts.Checkout.Head = newer
	if v := gate.Judge(facts); !v.Open() {
		t.Errorf("got %+v", v.Refusals())
	}
	if string(policy) != "kind: RetainPolicy\n" {
		t.Errorf("policy %q", policy)
	}
	facts, policy, _ = observe(t, gate.GitHub, answers, func(_ *gate.ClientOptions, _ *gate.Event, a *gate.Asked) { a.Policy = "gone.yaml" })
	if v := gate.Judge(facts); v.Open() || policy != nil || v.Reason() != gate.NotOwner {
		t.Errorf("without its policy: %+v", v)
	}
}

// A redirect, to wherever, takes neither the token nor the question with it.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var asked atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		forge := httptest.NewServer(http.RedirectHandler(elsewhere.URL, status))
		facts, _, _ := observe(t, gate.GitHub, nil, func(o *gate.ClientOptions, _ *gate.Event, _ *gate.Asked) { o.URL = forge.URL })
		forge.Close()
		if v := gate.Judge(facts); v.Reason() != gate.ForgeUnknown || !strings.Contains(facts.Forge.Problem, "redirects are not followed") {
			t.Errorf("%d: got %q, %+v", status, v.Reason(), facts.Forge)
		}
	}
	if asked.Load() > 0 {
		t.Errorf("%d question(s) went elsewhere", asked.Load())
	}
}

// A forge that answers a letter at a time, or not at all, does not hold the run up.
func TestSlowForge(t *testing.T) {
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"full`)) // and no more
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(slow.Close)
	facts, _, _ := observe(t, gate.GitHub, nil, func(o *gate.ClientOptions, _ *gate.Event, _ *gate.Asked) {
		o.URL, o.Timeout = slow.URL, 50*time.Millisecond
	})
	if v := gate.Judge(facts); v.Reason() != gate.ForgeUnknown || !strings.Contains(facts.Forge.Problem, "was not answered to the end") {
		t.Errorf("got %q, %+v", v.Reason(), facts.Forge)
	}
}

func TestForgeUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	facts, _, _ := observe(t, gate.GitHub, nil, func(o *gate.ClientOptions, _ *gate.Event, _ *gate.Asked) { o.URL = server.URL })
	v := gate.Judge(facts)
	if v.Reason() != gate.ForgeUnknown || len(v.Refusals()) != 5 {
		t.Errorf("got %q, %+v", v.Reason(), v.Refusals())
	}
	for _, c := range v.Refusals() {
		if strings.Contains(c.Says, server.URL) || !strings.Contains(c.Says, "connection refused") && c.Name != "owner" {
			t.Errorf("got %q", c.Says)
		}
	}
}

func TestWrongToken(t *testing.T) {
	facts, _, _ := observe(t, gate.GitHub, goodAnswers(githubBranch), func(o *gate.ClientOptions, _ *gate.Event, _ *gate.Asked) { o.Token = "other" })
	for _, c := range gate.Judge(facts).Refusals() {
		if c.Name == "protected branch" && strings.Contains(c.Says, "401 Unauthorized; the job's token is not valid") {
			return
		}
	}
	t.Errorf("got %+v", gate.Judge(facts))
}

func TestRepositoryNames(t *testing.T) {
	for _, name := range []string{"", "storage", "team/", "../x", "team/..", "team/a b", "team/storage/branches", "team/x?y"} {
		facts, _, a := observe(t, gate.GitHub, goodAnswers(githubBranch), func(_ *gate.ClientOptions, e *gate.Event, _ *gate.Asked) { e.Repository = name })
		if gate.Judge(facts).Open() || len(a.asked) != 0 || !strings.Contains(facts.Forge.Problem, "expected owner/name") {
			t.Errorf("%q: asked %q, %+v", name, a.asked, facts.Forge)
		}
	}
	for _, file := range []string{"", "/etc/passwd", "../owners", "a/../../b", ".", "a//b", "a\x00b"} {
		facts, _, _ := observe(t, gate.GitHub, goodAnswers(githubBranch), func(_ *gate.ClientOptions, _ *gate.Event, a *gate.Asked) { a.Owners = file })
		if gate.Judge(facts).Open() || !strings.Contains(facts.Forge.OwnersProblem, "expected one inside the repository") {
			t.Errorf("%q: %+v", file, facts.Forge)
		}
	}
}

func TestClientOptions(t *testing.T) {
	for _, row := range []struct {
		options gate.ClientOptions
		want    string
	}{
		{gate.ClientOptions{Kind: "gitlab", URL: "https://x", Token: "t"}, `the forge is "gitlab"; expected github, gitea or forgejo`},
		{gate.ClientOptions{Kind: "github", URL: "", Token: "t"}, "GITHUB_API_URL is no URL of an API; expected one such as https://forge.example.com/api/v1"},
		{gate.ClientOptions{Kind: "github", URL: "https://u:p@x", Token: "t"}, "GITHUB_API_URL is no URL of an API; expected one such as https://forge.example.com/api/v1"},
		{gate.ClientOptions{Kind: "gitea", URL: "http://git.example.com/api/v1", Token: "t"}, "GITHUB_API_URL is http://git.example.com/api/v1; expected https: over http anybody on the way could answer who the owners are"},
		{gate.ClientOptions{Kind: "gitea", URL: "https://git.example.com/api/v1"}, "GITHUB_TOKEN is empty; expected the job's token: pass it in the step's env"},
	} {
		if _, err := gate.NewClient(row.options); err == nil || err.Error() != row.want {
			t.Errorf("%+v: got %v; want %s", row.options, err, row.want)
		}
	}
}
