package forge_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// gateRun is what a runner would say of one run on Gitea.
type gateRun struct {
	repository, ref, sha, actor, attempt, event, token, api string
}

func (f *forge) gate(c *checkout, r gateRun, args ...string) result {
	c.Helper()
	env := []string{
		"GITHUB_EVENT_NAME=" + r.event, "GITHUB_RUN_ATTEMPT=" + r.attempt, "GITHUB_ACTOR=" + r.actor, "GITHUB_TRIGGERING_ACTOR=",
		"GITHUB_REF=" + r.ref, "GITHUB_SHA=" + r.sha, "GITHUB_REPOSITORY=" + r.repository,
		"GITHUB_API_URL=" + r.api, "GITHUB_TOKEN=" + r.token,
	}
	got := run(c.Context(), c.dir, env, built(c.T, "bin/mooring"), append([]string{"ci", "gate", "--forge", "gitea", "--manifest", "volumes/projects.yaml"}, args...)...)
	for _, token := range append([]string{r.token}, f.tokens["alice"], f.tokens["mallory"]) {
		if strings.Contains(got.text, token) {
			c.Errorf("a token is told:\n%s", got.text)
		}
	}
	return got
}

// situation is a repository whose gate opens, before a row changes one thing.
type situation struct {
	*forge
	c    *checkout
	name string
	run  gateRun
	args []string
}

// on makes the run one of another branch.
func (s *situation) on(branch string) { s.run.ref = "refs/heads/" + branch }

// Every row of the gate's table that a forge decides, asked of a real one.
func TestGitea(t *testing.T) {
	f := newForge(t, "alice", "bob", "mallory")
	for i, row := range []struct {
		name     string
		branches []string
		change   func(*situation)
		code     int
		want     string
	}{
		{"protected", nil, func(*situation) {}, 0, "gate         open"},
		{"another owner", nil, func(s *situation) { s.run.actor = "Bob" }, 0, `"Bob" is an owner`},
		{"protected by a pattern", []string{"release/1"}, func(s *situation) {
			s.protect(s.name, "release/*")
			s.on("release/1")
		}, 0, `the forge says that "release/1" is protected`},
		{"with a policy on the default branch", nil, func(s *situation) { s.args = []string{"--policy", ".mooring/policy.yaml"} }, 0, "gate         open"},
		{"a token that may only read the repository", nil, func(s *situation) { s.run.token = s.token("alice", "read:repository") }, 0, "gate         open"},
		{"not protected", []string{"dev"}, func(s *situation) { s.on("dev") }, 92, `the branch "dev" is not protected`},
		{"a pattern that does not match", []string{"release1"}, func(s *situation) {
			s.protect(s.name, "release/*")
			s.on("release1")
		}, 92, `the branch "release1" is not protected`},
		{"default branch not protected", []string{"release/1"}, func(s *situation) {
			s.protect(s.name, "release/*")
			s.call("alice", http.MethodDelete, "/repos/alice/"+s.name+"/branch_protections/main", nil, nil)
			s.on("release/1")
		}, 92, `the default branch "main", which lists the owners, is not protected`},
		{"pushed after the dispatch", nil, func(s *situation) {
			s.c.git("commit", "-q", "--allow-empty", "-m", "later")
			s.push(s.c, s.name, "main", "main")
			s.c.git("checkout", "-q", "--detach", "HEAD~1")
		}, 93, "the branch moved on after the dispatch"},
		{"owner removed on the protected branch, and still listed on the dispatched one", []string{"release/1"}, func(s *situation) {
			s.protect(s.name, "release/*")
			s.c.write(map[string]string{".mooring/owners": "bob\n"})
			s.c.commit()
			s.push(s.c, s.name, "main", "main")
			s.c.git("checkout", "-q", "--detach", "HEAD~1")
			s.on("release/1")
		}, 91, `"alice" is not among the owners`},
		{"owner listed on the dispatched branch only", []string{}, func(s *situation) {
			s.protect(s.name, "release/*")
			s.c.git("checkout", "-q", "-b", "release/1")
			s.c.write(map[string]string{".mooring/owners": "mallory\n"})
			s.c.commit()
			s.push(s.c, s.name, "release/1", "release/1")
			s.run.actor, s.run.sha = "mallory", s.c.head()
			s.on("release/1")
		}, 91, `"mallory" is not among the owners`},
		{"stranger", nil, func(s *situation) { s.run.actor = "mallory" }, 91, `"mallory" is not among the owners`},
		{"no list of owners", nil, func(s *situation) { s.args = []string{"--owners", "owners"} }, 91, "404 Not Found"},
		{"list of owners is a directory", nil, func(s *situation) { s.args = []string{"--owners", ".mooring"} }, 91, "something else than the API's JSON"},
		{"no policy", nil, func(s *situation) { s.args = []string{"--policy", "policy.yaml"} }, 91, "the policy cannot be read"},
		{"API down", nil, func(s *situation) { s.run.api = "http://127.0.0.1:" + freePort(s.c.T) + "/api/v1" }, 94, "connection refused"},
		{"not the API", nil, func(s *situation) { s.run.api = s.url }, 94, "404 Not Found"},
		{"a token that is none", nil, func(s *situation) { s.run.token = strings.Repeat("0", 40) }, 94, "401 Unauthorized; the job's token is not valid"},
		{"a token without rights", nil, func(s *situation) { s.run.token = s.token("alice", "read:user") }, 94, "403 Forbidden; the job's token may not read it"},
		{"a stranger's token", nil, func(s *situation) { s.run.token = s.tokens["mallory"] }, 94, "404 Not Found; it is not there, or the job's token may not see it"},
		{"a branch that is gone", []string{"gone"}, func(s *situation) {
			s.push(s.c, s.name, "", "gone")
			s.on("gone")
		}, 94, "branches/gone was answered with 404 Not Found"},
		{"fork", nil, func(s *situation) {
			s.call("bob", http.MethodGet, "/user", nil, nil)
			s.call("alice", http.MethodPut, "/repos/alice/"+s.name+"/collaborators/bob", map[string]any{"permission": "read"}, nil)
			s.call("bob", http.MethodPost, "/repos/alice/"+s.name+"/forks", map[string]any{"name": s.name}, nil)
			s.call("bob", http.MethodPost, "/repos/bob/"+s.name+"/branch_protections", map[string]any{"rule_name": "main"}, nil)
			s.run.repository, s.run.token = "bob/"+s.name, s.tokens["bob"]
		}, 92, "is a fork"},
		{"push", nil, func(s *situation) { s.run.event = "push" }, 90, `the event is "push"`},
		{"called, by an event that is not told", nil, func(s *situation) { s.run.event = "workflow_call" }, 90, "hides what started the run"},
		{"repeated", nil, func(s *situation) { s.run.attempt = "2" }, 90, `this is attempt "2"`},
		{"tag", nil, func(s *situation) { s.run.ref = "refs/tags/v1" }, 90, `the run is on "refs/tags/v1"`},
		{"changed after the checkout", nil, func(s *situation) { s.c.write(map[string]string{"new": "x"}) }, 95, "new (not in the commit)"},
		{"secret", nil, func(s *situation) {
			s.c.write(map[string]string{"notes": "token = ghp_" + letters(36) + "\n"})
			s.c.commit()
			s.push(s.c, s.name, "main", "main")
			s.run.sha = s.c.head()
		}, 97, "notes:1: looks like a secret (github-pat)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := &situation{forge: f, name: fmt.Sprintf("r%d", i)}
			s.c = f.repository(t, s.name, map[string]string{
				"volumes/projects.yaml": example(t, "retained-nfs.yaml"), ".mooring/owners": "alice\nbob # too\n",
				".mooring/policy.yaml": example(t, "retained-policy.yaml"),
			}, row.branches...)
			f.protect(s.name, "main")
			s.run = gateRun{
				repository: "alice/" + s.name, ref: "refs/heads/main", sha: s.c.head(), actor: "alice",
				attempt: "1", event: "workflow_dispatch", token: f.tokens["alice"], api: f.url + "/api/v1",
			}
			row.change(s)
			if got := f.gate(s.c, s.run, s.args...); got.code != row.code || !strings.Contains(got.text, row.want) {
				t.Errorf("got exit code %d; want %d with %q\n%s", got.code, row.code, row.want, got.text)
			}
		})
	}
}
