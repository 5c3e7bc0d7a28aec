//go:build linux

package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// testDriver is a driver that runs on every node.
type testDriver struct {
	name, kind string
	attributes func(directory string) map[string]string
}

// One driver that the table of recipes knows: a handle of the mirror's own,
// nothing staged, read-only mirrors. And one that it does not: the origin's
// handle, staged, read-write.
var (
	nfs = testDriver{name: "nfs.csi.k8s.io", kind: "network", attributes: func(directory string) map[string]string {
		return map[string]string{"server": "files.test", "share": "/" + directory}
	}}
	unknown = testDriver{name: "directory.test", kind: "directory", attributes: func(directory string) map[string]string {
		return map[string]string{"path": "files.test/" + directory}
	}}
	drivers = []testDriver{nfs, unknown}
)

func (d testDriver) process(node string) string { return d.kind + "-driver-" + node }

var names mooringapi.Names // the default provisioner name

var (
	writeMany = corev1.ReadWriteMany
	readMany  = corev1.ReadOnlyMany
)

// world is what a test acts in: an owner's namespace with an origin, and a
// namespace that mirrors it.
type world struct {
	*testing.T
	*cluster
	driver       testDriver
	owner, guest string // namespaces
	origin       *corev1.PersistentVolumeClaim
	handles      []string
}

var (
	worlds atomic.Int64
	ports  atomic.Int64
)

// newWorld makes an origin that the guest's namespace may mirror under the
// given grant.
func newWorld(t *testing.T, driver testDriver, grant string, mountOptions ...string) *world {
	t.Helper()
	id := worlds.Add(1)
	w := &world{T: t, cluster: shared, driver: driver, owner: fmt.Sprintf("owner-%d", id), guest: fmt.Sprintf("guest-%d", id)}
	for _, namespace := range []string{w.owner, w.guest} {
		w.must(w.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"course": w.guest}}}))
	}
	w.origin = w.claim(w.owner, "origin", "static", writeMany)
	w.origin.Annotations = map[string]string{grant: "course=" + w.guest}
	w.static(w.origin, fmt.Sprintf("origin-%d", id), mountOptions...)
	return w
}

// static makes a claim with a volume of its own, and waits until it is bound.
func (w *world) static(claim *corev1.PersistentVolumeClaim, directory string, mountOptions ...string) *corev1.PersistentVolume {
	w.Helper()
	w.must(os.MkdirAll(filepath.Join(w.data(), "files.test", directory), 0o755))
	w.must(w.Create(w.Context(), claim))
	w.must(w.Create(w.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: directory},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: "static", AccessModes: claim.Spec.AccessModes, MountOptions: mountOptions,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: w.driver.name, VolumeHandle: "handle-of-" + directory, VolumeAttributes: w.driver.attributes(directory),
			}},
		},
	}))
	return w.bound(claim)
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) claim(namespace, name, class string, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{mode},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// mirror makes a mirror claim in the guest's namespace; it is not waited for.
func (w *world) mirror(name string, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	w.Helper()
	return w.mirrorOfClass("pvc-mirror", name, mode)
}

func (w *world) mirrorOfClass(class, name string, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	w.Helper()
	claim := w.claim(w.guest, name, class, mode)
	claim.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Namespace: &w.owner, Name: w.origin.Name}
	w.must(w.Create(w.Context(), claim))
	return claim
}

// bound waits until the binder has bound a claim, and returns its volume.
func (w *world) bound(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	w.Helper()
	volume := &corev1.PersistentVolume{}
	w.until("claim "+claim.Name+" bound", func(ctx context.Context) string {
		if err := w.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
			return err.Error()
		}
		if claim.Status.Phase != corev1.ClaimBound {
			return fmt.Sprintf("%s, conditions %v", claim.Status.Phase, claim.Status.Conditions)
		}
		return ""
	})
	w.must(w.Get(w.Context(), client.ObjectKey{Name: claim.Spec.VolumeName}, volume))
	w.handles = append(w.handles, volume.Spec.CSI.VolumeHandle)
	return volume
}

func (w *world) until(what string, complaint func(context.Context) string, about ...client.Object) {
	w.Helper()
	err := poll(w.Context(), what, complaint)
	if err == nil {
		return
	}
	for _, object := range about {
		object.SetManagedFields(nil)
		text, _ := yaml.Marshal(object)
		w.Logf("%T:\n%s", object, text)
	}
	w.Fatal(err)
}

// pod is a Pod of the workload, with claims mounted at /0, /1 and so on.
type pod struct {
	*corev1.Pod
	w       *world
	address string
}

// pod makes a Pod that the scheduler is to put on a node. It is not waited for.
func (w *world) pod(namespace, name, node string, claims ...string) *pod {
	w.Helper()
	return w.create(w.newPod(namespace, name, node, claims...))
}

// podPastScheduler makes a Pod that is on a node from the start.
func (w *world) podPastScheduler(namespace, name, node string, claims ...string) *pod {
	w.Helper()
	p := w.newPod(namespace, name, node, claims...)
	p.Spec.NodeName, p.Spec.NodeSelector = node, nil
	return w.create(p)
}

func (w *world) create(p *pod) *pod {
	w.Helper()
	w.must(w.Create(w.Context(), p.Pod))
	return p
}

func (w *world) newPod(namespace, name, node string, claims ...string) *pod {
	grace, mountToken := int64(1), false
	p := &pod{w: w, address: fmt.Sprintf("127.0.0.1:%d", 30000+ports.Add(1))}
	p.Pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			HostNetwork: true, NodeSelector: map[string]string{corev1.LabelHostname: node},
			TerminationGracePeriodSeconds: &grace, AutomountServiceAccountToken: &mountToken, RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "workload", Image: imageName, ImagePullPolicy: corev1.PullNever, Args: []string{p.address}}},
		},
	}
	for i, claim := range claims {
		volume := fmt.Sprintf("v%d", i)
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: fmt.Sprintf("/%d", i)})
	}
	return p
}

// runs waits until the Pod's container answers.
func (p *pod) runs() *pod {
	p.w.Helper()
	p.w.until("Pod "+p.Name+" runs", func(ctx context.Context) string {
		if err := p.w.Get(ctx, client.ObjectKeyFromObject(p.Pod), p.Pod); err != nil {
			return err.Error()
		}
		if p.Status.Phase != corev1.PodRunning {
			return fmt.Sprintf("%s, conditions %v, containers %v", p.Status.Phase, p.Status.Conditions, p.Status.ContainerStatuses)
		}
		if _, err := p.do("read", "/program", ""); err != nil {
			return err.Error()
		}
		return ""
	}, p.Pod)
	return p
}

// do does something in the container. The error is the kernel's, by its name.
func (p *pod) do(operation, path, text string) (string, error) {
	target := url.URL{Scheme: "http", Host: p.address, Path: operation, RawQuery: url.Values{"path": {path}}.Encode()}
	request, err := http.NewRequestWithContext(p.w.Context(), http.MethodPost, target.String(), strings.NewReader(text))
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(strings.TrimSpace(string(body)))
	}
	return string(body), err
}

func (p *pod) writes(path, text string) {
	p.w.Helper()
	if _, err := p.do("write", path, text); err != nil {
		p.w.Errorf("Pod %s writes %s: %v", p.Name, path, err)
	}
}

func (p *pod) reads(path, want string) {
	p.w.Helper()
	if got, err := p.do("read", path, ""); err != nil || got != want {
		p.w.Errorf("Pod %s reads %s: %q, %v; want %q", p.Name, path, got, err, want)
	}
}

// refused checks that the kernel does not let the container change anything at a
// mount that holds a file.
func (p *pod) refused(mount, file string) {
	p.w.Helper()
	for operation, path := range map[string]string{
		"write": mount + "/new", "append": mount + "/" + file, "remove": mount + "/" + file, "mkdir": mount + "/dir", "chmod": mount,
	} {
		if _, err := p.do(operation, path, "x"); err == nil || err.Error() != "EROFS" {
			p.w.Errorf("Pod %s, %s %s: %v; want EROFS", p.Name, operation, path, err)
		}
	}
}

// leaves deletes the Pod and waits until it is gone and no mount of its is left.
func (p *pod) leaves() {
	p.w.Helper()
	p.w.must(p.w.Delete(p.w.Context(), p.Pod))
	p.gone()
}

func (p *pod) gone() {
	p.w.Helper()
	p.w.until("Pod "+p.Name+" gone", func(ctx context.Context) string {
		switch err := p.w.Get(ctx, client.ObjectKeyFromObject(p.Pod), p.Pod); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return err.Error()
		default:
			return "it exists"
		}
		if left := p.w.mounts(func(path string) bool { return strings.Contains(path, string(p.UID)) }); len(left) > 0 {
			return fmt.Sprintf("still mounted: %v", left)
		}
		return ""
	})
}

// nothingIsLeft waits until no volume of this world is staged anywhere.
func (w *world) nothingIsLeft() {
	w.Helper()
	w.until("no mount left", func(context.Context) string {
		if left := w.staged(); len(left) > 0 {
			return fmt.Sprintf("still mounted: %v", left)
		}
		return ""
	})
}

// staged are the staging mounts of this world's volumes.
func (w *world) staged() []string {
	return w.mounts(func(path string) bool {
		for _, handle := range w.handles {
			if strings.Contains(path, fmt.Sprintf("%x", sha256.Sum256([]byte(handle)))) {
				return true
			}
		}
		return false
	})
}

// ends deletes the mirror claim and waits for its volume to go, while the
// origin's data stays.
func (w *world) ends(mirror *corev1.PersistentVolumeClaim, file string) {
	w.Helper()
	w.must(w.Delete(w.Context(), mirror))
	w.ended(mirror, file)
}

// ended waits for the volume of a mirror claim that is being deleted to go, while
// the origin's data stays.
func (w *world) ended(mirror *corev1.PersistentVolumeClaim, file string) {
	w.Helper()
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: mirror.Spec.VolumeName}}
	w.until("mirror volume gone", func(ctx context.Context) string {
		err := w.Get(ctx, client.ObjectKeyFromObject(volume), volume)
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("%s (%v)", volume.Status.Phase, err)
	})
	directory := strings.Replace(w.owner, "owner", "origin", 1)
	if _, err := os.Stat(filepath.Join(w.data(), "files.test", directory, file)); err != nil {
		w.Errorf("the origin's data: %v", err)
	}
}
