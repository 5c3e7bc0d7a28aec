package workflows_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
	"go.yaml.in/yaml/v3"
)

// called is what an example says about the workflow that it calls.
type called struct {
	Jobs map[string]struct {
		Uses    string            `yaml:"uses"`
		With    map[string]string `yaml:"with"`
		Secrets map[string]string `yaml:"secrets"`
	} `yaml:"jobs"`
}

// offered is what that workflow takes.
type offered struct {
	On struct {
		Call struct {
			Inputs map[string]struct {
				Required bool `yaml:"required"`
			} `yaml:"inputs"`
			Secrets map[string]struct {
				Required bool `yaml:"required"`
			} `yaml:"secrets"`
		} `yaml:"workflow_call"`
	} `yaml:"on"`
}

// The examples call the workflow of their forge, by a commit, with inputs and secrets
// that it has, and all that it needs.
func TestExamplesFitTheWorkflows(t *testing.T) {
	for example, forge := range map[string]string{"github.yml": ".github", "gitea.yml": ".gitea", "forgejo.yml": ".forgejo"} {
		text := read(t, filepath.Join(root, "examples/ci", example))
		var c called
		var o offered
		if err := yaml.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(read(t, file(forge))), &o); err != nil {
			t.Fatal(err)
		}
		job := c.Jobs["volumes"]
		path, commit, _ := strings.Cut(job.Uses, "@")
		if !strings.HasSuffix(path, "/"+forge+"/workflows/retained-volume.yml") || len(commit) != 40 {
			t.Errorf("%s calls %s", example, job.Uses)
		}
		for name := range job.With {
			if _, has := o.On.Call.Inputs[name]; !has {
				t.Errorf("%s gives the input %s, which is not there", example, name)
			}
		}
		for name, input := range o.On.Call.Inputs {
			if _, given := job.With[name]; input.Required && !given {
				t.Errorf("%s does not give the input %s", example, name)
			}
		}
		for name := range o.On.Call.Secrets {
			if got := job.Secrets[name]; got != "${{ secrets.KUBECONFIG }}" || name != "kubeconfig" {
				t.Errorf("%s does not pass the secret %s, but %q", example, name, got)
			}
		}
		var out bytes.Buffer
		linter, err := actionlint.NewLinter(&out, &actionlint.LinterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if problems, err := linter.Lint(example, []byte(text), nil); err != nil || len(problems) > 0 {
			t.Errorf("%s: %v\n%s", example, err, out.String())
		}
	}
}

// GitLab's example takes its credentials from the environment, and creates by hand
// only, what was previewed.
func TestGitLabExample(t *testing.T) {
	var pipeline map[string]yaml.Node
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(root, "examples/ci/gitlab-ci.yml"))), &pipeline); err != nil {
		t.Fatal(err)
	}
	type job struct {
		Stage, When, ResourceGroup string
		Script                     []string
	}
	for name, wants := range map[string][]string{
		"check":   {"mooring retain check"},
		"preview": {"mooring retain preview", `"$KUBECONFIG_FILE"`},
		"create":  {"mooring retain create", `"$KUBECONFIG_FILE"`, "--approved preview.json"},
	} {
		var j job
		node := pipeline[name]
		if err := node.Decode(&j); err != nil || len(j.Script) == 0 {
			t.Errorf("%s: %v, %+v", name, err, j)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(j.Script[0], want) {
				t.Errorf("%s: %q is not in %q", name, want, j.Script[0])
			}
		}
		if name == "check" && strings.Contains(j.Script[0], "KUBECONFIG") || name == "create" && j.When != "manual" {
			t.Errorf("%s: %+v", name, j)
		}
	}
	if stages := pipeline["stages"]; !slices.ContainsFunc(stages.Content, func(n *yaml.Node) bool { return n.Value == "create" }) {
		t.Error("no stage create")
	}
}
