package integration_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	provisioner "sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// formerVolume returns the volume that CrownLabs' provisioner makes of an
// origin's, before the library adds whose it is: its source as it is, the
// class's policy, a size of one byte, labels in place of a record.
func formerVolume(name string, class *storagev1.StorageClass, claim, origin *corev1.PersistentVolumeClaim, behind *corev1.PersistentVolume) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"crownlabs.polito.it/mirrored-pv":            behind.Name,
			"crownlabs.polito.it/mirrored-pvc-name":      origin.Name,
			"crownlabs.polito.it/mirrored-pvc-namespace": origin.Namespace,
		}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1")},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: behind.Spec.CSI.DeepCopy()},
			PersistentVolumeReclaimPolicy: ptr.Deref(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete),
			StorageClassName:              class.Name,
			MountOptions:                  behind.Spec.MountOptions,
			VolumeMode:                    behind.Spec.VolumeMode,
		},
	}
}

// former is a mirror that the former provisioner made.
type former struct {
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
	origin origin
	lost   bool // its origin is gone
}

// formers makes n mirrors of n/10 origins, as the former provisioner and its
// library make them, waits until the binder has bound them, and deletes every
// other origin.
func (w *world) formers(n int) (formers []*former, owner string) {
	w.Helper()
	served := &storagev1.StorageClass{}
	w.must(w.Get(w.Context(), types.NamespacedName{Name: class}, served), "get the class")
	owner = w.namespace("owner", nil)
	tenants := w.tenants()
	var origins []origin
	for i := range n / 10 {
		origins = append(origins, w.origin(owner, fmt.Sprintf("data%d", i), granting(tenantsOnly)))
	}
	for i := range n {
		of := i / 10
		f := &former{origin: origins[of], lost: of%2 == 1}
		f.claim = w.mirror(tenants[i%10], fmt.Sprintf("m%d", i), f.origin)
		f.volume = formerVolume(mirror.VolumeName(f.claim.UID), served, f.claim, f.origin.PersistentVolumeClaim, f.origin.volume)
		f.volume.Annotations = map[string]string{mooringapi.ProvisionedBy: served.Provisioner}
		f.volume.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim",
			Namespace: f.claim.Namespace, Name: f.claim.Name, UID: f.claim.UID, ResourceVersion: f.claim.ResourceVersion}
		w.must(w.Create(w.Context(), f.volume), "create a mirror volume as the former provisioner does")
		formers = append(formers, f)
	}
	for _, f := range formers {
		w.isBound(f.claim)
	}
	for i, o := range origins {
		if i%2 == 1 {
			w.must(w.Delete(w.Context(), o.PersistentVolumeClaim), "delete an origin")
			w.isGone(o.PersistentVolumeClaim)
			w.must(w.Delete(w.Context(), o.volume), "delete its volume")
		}
	}
	return formers, owner
}

// state is what must not change where nothing is to be touched.
func (w *world) state(formers []*former) map[string]string {
	w.Helper()
	versions := map[string]string{}
	for _, f := range formers {
		for _, object := range []client.Object{f.claim, f.volume} {
			w.must(w.Get(w.Context(), keyOf(object), object), "get an object")
			versions[fmt.Sprintf("%T %s", object, object.GetName())] = object.GetResourceVersion()
		}
	}
	return versions
}

// notAdopted counts the events by volume.
func (w *world) notAdopted(ctx context.Context) map[string]int {
	w.Helper()
	var events eventsv1.EventList
	w.must(w.List(ctx, &events, client.InNamespace(metav1.NamespaceDefault)), "list events")
	counts := map[string]int{}
	for _, event := range events.Items {
		if event.Reason == "NotAdopted" {
			counts[event.Regarding.Name]++
		}
	}
	return counts
}

// isAdopted waits until a mirror is as safe and true as one of Mooring's own.
func (w *world) isAdopted(f *former) {
	w.Helper()
	w.until(f.claim.Name+" adopted", func(ctx context.Context) string {
		for _, object := range []client.Object{f.claim, f.volume, f.origin.PersistentVolumeClaim} {
			if err := w.Get(ctx, keyOf(object), object); err != nil {
				return err.Error()
			}
		}
		record := mirror.RecordOf(names, f.volume)
		ofVolume, ofClaim := f.volume.Spec.Capacity[corev1.ResourceStorage], f.claim.Status.Capacity[corev1.ResourceStorage]
		switch {
		case f.volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
			return "its policy is " + string(f.volume.Spec.PersistentVolumeReclaimPolicy)
		case !mirror.IsMirrorOf(names, f.volume, f.claim) || !record.Adopted || record.Origin != keyOf(f.origin) || record.OriginUID != f.origin.UID:
			return fmt.Sprintf("its record is %+v", record)
		case f.volume.Labels[names.OriginLabel()] != mirror.OriginHash(keyOf(f.origin)):
			return "it has no label"
		case ofVolume.String() != gibibytes || ofClaim.String() != gibibytes:
			return fmt.Sprintf("the volume has %s, the claim %s", ofVolume.String(), ofClaim.String())
		case !slices.Contains(f.origin.Finalizers, names.Finalizer()):
			return "its origin has no finalizer"
		}
		return ""
	}, f.claim, f.volume, f.origin.PersistentVolumeClaim)
}

// TestAdoption starts Mooring where the former provisioner made 200 mirrors, of
// which the origins of half are gone: Off, then Report, then Enforce.
func TestAdoption(t *testing.T) {
	t.Parallel()
	plane := ownPlane(t, controlplane.Options{CrossNamespace: true})
	w := newWorld(t, plane, true)
	own := install(t, plane, chart.Options{Values: map[string]any{
		"class": map[string]any{"onRevoke": "Delete", "revokeAfter": "1s"}, "maxRevocations": "1000",
	}})
	formers, owner := w.formers(200)

	// Off: nothing is touched, whatever else the controller does.
	before := w.state(formers)
	off := own.replica(t, "off", "--leader-elect=false", "--adopt=Off").start(t)
	w.isBound(w.mirror(w.namespace("barrier", map[string]string{"type": "tenant"}), "m", formers[0].origin))
	if diff := cmp.Diff(before, w.state(formers)); diff != "" {
		t.Errorf("with --adopt=Off something was written (-before +after):\n%s", diff)
	}
	w.must(off.Kill(), "stop the controller")

	began := time.Now()
	report := own.replica(t, "report", "--leader-elect=false", "--adopt=Report").start(t)
	for _, f := range formers {
		w.until("volume of "+f.claim.Name+" Retain", func(ctx context.Context) string {
			w.must(w.Get(ctx, keyOf(f.volume), f.volume), "get a volume")
			return unless(f.volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain, "it is not")
		}, f.volume)
	}
	t.Logf("%d volumes Retain %v after the controller was started", len(formers), time.Since(began).Round(10*time.Millisecond))
	lost := w.halvesAreRight(formers, report)
	w.endsAreReported(formers)
	w.lateOriginIsAdopted(lost[0], owner)
	w.claimsOfAdoptedGo(formers, report)
	w.must(report.Kill(), "stop the controller")

	own.replica(t, "enforce", "--leader-elect=false", "--adopt=Enforce").start(t)
	for _, f := range formers[:9] { // of the origin whose grant has ended
		w.isGone(f.claim)
		w.isGone(f.volume)
	}
	for _, f := range formers[20:30] {
		w.isBound(f.claim)
	}
}

// halvesAreRight sees the half whose origins are there adopted, and the others
// listed and left; it returns one of each lost origin.
func (w *world) halvesAreRight(formers []*former, report *replica) []*former {
	w.Helper()
	var lost []*former
	for _, f := range formers {
		if f.lost {
			lost = append(lost, f)
		} else {
			w.isAdopted(f)
		}
	}
	w.until("the other half is listed", func(ctx context.Context) string {
		if scrape := report.metrics(w.T); !strings.Contains(scrape, fmt.Sprintf("mooring_volumes_unproven %d\n", len(lost))) {
			return "not by the metric"
		}
		events := w.notAdopted(ctx)
		for _, f := range lost {
			if events[f.volume.Name] != 1 {
				return fmt.Sprintf("%d events about %s", events[f.volume.Name], f.volume.Name)
			}
		}
		return unless(len(events) == len(lost), fmt.Sprintf("events about %d volumes, want %d", len(events), len(lost)))
	})
	for _, f := range lost {
		bound := w.isBound(f.claim)
		if mirror.RecordOf(names, bound).IsMirror() || bound.Labels[names.OriginLabel()] != "" || conditionOf(f.claim).Type != "" {
			w.Errorf("what cannot be proven was written:\n%s", w.show(bound, f.claim))
		}
		size := bound.Spec.Capacity[corev1.ResourceStorage]
		if size.String() != "1" {
			w.Errorf("the size of what cannot be proven is %s", size.String())
		}
	}
	return lost
}

// endsAreReported ends the grant of the first origin: all its mirrors are told,
// and none is deleted although the class says so after a second.
func (w *world) endsAreReported(formers []*former) {
	w.Helper()
	w.grantTo(formers[0].origin.PersistentVolumeClaim, "nobody=yes")
	for _, f := range formers[:10] {
		w.isSaid(f.claim, corev1.ConditionFalse, mirror.NotShared)
	}
	late := w.mirror(formers[0].claim.Namespace, "late", formers[20].origin)
	w.isBound(late)
	w.grantTo(formers[20].origin.PersistentVolumeClaim, "nobody=yes")
	w.isGone(late) // of Mooring's own making: so much later than a second
	for _, f := range append(formers[:10:10], formers[20:30]...) {
		w.isBound(f.claim)
	}
	w.grantTo(formers[20].origin.PersistentVolumeClaim, tenantsOnly)
	for _, f := range formers[20:30] {
		w.isSaid(f.claim, corev1.ConditionTrue, mirror.Mirrored)
	}
}

// lateOriginIsAdopted brings an origin back with the data that its mirrors reach:
// what could not be proven is proven now.
func (w *world) lateOriginIsAdopted(f *former, owner string) {
	w.Helper()
	source := f.origin.volume.Spec.CSI
	f.origin = w.originOf(owner, f.origin.Name, func(v *corev1.PersistentVolume) { v.Spec.CSI = source.DeepCopy() }, granting(tenantsOnly))
	w.isAdopted(f)
}

// claimsOfAdoptedGo deletes the claim of an adopted mirror, and one that could
// not be proven: the object of the first goes, that of the other stays.
func (w *world) claimsOfAdoptedGo(formers []*former, report *replica) {
	w.Helper()
	adopted, unproven := formers[9], formers[199]
	for _, f := range []*former{adopted, unproven} {
		w.must(w.Delete(w.Context(), f.claim), "delete a claim")
		w.isGone(f.claim)
	}
	w.isGone(adopted.volume)
	w.hasPhase(unproven.volume, corev1.VolumeReleased)
	if n := len(formers)/2 - 10; !strings.Contains(report.metrics(w.T), fmt.Sprintf("mooring_volumes_unproven %d\n", n)) {
		w.Errorf("the metric does not list %d volumes", n)
	}
}

// formerEnv tells this test's own executable to be the former provisioner of the
// cluster of a kubeconfig: a process of its own, since the library writes to
// what all clients of a process share.
const formerEnv = "MOORING_TEST_FORMER_PROVISIONER"

// becomeFormerProvisioner runs the former provisioner, if this process is to be
// it, until it is killed.
func becomeFormerProvisioner() {
	kubeconfig := os.Getenv(formerEnv)
	if kubeconfig == "" {
		return
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		panic(err)
	}
	api := kubernetes.NewForConfigOrDie(config)
	library := provisioner.NewProvisionController(context.Background(), api, names.Provisioner(), formerProvisioner{api}, provisioner.LeaderElection(false))
	library.Run(context.Background())
	os.Exit(1)
}

// formerProvisioner makes volumes as CrownLabs' provisioner does, for the
// library that CrownLabs' provisioner runs on. It grants everybody.
type formerProvisioner struct{ api kubernetes.Interface }

func (p formerProvisioner) Provision(ctx context.Context, options provisioner.ProvisionOptions) (*corev1.PersistentVolume, provisioner.ProvisioningState, error) {
	ref := options.PVC.Spec.DataSourceRef
	o, err := p.api.CoreV1().PersistentVolumeClaims(*ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, provisioner.ProvisioningFinished, err
	}
	behind, err := p.api.CoreV1().PersistentVolumes().Get(ctx, o.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return nil, provisioner.ProvisioningFinished, err
	}
	return formerVolume(options.PVName, options.StorageClass, options.PVC, o, behind), provisioner.ProvisioningFinished, nil
}

func (formerProvisioner) Delete(context.Context, *corev1.PersistentVolume) error { return nil }

// TestBothProvisioners lets the former provisioner and Mooring serve the same
// 200 claims at once: each gets one volume, and all of them become Mooring's.
// Those of the first origin are granted late, so that only the other one, which
// grants everybody here, makes volumes of it; for the rest they race.
func TestBothProvisioners(t *testing.T) {
	t.Parallel()
	w, own := ownWorld(t, controlplane.Options{})
	own.replica(t, "mooring-0").start(t)
	self, err := os.Executable()
	w.must(err, "find this executable")
	former, err := w.plane.Command(controlplane.Command{Name: "former", Path: self,
		Env: append(os.Environ(), formerEnv+"="+w.plane.AdminKubeconfigFile())})
	w.must(err, "prepare the former provisioner")
	w.must(former.Start(context.Background()), "start the former provisioner")
	owner := w.namespace("owner", nil)
	var origins []origin
	for i := range 4 {
		origins = append(origins, w.origin(owner, fmt.Sprintf("data%d", i), granting([]string{"nobody=yes", tenantsOnly}[min(i, 1)])))
	}

	const n = 200
	tenants := w.tenants()
	var claims []*corev1.PersistentVolumeClaim
	for i := range n {
		claims = append(claims, w.mirror(tenants[i%10], fmt.Sprintf("m%d", i), origins[i%4]))
	}
	for i := 0; i < n; i += 4 {
		w.isBound(claims[i])
	}
	w.grantTo(origins[0].PersistentVolumeClaim, tenantsOnly)
	adopted := 0
	for _, claim := range claims {
		volume := w.isBound(claim)
		w.until("recorded", func(ctx context.Context) string {
			w.must(w.Get(ctx, keyOf(volume), volume), "get a volume")
			w.must(w.Get(ctx, keyOf(claim), claim), "get a claim")
			size := claim.Status.Capacity[corev1.ResourceStorage]
			return unless(mirror.IsMirrorOf(names, volume, claim) && volume.Status.Phase == corev1.VolumeBound && size.String() == gibibytes &&
				volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain && conditionOf(claim).Status != corev1.ConditionFalse, "it is not")
		}, claim, volume)
		if mirror.RecordOf(names, volume).Adopted {
			adopted++
		}
	}
	var volumes corev1.PersistentVolumeList
	w.must(w.List(w.Context(), &volumes), "list volumes")
	if len(volumes.Items) != n+len(origins) {
		t.Errorf("%d volumes, want %d", len(volumes.Items), n+len(origins))
	}
	for i := range volumes.Items {
		if phase := volumes.Items[i].Status.Phase; phase != corev1.VolumeBound {
			t.Errorf("volume %s is %s", volumes.Items[i].Name, phase)
		}
	}
	if told := w.notAdopted(w.Context()); len(told) != 0 {
		t.Errorf("%d volumes that were not bound yet were told not to be provable", len(told))
	}
	if adopted < n/4 {
		t.Errorf("the former provisioner made %d volumes:\n%s", adopted, former.LogTail(20))
	}
	t.Logf("of %d volumes the former provisioner made %d", n, adopted)
}
