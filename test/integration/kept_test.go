package integration_test

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// What test/permissions, which runs tests of this package, tells them and learns.
var (
	chartValues = flag.String("chart-values", "{}", "values of the chart, as JSON, that are set over those of the shared installations")
	keepIn      = flag.String("keep-in", "", "a directory for the API servers' audit logs and for the roles that are installed")
)

// audited returns options with which the API server keeps an audit log, if it is
// to be kept.
func audited(options controlplane.Options) controlplane.Options {
	if *keepIn != "" && options.Audit == controlplane.AuditNone {
		options.Audit = controlplane.AuditMetadata
	}
	return options
}

// sharedOptions are those of the installations that tests share.
func sharedOptions(tb testing.TB) chart.Options {
	tb.Helper()
	var values map[string]any
	noError(tb, json.Unmarshal([]byte(*chartValues), &values), "read -chart-values")
	return chart.Options{Values: values}
}

// roles is what is kept of an account that was installed.
type roles struct {
	Plane, Namespace, Name string
	ClusterRules, Rules    []rbacv1.PolicyRule
}

// keep writes down what an account may do, and sees that the audit log outlives
// its control plane.
func keep(tb testing.TB, plane *controlplane.ControlPlane, account string, objects []*unstructured.Unstructured) {
	tb.Helper()
	if *keepIn == "" {
		return
	}
	kept := roles{Plane: filepath.Base(plane.Dir()), Name: account}
	for _, object := range objects {
		switch object.GetKind() {
		case "ServiceAccount":
			kept.Namespace = object.GetNamespace()
		case "ClusterRole":
			kept.ClusterRules = append(kept.ClusterRules, rulesOf(tb, object)...)
		case "Role":
			kept.Rules = append(kept.Rules, rulesOf(tb, object)...)
		}
	}
	text, err := json.Marshal(kept)
	noError(tb, err, "encode the roles")
	file, err := os.CreateTemp(*keepIn, "*.roles.json")
	noError(tb, err, "keep the roles")
	_, err = file.Write(text)
	noError(tb, errors.Join(err, file.Close()), "keep the roles")
	err = os.Link(plane.AuditLog(), filepath.Join(*keepIn, kept.Plane+".audit.log"))
	if !errors.Is(err, fs.ErrExist) {
		noError(tb, err, "keep the audit log")
	}
}

func rulesOf(tb testing.TB, object *unstructured.Unstructured) []rbacv1.PolicyRule {
	tb.Helper()
	var role rbacv1.ClusterRole // a Role has the same field
	noError(tb, runtime.DefaultUnstructuredConverter.FromUnstructured(maps.Clone(object.Object), &role), "read a role")
	return role.Rules
}
