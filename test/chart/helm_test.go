package chart_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/cli"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/strvals"

	"github.com/mooring-k8s/mooring/test/chart"
)

const chartDir = "../../charts/mooring"

// helm is what the command has to do its work with, without a Kubernetes cluster
// unless there is a kubeconfig.
func helm(t *testing.T, kubeconfig, namespace string) *action.Configuration {
	t.Helper()
	settings := cli.New()
	settings.KubeConfig = kubeconfig
	settings.SetNamespace(namespace)
	config := action.NewConfiguration()
	if err := config.Init(settings.RESTClientGetter(), namespace, "memory"); err != nil {
		t.Fatal(err)
	}
	return config
}

// template does what `helm template` does, less the hooks.
func template(t *testing.T, values map[string]any) string {
	t.Helper()
	return released(t, values).Manifest
}

func released(t *testing.T, values map[string]any) *releasev1.Release {
	t.Helper()
	install := action.NewInstall(helm(t, "", "mooring-system"))
	install.DryRunStrategy, install.Replace = action.DryRunClient, true
	install.ReleaseName, install.Namespace = "mooring", "mooring-system"
	install.KubeVersion = &common.KubeVersion{Version: "v1.37.2", Major: "1", Minor: "37"}
	result, err := install.Run(loadChart(t), values)
	if err != nil {
		t.Fatal(err)
	}
	release, ok := result.(*releasev1.Release)
	if !ok {
		t.Fatalf("helm template gives a %T", result)
	}
	return release
}

// Each right stands in what is rendered with the reason for it, so that who reviews
// an upgrade reads it there.
func TestEachRuleHasItsReason(t *testing.T) {
	for name, set := range map[string]map[string]any{"the least": values(nil), "everything": everything(), "without an election": values(map[string]any{"leaderElect": false, "replicas": 1})} {
		release := released(t, set)
		manifests := []string{release.Manifest}
		for _, hook := range release.Hooks {
			manifests = append(manifests, hook.Manifest)
		}
		rules := 0
		for _, manifest := range manifests {
			before, comment := "", regexp.MustCompile(`^ +# .*[a-z]`)
			for line := range strings.Lines(manifest) {
				if strings.HasPrefix(line, "  - apiGroups:") {
					rules++
					if !comment.MatchString(before) {
						t.Errorf("%s: a rule without a reason, after %q", name, before)
					}
				}
				before = line
			}
		}
		if rules < 10 {
			t.Errorf("%s: found %d rules", name, rules)
		}
	}
}

func loadChart(t *testing.T) *chartv2.Chart {
	t.Helper()
	loaded, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func TestLint(t *testing.T) {
	for name, set := range map[string]map[string]any{
		"the least":       nil,
		"deleting":        {"class": map[string]any{"onRevoke": "Delete"}},
		"many classes":    {"classes": []any{map[string]any{"name": "readers"}}, "networkPolicy": map[string]any{"enabled": true}},
		"no class at all": {"class": map[string]any{"create": false}, "podDisruptionBudget": map[string]any{"enabled": false}},
	} {
		lint := action.NewLint()
		lint.Strict, lint.Namespace = true, "mooring-system"
		result := lint.Run([]string{chartDir}, values(set))
		for _, message := range result.Messages {
			if message.Severity > support.InfoSev {
				t.Errorf("%s: %s", name, message)
			}
		}
		if len(result.Errors) > 0 || result.TotalChartsLinted != 1 {
			t.Errorf("%s: %d charts linted, %v", name, result.TotalChartsLinted, result.Errors)
		}
	}
}

// What renders the chart again and compares, as those do who keep what is rendered
// in a repository, sees no difference where there is none.
func TestTemplateIsDeterministic(t *testing.T) {
	set := func() map[string]any {
		return values(map[string]any{
			"podLabels":      map[string]any{"a": "1", "b": "2", "c": "3", "d": "4"},
			"podAnnotations": map[string]any{"a": "1", "b": "2", "c": "3", "d": "4"},
			"nodeSelector":   map[string]any{"a": "1", "b": "2", "c": "3", "d": "4"},
			"resources":      map[string]any{"requests": map[string]any{"memory": "1Gi", "cpu": 1, "ephemeral-storage": "1Gi"}},
			"classes":        []any{map[string]any{"name": "b", "onRevoke": "Delete"}, map[string]any{"name": "a"}},
			"networkPolicy":  map[string]any{"enabled": true},
			"originGrants": []any{map[string]any{"name": "drives", "selector": "'team=a'",
				"claimSelector": map[string]any{"matchLabels": map[string]any{"a": "1", "b": "2", "c": "3"}}}},
		})
	}
	first := template(t, set())
	if !strings.Contains(first, "kind: Deployment") {
		t.Fatalf("helm template gives\n%s", first)
	}
	for range 10 {
		if again := template(t, set()); again != first {
			t.Fatalf("rendered again it differs:\n%s\n%s", first, again)
		}
	}
}

// Nor does it depend on the time, on chance, on the cluster's objects, or on how
// often it was installed.
func TestTemplatesAskNobody(t *testing.T) {
	asks := regexp.MustCompile(`\b(lookup|now|date\w*|ago|rand\w+|uuidv4|gen\w+|htpasswd|bcrypt|derivePassword|env|expandenv|getHostByName|shuffle)\b|Release\.(Revision|IsInstall|IsUpgrade)`)
	actions := regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	templates := os.DirFS(filepath.Join(chartDir, "templates"))
	err := fs.WalkDir(templates, ".", func(path string, found fs.DirEntry, err error) error {
		if err != nil || found.IsDir() {
			return err
		}
		content, err := fs.ReadFile(templates, path)
		for _, action := range actions.FindAllString(string(content), -1) {
			if !strings.HasPrefix(action, "{{/*") && !strings.HasPrefix(action, "{{- /*") && asks.MatchString(action) {
				t.Errorf("%s: %s", path, action)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What no installation needs is not in the archive.
func TestArchiveHoldsNoTests(t *testing.T) {
	for _, file := range loadChart(t).Files {
		if strings.HasPrefix(file.Name, "tests/") {
			t.Errorf("the chart holds %s", file.Name)
		}
	}
}

// A value that is set to null loses its default. Either that is refused, with the
// value's name, or it is as if it were empty: what is rendered is well-formed.
func TestNull(t *testing.T) {
	for path, isGroup := range valuePaths(loadChart(t).Values, "") {
		t.Run(path, func(t *testing.T) {
			set := values(nil)
			if err := strvals.ParseInto(path+"=null", set); err != nil {
				t.Fatal(err)
			}
			objects, err := chart.Render(chart.Options{Values: set})
			if err == nil {
				wellFormed(t, objects)
			}
			name := path[strings.LastIndex(path, ".")+1:]
			if err != nil && !strings.Contains(err.Error(), "missing property '"+name+"'") && path != "image.repository" {
				t.Errorf("got %v; want one that says that %s is missing", err, path)
			}
			if isGroup && err == nil {
				t.Errorf("a whole group of values was taken away and nothing is said")
			}
		})
	}
}

// valuePaths returns every value's path, and whether it is a group of values.
func valuePaths(values map[string]any, prefix string) map[string]bool {
	paths := map[string]bool{}
	for name, value := range values {
		group, _ := value.(map[string]any)
		isGroup := len(group) > 0 && name != "resources"
		paths[prefix+name] = isGroup
		if isGroup {
			maps.Copy(paths, valuePaths(group, prefix+name+"."))
		}
	}
	return paths
}
