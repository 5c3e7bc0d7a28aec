package people_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/mooring-k8s/mooring/internal/cli"
	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// The crowd: mirrors of one origin in many namespaces, a few of another, and
// Pods that use some of them. Nobody looks after them: what is read is what was
// written here.
const (
	crowdSpaces  = 250
	crowdMirrors = 5000 // of crowdOrigin
	crowdFew     = 5    // of crowdSmall
	crowdPods    = 100
	crowdNS      = "crowd-origin"
)

var (
	crowdOrigin = types.NamespacedName{Namespace: crowdNS, Name: "data"}
	crowdSmall  = types.NamespacedName{Namespace: crowdNS, Name: "small"}
)

// crowded is the plane of the crowd, without any controller.
var crowded = &crowd{plane: &controlplane.Shared{}}

type crowd struct {
	plane *controlplane.Shared
	once  sync.Once
	err   error
}

// world returns the plane with the crowd in it, for tests that only read it, as
// its administrator.
func (c *crowd) world(t *testing.T) *world {
	t.Helper()
	plane := c.plane.ForTest(t)
	c.once.Do(func() {
		began := time.Now()
		c.err = c.gather(plane) // outlives the test that asked first
		t.Logf("%d mirrors written in %v", crowdMirrors+crowdFew, time.Since(began).Round(time.Millisecond))
	})
	noError(t, c.err, "gather the crowd")
	return &world{T: t, plane: plane, admin: person{name: "administrator", kubeconfig: plane.AdminKubeconfigFile()}}
}

// gather writes everything, many at once and in Kubernetes' binary form.
func (c *crowd) gather(plane *controlplane.ControlPlane) error {
	if err := plane.ControllerManager().Kill(); err != nil {
		return err
	}
	config := rest.CopyConfig(plane.Admin())
	config.QPS, config.ContentType = -1, "application/vnd.kubernetes.protobuf"
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx := context.Background()
	var jobs []func() error
	for i := range crowdSpaces {
		jobs = append(jobs, func() error { return c.space(ctx, api, crowdSpace(i)) })
	}
	jobs = append(jobs, func() error { return c.space(ctx, api, crowdNS) })
	if err := atOnce(jobs); err != nil {
		return err
	}
	jobs = nil
	for _, key := range []types.NamespacedName{crowdOrigin, crowdSmall} {
		jobs = append(jobs, func() error { return c.claim(ctx, api, key, nil) })
	}
	for i := range crowdMirrors {
		key := types.NamespacedName{Namespace: crowdSpace(i), Name: fmt.Sprintf("m%04d", i)}
		jobs = append(jobs, func() error { return c.claim(ctx, api, key, &crowdOrigin) })
	}
	for i := range crowdFew {
		key := types.NamespacedName{Namespace: crowdSpace(i), Name: fmt.Sprintf("few%d", i)}
		jobs = append(jobs, func() error { return c.claim(ctx, api, key, &crowdSmall) })
	}
	for i := range crowdPods {
		jobs = append(jobs, func() error { return c.pod(ctx, api, crowdSpace(i), fmt.Sprintf("m%04d", i)) })
	}
	return atOnce(jobs)
}

func crowdSpace(i int) string { return fmt.Sprintf("crowd-%03d", i%crowdSpaces) }

// atOnce runs jobs, 48 at a time, and returns an error of one of them.
func atOnce(jobs []func() error) error {
	few, failed := make(chan struct{}, 48), make(chan error, len(jobs))
	var wait sync.WaitGroup
	for _, job := range jobs {
		few <- struct{}{}
		wait.Go(func() {
			defer func() { <-few }()
			if err := job(); err != nil {
				failed <- err
			}
		})
	}
	wait.Wait()
	close(failed)
	return <-failed
}

// space creates a namespace with what Pods need; every tenth is granted nothing.
func (c *crowd) space(ctx context.Context, api kubernetes.Interface, name string) error {
	labels := map[string]string{"type": "tenant"}
	if strings.HasSuffix(name, "0") {
		labels = nil
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := api.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := api.CoreV1().ServiceAccounts(name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	return err
}

// claim creates a bound claim and its volume: an origin, or a mirror of one.
func (c *crowd) claim(ctx context.Context, api kubernetes.Interface, key types.NamespacedName, origin *types.NamespacedName) error {
	made := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Annotations: map[string]string{names.ReadWriteGrant(): tenantsOnly}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(ownerClass), VolumeName: mirror.VolumeName(uuid.NewUUID()),
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, Resources: requesting("1Gi"),
		},
	}
	if origin != nil {
		made.Annotations = map[string]string{names.Origin(): origin.String()}
		made.Spec.StorageClassName = ptr.To(class)
	}
	claims, volumes := api.CoreV1().PersistentVolumeClaims(key.Namespace), api.CoreV1().PersistentVolumes()
	claim, err := claims.Create(ctx, made, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests}
	if _, err := claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
		return err
	}
	volume, err := volumes.Create(ctx, crowdVolume(claim, origin), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	volume.Status.Phase = corev1.VolumeBound
	_, err = volumes.UpdateStatus(ctx, volume, metav1.UpdateOptions{})
	return err
}

// crowdVolume is a claim's volume, with the record of a mirror where it is one.
func crowdVolume(claim *corev1.PersistentVolumeClaim, origin *types.NamespacedName) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: ownerClass, AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, ClaimRef: mirror.RefTo(claim),
		},
	}
	nfsCSI(volume)
	if origin == nil {
		return volume
	}
	by, _ := json.Marshal(mirror.GrantedBy{Annotation: names.ReadWriteGrant(), Selector: tenantsOnly, Access: grant.ReadWrite.String()})
	volume.Labels = map[string]string{names.OriginLabel(): mirror.OriginHash(*origin)}
	volume.Annotations = map[string]string{
		names.MirrorClaim(): claim.Namespace + "/" + claim.Name, names.MirrorClaimUID(): string(claim.UID), names.OriginClaim(): origin.String(),
		names.VolumeName(): volume.Name, names.GrantedBy(): string(by), names.ServedBy(): "mooring-system/mooring", mooringapi.ProvisionedBy: names.Provisioner(),
	}
	return volume
}

func (c *crowd) pod(ctx context.Context, api kubernetes.Interface, namespace, claim string) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod-" + claim},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "registry.invalid/none"}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}},
		},
	}
	_, err := api.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// access of 5,000 mirrors takes a handful of requests, and that of a few is not
// slowed down by the many.
func TestAccessOfManyMirrors(t *testing.T) {
	t.Parallel()
	w := crowded.world(t)
	most := time.Duration(0)
	for _, tc := range []struct {
		origin                 types.NamespacedName
		mirrors, revoked, pods int
	}{
		{crowdOrigin, crowdMirrors, crowdMirrors / 10, crowdPods},
		{crowdSmall, crowdFew, 1, 0},
	} {
		began := time.Now()
		got := w.mooring(w.admin, "access", tc.origin.String(), "-o", "json", "--requests")
		took := time.Since(began)
		var a cli.Access
		w.must(json.Unmarshal([]byte(got.out), &a), "read the answer: %s", got.err)
		mirrors, revoked, pods := 0, 0, 0
		for _, space := range a.Namespaces {
			mirrors += len(space.Mirrors)
			for _, m := range space.Mirrors {
				pods += len(m.Pods)
				if m.State == "Revoked" {
					revoked++
				}
			}
		}
		requests := 0
		at := strings.Index(got.err, "requests: ")
		if at >= 0 {
			_, _ = fmt.Sscanf(got.err[at:], "requests: %d", &requests)
		}
		t.Logf("access %s: %d mirrors, %d revoked, %d Pods: %d requests, %v", tc.origin, mirrors, revoked, pods, requests, took.Round(time.Millisecond))
		if mirrors != tc.mirrors || revoked != tc.revoked || pods != tc.pods {
			t.Errorf("want %d mirrors, %d revoked, %d Pods", tc.mirrors, tc.revoked, tc.pods)
		}
		if requests == 0 || requests > 9 {
			t.Errorf("%d requests", requests)
		}
		if took > patience || most > 0 && took > most {
			t.Errorf("it took %v, the many %v", took, most)
		}
		most = took
	}
}
