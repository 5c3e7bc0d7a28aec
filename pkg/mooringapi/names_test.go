package mooringapi_test

import (
	"strings"
	"testing"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

func TestNewNames(t *testing.T) {
	for _, tc := range []struct {
		name, provisioner, wantError string
	}{
		{"the default", mooringapi.DefaultProvisioner, ""},
		{"an own domain", "mirror.example.com", ""},
		{"one word", "mirror", ""},
		{"as long as a StorageClass takes", strings.Repeat("a.", 31) + "a", ""},
		{"longer", strings.Repeat("a.", 32), "expected a DNS subdomain"},
		{"longer than a StorageClass takes", strings.Repeat("a.", 31) + "aa", "at most 63"},
		{"empty", "", "expected a DNS subdomain"},
		{"upper case", "Mirror.example.com", "expected a DNS subdomain"},
		{"a slash", "example.com/mirror", "expected a DNS subdomain"},
		{"longer than a DNS subdomain", strings.Repeat("a.", 127) + "a", "expected a DNS subdomain"},
		{"Kubernetes' own", "kubernetes.io", "belong to Kubernetes"},
		{"below Kubernetes' own", "mirror.k8s.io", "belong to Kubernetes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			names, err := mooringapi.NewNames(tc.provisioner)
			if tc.wantError == "" {
				if err != nil || names.Provisioner() != tc.provisioner {
					t.Fatalf("got %q, %v; want %q", names.Provisioner(), err, tc.provisioner)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.wantError) {
				t.Fatalf("got error %v; want one with %q", err, tc.wantError)
			}
		})
	}
}

// The names are a contract with manifests that exist already: a change here is
// a change for every user.
func TestNamesAreTheContract(t *testing.T) {
	var n mooringapi.Names
	for got, want := range map[string]string{
		n.Provisioner():     "pmp.crownlabs.polito.it",
		n.ReadWriteGrant():  "pmp.crownlabs.polito.it/required-target-ns-labels",
		n.ReadOnlyGrant():   "pmp.crownlabs.polito.it/read-only-target-ns-labels",
		n.GrantExpires():    "pmp.crownlabs.polito.it/grant-expires",
		n.Origin():          "pmp.crownlabs.polito.it/origin",
		n.Finalizer():       "pmp.crownlabs.polito.it/mirrored",
		n.Condition():       "pmp.crownlabs.polito.it/Mirrored",
		n.MirrorClaim():     "pmp.crownlabs.polito.it/mirror-claim",
		n.MirrorClaimUID():  "pmp.crownlabs.polito.it/mirror-claim-uid",
		n.OriginClaim():     "pmp.crownlabs.polito.it/origin-claim",
		n.OriginClaimUID():  "pmp.crownlabs.polito.it/origin-claim-uid",
		n.OriginVolume():    "pmp.crownlabs.polito.it/origin-volume",
		n.OriginVolumeUID(): "pmp.crownlabs.polito.it/origin-volume-uid",
		n.GrantedBy():       "pmp.crownlabs.polito.it/granted-by",
		n.ServedBy():        "pmp.crownlabs.polito.it/served-by",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if n.OriginLabel() != n.Origin() {
		t.Errorf("the label %q and the annotation %q share one name by contract", n.OriginLabel(), n.Origin())
	}
}

func TestIsMirrorVolume(t *testing.T) {
	other, err := mooringapi.NewNames("mirror.example.com")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name        string
		annotations map[string]string
		want        bool
	}{
		{"none", nil, false},
		{"another provisioner's volume", map[string]string{mooringapi.ProvisionedBy: "nfs.csi.k8s.io"}, false},
		{"ours", map[string]string{mooringapi.Names{}.MirrorClaimUID(): "u"}, true},
		{"made under another name", map[string]string{other.MirrorClaimUID(): "u"}, true},
		{"a name that only looks alike", map[string]string{"example.com/not-mirror-claim-uid": "u"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := mooringapi.IsMirrorVolume(tc.annotations); got != tc.want {
				t.Fatalf("got %v, want %v", got, tc.want)
			}
		})
	}
}
