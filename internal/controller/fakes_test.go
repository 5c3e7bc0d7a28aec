package controller

import (
	"context"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// fakeIndexer gives a fake client the indexes of the real cache.
type fakeIndexer struct{ builder *fake.ClientBuilder }

func (i fakeIndexer) IndexField(_ context.Context, object client.Object, field string, index client.IndexerFunc) error {
	i.builder.WithIndex(object, field, index)
	return nil
}

// cluster returns a client of a cluster that consists of some objects: no
// validation, no other controllers. What needs these is in test/integration.
func cluster(t testing.TB, objects ...client.Object) client.Client {
	t.Helper()
	builder := fake.NewClientBuilder().WithObjects(objects...)
	if err := indexes(context.Background(), fakeIndexer{builder}, names); err != nil {
		t.Fatal(err)
	}
	return builder.Build()
}

// heard returns a teller and what it says in events.
func heard(t testing.TB, in client.Client) (*teller, *events.FakeRecorder) {
	t.Helper()
	recorder := events.NewFakeRecorder(100)
	return &teller{names: names, write: writer{in, names}, recorder: recorder, metrics: counters(t)}, recorder
}

func counters(t testing.TB) *metrics {
	t.Helper()
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// said returns the events since it was asked last.
func said(recorder *events.FakeRecorder) []string {
	var notes []string
	for {
		select {
		case note := <-recorder.Events:
			notes = append(notes, note)
		default:
			return notes
		}
	}
}

func uid(i int) types.UID { return types.UID(fmt.Sprintf("aaaaaaaa-0000-4000-8000-%012d", i)) }

// mirrorOf returns the mirror number i of an origin volume, in a namespace of
// its own: its claim, and its volume with the record.
func mirrorOf(i int, origin *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	key := types.NamespacedName{Namespace: origin.Namespace, Name: origin.Name}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("tenant-%05d", i), Name: "drive", UID: uid(i),
			Annotations: map[string]string{names.Origin(): key.String()}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, VolumeName: mirror.VolumeName(uid(i)),
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	return claim, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: claim.Spec.VolumeName, UID: types.UID("v-" + string(uid(i))),
			Labels: map[string]string{names.OriginLabel(): mirror.OriginHash(key)},
			Annotations: map[string]string{
				mooringapi.ProvisionedBy: names.Provisioner(),
				names.MirrorClaim():      claim.Namespace + "/" + claim.Name, names.MirrorClaimUID(): string(claim.UID),
				names.OriginClaim(): key.String(), names.OriginClaimUID(): string(origin.UID),
				names.OriginVolume(): volume.Name, names.OriginVolumeUID(): string(volume.UID),
			},
		},
		Spec: corev1.PersistentVolumeSpec{ClaimRef: mirror.RefTo(claim), PersistentVolumeSource: volume.Spec.PersistentVolumeSource},
	}
}

// shared returns an origin and its volume, granted to the namespaces with the
// label team.
func shared() (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	origin := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "drives", Name: "mydrive", UID: "o", Finalizers: []string{names.Finalizer()},
			Annotations: map[string]string{names.ReadWriteGrant(): "team"}},
		Spec:   corev1.PersistentVolumeClaimSpec{VolumeName: "nfs"},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	return origin, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "nfs", UID: "ov"},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			ClaimRef:               mirror.RefTo(origin),
			PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/p"}},
		},
	}
}
