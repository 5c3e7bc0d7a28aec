// Package workflows holds the workflow files around mooring ci against their
// promise: nothing that runs before the gate's success can read a secret.
package workflows

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// workflow is what is read of a file. Unknown fields are looked at as text.
type workflow struct {
	Permissions yaml.Node            `yaml:"permissions"`
	Env         yaml.Node            `yaml:"env"`
	Defaults    yaml.Node            `yaml:"defaults"`
	Concurrency yaml.Node            `yaml:"concurrency"`
	Jobs        map[string]yaml.Node `yaml:"jobs"`
}

type job struct {
	Needs           oneOrMore   `yaml:"needs"`
	If              string      `yaml:"if"`
	Uses            string      `yaml:"uses"`
	Timeout         int         `yaml:"timeout-minutes"`
	Permissions     yaml.Node   `yaml:"permissions"`
	ContinueOnError string      `yaml:"continue-on-error"`
	Steps           []yaml.Node `yaml:"steps"`
}

type step struct {
	Name            string            `yaml:"name"`
	If              string            `yaml:"if"`
	Uses            string            `yaml:"uses"`
	Run             string            `yaml:"run"`
	Env             map[string]string `yaml:"env"`
	ContinueOnError string            `yaml:"continue-on-error"`
}

type oneOrMore []string

func (o *oneOrMore) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*o = oneOrMore{node.Value}
		return nil
	}
	return node.Decode((*[]string)(o))
}

var (
	expression = regexp.MustCompile(`(?s)\$\{\{.*?\}\}`)
	pinned     = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
	// onAnyEnd are the conditions under which a step or job runs although one before
	// it failed.
	onAnyEnd = regexp.MustCompile(`always\s*\(|failure\s*\(|cancelled\s*\(`)
	isGate   = regexp.MustCompile(`\bmooring"? ci gate\b`)
)

// readsSecrets says whether any text below node has an expression with secrets.
func readsSecrets(node *yaml.Node) bool {
	for _, found := range expression.FindAllString(node.Value, -1) {
		if strings.Contains(strings.ToLower(found), "secrets") {
			return true
		}
	}
	return slices.ContainsFunc(node.Content, readsSecrets)
}

// Problems returns what is wrong with a workflow file.
func Problems(data []byte) ([]string, error) {
	var w workflow
	if err := yaml.Unmarshal(data, &w); err != nil {
		return nil, fmt.Errorf("read the workflow: %w", err)
	}
	c := &check{jobs: map[string]job{}}
	for name, node := range w.Jobs {
		var j job
		if err := node.Decode(&j); err != nil {
			return nil, fmt.Errorf("job %s: %w", name, err)
		}
		c.jobs[name] = j
	}
	if readsSecrets(&w.Env) || readsSecrets(&w.Defaults) {
		c.problem("the whole workflow reads a secret")
	}
	if w.Concurrency.IsZero() {
		c.problem("no concurrency group")
	}
	c.permissions("the workflow", &w.Permissions, true)
	for name, node := range w.Jobs {
		c.job(name, &node)
	}
	if !c.hasGate {
		c.problem("no step calls mooring ci gate")
	}
	slices.Sort(c.found)
	return c.found, nil
}

// check is Problems while it goes on.
type check struct {
	jobs    map[string]job
	hasGate bool
	found   []string
}

func (c *check) problem(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

// permissions must be nothing, or to read the contents.
func (c *check) permissions(of string, node *yaml.Node, needed bool) {
	if node.IsZero() {
		if needed {
			c.problem("%s does not say its permissions", of)
		}
		return
	}
	var got map[string]string
	if err := node.Decode(&got); err != nil {
		c.problem("%s: permissions are no list", of)
		return
	}
	delete(got, "contents")
	var with map[string]string
	_ = node.Decode(&with) // as above
	if len(got) > 0 || with["contents"] != "" && with["contents"] != "read" {
		c.problem("%s may do more than read the contents", of)
	}
}

func (c *check) job(name string, node *yaml.Node) {
	j := c.jobs[name]
	c.permissions("job "+name, &j.Permissions, false)
	if j.Timeout == 0 {
		c.problem("job %s has no time limit", name)
	}
	if j.Uses != "" {
		c.problem("job %s calls another workflow", name)
	}
	behind := c.behindGate(name, nil)
	own := *node
	own.Content = without(node.Content, "steps")
	if readsSecrets(&own) {
		c.problem("job %s reads a secret for all its steps", name)
	}
	if behind && (onAnyEnd.MatchString(j.If) || j.ContinueOnError != "") {
		c.problem("job %s runs although the gate failed", name)
	}
	for i := range j.Steps {
		behind = c.step(name, &j.Steps[i], behind)
	}
}

// without returns the content of a mapping less one key.
func without(content []*yaml.Node, key string) []*yaml.Node {
	var kept []*yaml.Node
	for i := 0; i+1 < len(content); i += 2 {
		if content[i].Value != key {
			kept = append(kept, content[i], content[i+1])
		}
	}
	return kept
}

// step checks one step, and says whether what follows is behind the gate.
func (c *check) step(jobName string, node *yaml.Node, behind bool) bool {
	var s step
	if err := node.Decode(&s); err != nil {
		c.problem("job %s: a step cannot be read: %v", jobName, err)
		return behind
	}
	where := fmt.Sprintf("job %s, step %q", jobName, s.Name)
	if s.Uses != "" && !pinned.MatchString(s.Uses) {
		c.problem("%s uses %s, which is not pinned by its digest", where, s.Uses)
	}
	if strings.Contains(s.Run, "${{") {
		c.problem("%s puts an expression into a script", where)
	}
	gate := isGate.MatchString(s.Run)
	if gate {
		c.hasGate = true
		if s.ContinueOnError != "" || s.If != "" {
			c.problem("%s is the gate, and can be passed by", where)
		}
	}
	if readsSecrets(node) {
		c.secret(where, s, behind && !gate)
	}
	return behind || gate
}

// secret checks a step that reads one.
func (c *check) secret(where string, s step, behind bool) {
	if !behind {
		c.problem("%s reads a secret before the gate's success", where)
	}
	if onAnyEnd.MatchString(s.If) {
		c.problem("%s reads a secret although a step before it failed", where)
	}
	for name, value := range s.Env {
		if strings.Contains(strings.ToLower(value), "secrets") && (name != "MOORING_KUBECONFIG" || value != "${{ secrets.kubeconfig }}") {
			c.problem("%s reads another secret than the kubeconfig, or by another name", where)
		}
	}
	if s.Uses != "" {
		c.problem("%s hands a secret to somebody else's action", where)
	}
}

// behindGate says whether a job begins only after a job with the gate succeeded.
func (c *check) behindGate(name string, seen []string) bool {
	for _, need := range c.jobs[name].Needs {
		if slices.Contains(seen, need) {
			continue
		}
		for i := range c.jobs[need].Steps {
			var s step
			if c.jobs[need].Steps[i].Decode(&s) == nil && isGate.MatchString(s.Run) {
				return true
			}
		}
		if c.behindGate(need, append(seen, name)) {
			return true
		}
	}
	return false
}
