package mooringapi_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// shareDrive lets a tenant's namespaces mirror the tenant's drive.
func shareDrive(names mooringapi.Names, drive *corev1.PersistentVolumeClaim, tenant string) error {
	return names.Grant(drive, "crownlabs.polito.it/type=tenant,crownlabs.polito.it/name="+tenant)
}

// mirrorOf returns the claim by which Pods of a tenant's namespace reach the drive.
func mirrorOf(names mooringapi.Names, drive *corev1.PersistentVolumeClaim, namespace string) (*corev1.PersistentVolumeClaim, error) {
	origin := types.NamespacedName{Namespace: drive.Namespace, Name: drive.Name}
	return names.NewMirrorClaim(origin, namespace, "mydrive", mooringapi.MirrorOptions{})
}

// mayStart says whether a Pod that uses the mirror can start, or why it cannot.
func mayStart(names mooringapi.Names, mirror *corev1.PersistentVolumeClaim) (start bool, why string) {
	state := names.StateOf(mirror)
	if state.State == mooringapi.StateBound {
		return true, ""
	}
	return false, fmt.Sprintf("%s: %s", state.State, state.Message)
}

// An operator such as CrownLabs', without a string constant for Mooring.
func Example() {
	names, err := mooringapi.NewNames("pmp.crownlabs.polito.it")
	if err != nil {
		fmt.Println(err)
		return
	}
	drive := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "mydrive-pvcs", Name: "mydrive-ada"}}
	if err := shareDrive(names, drive, "ada"); err != nil {
		fmt.Println(err)
		return
	}
	mirror, err := mirrorOf(names, drive, "tenant-ada")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mirror.Annotations)

	mirror.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{ // as the controller writes it
		Type:    corev1.PersistentVolumeClaimConditionType(names.Condition()),
		Status:  corev1.ConditionFalse,
		Reason:  mooringapi.ReasonOriginPending,
		Message: "the origin claim is not bound yet",
	}}
	fmt.Println(mayStart(names, mirror))
	// Output:
	// map[pmp.crownlabs.polito.it/origin:mydrive-pvcs/mydrive-ada]
	// false Waiting: the origin claim is not bound yet
}
