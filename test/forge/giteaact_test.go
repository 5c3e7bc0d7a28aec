package forge_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mooring-k8s/mooring/internal/receipt"
)

// The files of Gitea and Forgejo, copied into the calling repository and dispatched
// there, on a real forge and a real API server. act stands in for their runners, whose
// workflow language is its own.
func TestGiteaAndForgejoWorkflows(t *testing.T) {
	f := newForge(t, "alice", "mallory")
	for _, name := range []string{"gitea", "forgejo"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root, "."+name, "workflows/retained-volume.yml"))
			if err != nil {
				t.Fatal(err)
			}
			h := newHub(t)
			workflow := "." + name + "/workflows/volumes.yml"
			manifest := strings.NewReplacer("projects", name+"-projects").Replace(example(t, "retained-nfs.yaml"))
			h.checkout = f.repository(t, name, map[string]string{
				workflow: string(text), "volumes/v.yaml": manifest, ".mooring/owners": "alice\n",
			})
			f.protect(name, "main")
			h.git("remote", "set-url", "origin", "https://github.com/alice/"+name+".git") // act reads the name from it
			h.more = []string{"-W", filepath.Join(h.dir, workflow), "-P", "mooring=-self-hosted", "--env", "GITHUB_API_URL=" + f.url + "/api/v1", "-s", "GITHUB_TOKEN=" + f.token("alice", "read:repository")}
			inputs := func(mode, plan string) map[string]string {
				return map[string]string{"manifest": "volumes/v.yaml", "mode": mode, "approved-plan": plan, "policy": "", "owners": ".mooring/owners", "mooring-url": h.server.URL + "/mooring", "mooring-sha256": h.digest}
			}
			before := volumes(t)
			stranger, _ := h.dispatch("mallory", inputs("preview", ""))
			if stranger.code == 0 || !strings.Contains(stranger.text, `"mallory" is not among the owners`) || strings.Contains(stranger.text, "plan digest") {
				t.Fatalf("stranger: exit code %d\n%s", stranger.code, stranger.text)
			}
			preview, _ := h.dispatch("alice", inputs("preview", ""))
			_, after, _ := strings.Cut(preview.text, "plan digest  ")
			plan, _, _ := strings.Cut(after, "\n")
			if preview.code != 0 || !strings.HasPrefix(plan, "sha256:") || volumes(t) != before {
				t.Fatalf("preview: exit code %d, digest %q\n%s", preview.code, plan, preview.text)
			}
			refused, _ := h.dispatch("alice", inputs("create", "sha256:"+strings.Repeat("1", 64)))
			if refused.code == 0 || !strings.Contains(refused.text, "approval-differs") || volumes(t) != before {
				t.Fatalf("another digest: exit code %d\n%s", refused.code, refused.text)
			}
			created, _ := h.dispatch("alice", inputs("create", strings.TrimSpace(plan)))
			for _, want := range []string{"outcome      " + string(receipt.Created), `"outcome": "created"`, fmt.Sprintf("%q: %q", "predicateType", receipt.PredicateType)} {
				if created.code != 0 || !strings.Contains(created.text, want) || volumes(t) != before+1 {
					t.Errorf("create: exit code %d, without %q\n%s", created.code, want, created.text)
				}
			}
			f.call("alice", http.MethodDelete, "/repos/alice/"+name, nil, nil)
		})
	}
}
