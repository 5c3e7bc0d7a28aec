package mooringapi_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// An installation has one provisioner name, which all its keys begin with.
func ExampleNewNames() {
	names, err := mooringapi.NewNames("mirror.example.com")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(names.ReadWriteGrant())
	fmt.Println(names.Condition())
	// Output:
	// mirror.example.com/required-target-ns-labels
	// mirror.example.com/Mirrored
}

// CrownLabs shares each tenant's drive with that tenant's namespaces.
func ExampleNames_Grant() {
	var names mooringapi.Names // CrownLabs' own name is the default
	drive := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "mydrive-pvcs", Name: "mydrive-ada"}}
	if err := names.Grant(drive, "crownlabs.polito.it/type=tenant,crownlabs.polito.it/name=ada"); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(drive.Annotations[names.ReadWriteGrant()])
	fmt.Println(names.Grant(drive, "!suspended") != nil)
	// Output:
	// crownlabs.polito.it/type=tenant,crownlabs.polito.it/name=ada
	// true
}

func ExampleNames_ExpireGrants() {
	var names mooringapi.Names
	claim := &corev1.PersistentVolumeClaim{}
	if err := names.GrantReadOnly(claim, "course=chemistry"); err != nil {
		fmt.Println(err)
		return
	}
	if err := names.ExpireGrants(claim, time.Date(2027, 1, 31, 18, 0, 0, 0, time.UTC)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(claim.Annotations[names.ReadOnlyGrant()], "until", claim.Annotations[names.GrantExpires()])
	// Output: course=chemistry until 2027-01-31T18:00:00Z
}

func ExampleNames_NewMirrorClaim() {
	var names mooringapi.Names
	origin := types.NamespacedName{Namespace: "mydrive-pvcs", Name: "mydrive-ada"}
	claim, err := names.NewMirrorClaim(origin, "tenant-ada", "mydrive", mooringapi.MirrorOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(claim.Annotations[names.Origin()], *claim.Spec.StorageClassName, claim.Spec.AccessModes)

	_, err = names.NewMirrorClaim(origin, "mydrive-pvcs", "mydrive", mooringapi.MirrorOptions{})
	fmt.Println(err)
	// Output:
	// mydrive-pvcs/mydrive-ada pvc-mirror [ReadWriteMany]
	// mirror claim: namespace "mydrive-pvcs" is the origin's own: expected another one; use the claim "mydrive-ada" there directly
}

func ExampleNames_StateOf() {
	var names mooringapi.Names
	claim := &corev1.PersistentVolumeClaim{}
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
		Type:               corev1.PersistentVolumeClaimConditionType(names.Condition()),
		Status:             corev1.ConditionFalse,
		Reason:             mooringapi.ReasonNotShared,
		LastTransitionTime: metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}}
	switch state := names.StateOf(claim); state.State {
	case mooringapi.StateBound:
		fmt.Println("start the Pod")
	case mooringapi.StateRevoked:
		fmt.Println("tell the user: revoked since", state.Since.UTC().Format(time.DateOnly))
	default:
		fmt.Println("wait:", state.State, state.Message)
	}
	// Output: tell the user: revoked since 2026-01-02
}
