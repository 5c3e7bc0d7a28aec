package chaos_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
	"github.com/mooring-k8s/mooring/test/model"
)

// TestUpgrade installs another version, makes mirrors, and goes from its replicas
// to those of this checkout and back, one at a time as a Deployment does, while
// claims come and grants end: no mirror is made anew or becomes another, and all
// is as docs/invariants.md says whoever leads.
func TestUpgrade(t *testing.T) {
	if *previousFlag == "" {
		t.Fatal("-previous is empty: expected the git ref to upgrade from; run make test-upgrade PREVIOUS=<git ref>")
	}
	previous := checkedOut(t, *previousFlag)
	plane := ownPlane(t)
	u := &upgrade{T: t, plane: plane, binaries: map[string]string{"previous": previous.binary, "this": ""}, charts: map[string]string{"previous": previous.chart, "this": ""}}
	u.roll("previous")
	u.model = model.New(t, model.Options{Plane: plane, Controller: u, Seed: chosen.seed, Origins: 4, Owners: 2, Claims: 18, Tenants: 3})
	u.model.ClaimsOf(0, 6)
	u.model.Rest()
	u.model.AreBound(0, 6)
	made := u.mirrors()

	u.roll("this")
	u.areSame(made)
	u.exercise(6)
	u.roll("previous")
	u.areSame(made)
	u.exercise(9)
	u.roll("this")
	u.areSame(made)
	u.exercise(12)
	u.model.Random(100)
}

// upgrade is a plane whose installation goes from version to version.
type upgrade struct {
	*testing.T
	plane            *controlplane.ControlPlane
	model            *model.Model
	binaries, charts map[string]string
	objects          []*unstructured.Unstructured
	fleet
	number int
}

// roll installs the chart of a version, and puts a replica of it in the place of
// each that runs: the new one starts before the old one ends.
func (u *upgrade) roll(version string) {
	u.Helper()
	own := installFrom(u.T, u.plane, u.charts[version])
	gone := slices.DeleteFunc(slices.Clone(u.objects), func(former *unstructured.Unstructured) bool {
		return slices.ContainsFunc(own.objects, func(now *unstructured.Unstructured) bool { return isSame(now, former) })
	})
	noError(u, chart.Delete(u.Context(), u.plane.Admin(), gone), "delete what the chart has no more")
	u.objects = own.objects
	for range 2 {
		u.number++
		u.fleet = append(u.fleet, own.replicaOf(u.T, version+"-"+string(rune('a'+u.number)), u.binaries[version]))
		if len(u.fleet) > 2 {
			if u.model != nil {
				u.model.Rest() // both versions are there, and either leads
			}
			noError(u, u.fleet[0].Kill(), "end a replica")
			u.fleet = u.fleet[1:]
		}
	}
	if u.model != nil {
		u.model.Rest()
	}
}

// exercise makes claims, and ends and gives a grant, from a claim's number on.
func (u *upgrade) exercise(from int) {
	u.Helper()
	u.model.ClaimsOf(from, from+3)
	u.model.Rest()
	u.model.AreBound(from, from+3)
	u.model.EndGrant(3)
	u.model.Rest()
	u.model.Grant(3)
	u.model.Grow(1)
	u.model.Rest()
}

// mirrors returns the mirror volumes by name.
func (u *upgrade) mirrors() map[string]*corev1.PersistentVolume {
	u.Helper()
	admin, err := client.New(u.plane.Admin(), client.Options{})
	noError(u, err, "connect to the cluster")
	var all corev1.PersistentVolumeList
	noError(u, admin.List(u.Context(), &all), "list volumes")
	var names mooringapi.Names
	found := map[string]*corev1.PersistentVolume{}
	for i := range all.Items {
		if all.Items[i].Annotations[names.MirrorClaimUID()] != "" {
			found[all.Items[i].Name] = &all.Items[i]
		}
	}
	return found
}

// areSame fails unless mirrors are the objects that they were, and reach what they
// reached.
func (u *upgrade) areSame(before map[string]*corev1.PersistentVolume) {
	u.Helper()
	now := u.mirrors()
	for name, was := range before {
		is := now[name]
		if is == nil || is.UID != was.UID {
			u.Errorf("mirror volume %s was there, and is not the same any more", name)
			continue
		}
		if !equality.Semantic.DeepEqual(is.Spec.PersistentVolumeSource, was.Spec.PersistentVolumeSource) || !equality.Semantic.DeepEqual(is.Spec.MountOptions, was.Spec.MountOptions) {
			u.Errorf("mirror volume %s reaches %+v %v, and reached %+v %v", name,
				is.Spec.PersistentVolumeSource, is.Spec.MountOptions, was.Spec.PersistentVolumeSource, was.Spec.MountOptions)
		}
	}
}

func isSame(a, b *unstructured.Unstructured) bool {
	return a.GroupVersionKind() == b.GroupVersionKind() && a.GetNamespace() == b.GetNamespace() && a.GetName() == b.GetName()
}

// version is another version, built.
type version struct{ binary, chart string }

// checkedOut takes the files of a git ref out of the repository and builds the
// controller there.
func checkedOut(t *testing.T, ref string) version {
	t.Helper()
	dir := t.TempDir()
	archive := exec.CommandContext(t.Context(), "git", "archive", "--format=tar", ref, "--", "cmd", "internal", "pkg", "charts", "go.mod", "go.sum")
	archive.Dir = filepath.Join("..", "..") // else only this directory's files are taken
	var problems bytes.Buffer
	archive.Stderr = &problems
	files, err := archive.Output()
	noError(t, err, "take the files of %s out of git: %s", ref, problems.String())
	unpack := exec.CommandContext(t.Context(), "tar", "-x", "-C", dir)
	unpack.Stdin = bytes.NewReader(files)
	output, err := unpack.CombinedOutput()
	noError(t, err, "unpack %s: %s", ref, output)
	binary := filepath.Join(dir, "mooring-controller")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", binary, "./cmd/mooring-controller")
	build.Dir, build.Env = dir, append(os.Environ(), "GOWORK=off")
	output, err = build.CombinedOutput()
	noError(t, err, "build %s: %s", ref, output)
	return version{binary: binary, chart: filepath.Join(dir, "charts", "mooring")}
}
