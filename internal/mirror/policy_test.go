package mirror_test

import (
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// Nothing but a plain wish to delete deletes.
func TestPolicyOf(t *testing.T) {
	const revoke, after = "pmp.crownlabs.polito.it/on-revoke", "pmp.crownlabs.polito.it/revoke-after"
	report := mirror.Policy{}
	for _, tc := range []struct {
		name        string
		annotations map[string]string
		want        mirror.Policy
	}{
		{"nothing", nil, report},
		{"report", map[string]string{revoke: "Report"}, report},
		{"report, with a delay", map[string]string{revoke: "Report", after: "1s"}, report},
		{"a delay alone", map[string]string{after: "1s"}, report},
		{"delete", map[string]string{revoke: "Delete"}, mirror.Policy{Delete: true, After: 5 * time.Minute}},
		{"delete, with a delay", map[string]string{revoke: "Delete", after: "1h30m"}, mirror.Policy{Delete: true, After: 90 * time.Minute}},
		{"delete at once", map[string]string{revoke: "Delete", after: "0s"}, mirror.Policy{Delete: true}},
		{"lower case", map[string]string{revoke: "delete"}, report},
		{"with a space", map[string]string{revoke: "Delete "}, report},
		{"blank", map[string]string{revoke: ""}, report},
		{"true", map[string]string{revoke: "true"}, report},
		{"another provisioner's annotation", map[string]string{"mirror.example.com/on-revoke": "Delete"}, report},
		{"a delay without unit", map[string]string{revoke: "Delete", after: "5"}, report},
		{"a blank delay", map[string]string{revoke: "Delete", after: ""}, report},
		{"a delay in days", map[string]string{revoke: "Delete", after: "1d"}, report},
		{"a negative delay", map[string]string{revoke: "Delete", after: "-1s"}, report},
		{"more than there is", map[string]string{revoke: "Delete", after: "10000000h"}, report},
	} {
		t.Run(tc.name, func(t *testing.T) {
			class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "pvc-mirror", Annotations: tc.annotations}, Provisioner: names.Provisioner()}
			if got := mirror.PolicyOf(names, class); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			class.Provisioner = "mirror.example.com"
			if got := mirror.PolicyOf(names, class); got != report {
				t.Errorf("a class of somebody else's: %+v", got)
			}
		})
	}
	if got := mirror.PolicyOf(names, nil); got != report {
		t.Errorf("a class that is gone: %+v", got)
	}
	other, err := mooringapi.NewNames("mirror.example.com")
	if err != nil {
		t.Fatal(err)
	}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{revoke: "Delete"}}, Provisioner: "mirror.example.com"}
	if got := mirror.PolicyOf(other, class); got != report {
		t.Errorf("under another name: %+v", got)
	}
}

func TestLimit(t *testing.T) {
	for _, tc := range []struct {
		limit         mirror.Limit
		mirrors, want int
	}{
		{mirror.Limit{}, 1000, 0},
		{mirror.Limit{Count: 20, Percent: 5}, 0, 20},
		{mirror.Limit{Count: 20, Percent: 5}, 400, 20},
		{mirror.Limit{Count: 20, Percent: 5}, 439, 21},
		{mirror.Limit{Count: 20, Percent: 5}, 5000, 250},
		{mirror.Limit{Count: 20}, 5000, 20},
		{mirror.Limit{Percent: 5}, 19, 0},
		{mirror.Limit{Percent: 100}, 7, 7},
	} {
		if got := tc.limit.Of(tc.mirrors); got != tc.want {
			t.Errorf("%+v of %d mirrors: %d, want %d", tc.limit, tc.mirrors, got, tc.want)
		}
	}
}
