package model

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

const (
	tenantsOnly = "type=tenant"
	// ownerClass is a class that no provisioner serves, of static volumes.
	ownerClass = "static"
	gibibytes  = "10Gi"
)

var names mooringapi.Names // the default provisioner name

func (m *Model) must(err error, what string, args ...any) {
	m.Helper()
	if err != nil {
		m.Fatalf("%s: %v", fmt.Sprintf(what, args...), err)
	}
}

// namespace creates a namespace of the model's own with these labels.
func (m *Model) namespace(name string, labels map[string]string) string {
	m.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.prefix + "-" + name, Labels: labels}}
	m.must(m.Create(m.Context(), namespace), "create a namespace")
	return namespace.Name
}

// class creates a class of Mooring's and returns its name.
func (m *Model) class(name string) string {
	m.Helper()
	class := &storagev1.StorageClass{ObjectMeta: metaNamed(m.prefix + "-" + name), Provisioner: names.Provisioner()}
	m.must(m.Create(m.Context(), class), "create a class")
	m.Cleanup(func() { _ = m.Delete(context.Background(), class) })
	return class.Name
}

// driver creates the CSIDriver object of the driver that the table does not know,
// unless another model of this cluster has.
func (m *Model) driver() {
	m.Helper()
	object := &storagev1.CSIDriver{ObjectMeta: metaNamed(driver), Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)}}
	m.must(client.IgnoreAlreadyExists(m.Create(m.Context(), object)), "create a CSIDriver")
}

// show returns objects as they are in the cluster, with Mooring's events.
func (m *Model) show(objects ...client.Object) string {
	var text strings.Builder
	for _, object := range objects {
		if err := m.Get(context.Background(), keyOf(object), object); err != nil {
			fmt.Fprintf(&text, "---\n%T %s: %v\n", object, keyOf(object), err)
			continue
		}
		object.SetManagedFields(nil)
		manifest, err := yaml.Marshal(object)
		fmt.Fprintf(&text, "---\n# %T\n%s", object, manifest)
		if err != nil {
			fmt.Fprintln(&text, err)
		}
		text.WriteString(m.showEvents(object))
	}
	return text.String()
}

func (m *Model) showEvents(object client.Object) string {
	var all eventsv1.EventList
	if err := m.List(context.Background(), &all, client.InNamespace(object.GetNamespace())); err != nil {
		return fmt.Sprintln("# events:", err)
	}
	text := ""
	for _, event := range all.Items {
		if event.Regarding.UID == object.GetUID() && event.ReportingController == "mooring-controller" {
			text += fmt.Sprintf("# event %s %s: %s\n", event.Type, event.Reason, event.Note)
		}
	}
	return text
}

func conditionOf(claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeClaimCondition {
	for _, condition := range claim.Status.Conditions {
		if string(condition.Type) == names.Condition() {
			return condition
		}
	}
	return corev1.PersistentVolumeClaimCondition{}
}

func annotate(claim *corev1.PersistentVolumeClaim, key, value string) {
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[key] = value
}

func requesting(size string) corev1.VolumeResourceRequirements {
	return corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}
}

func keyOf(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }

func metaNamed(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func jsonMerge(patch string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(patch))
}
