package retain

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mooring-k8s/mooring/internal/strictyaml"
)

// The header of a policy file.
const (
	PolicyAPIVersion = "mooring-k8s.github.io/v1"
	PolicyKind       = "RetainPolicy"
)

// anyValue in a list of a policy allows every value; what a policy does not
// name it does not allow.
const anyValue = "*"

// Policy narrows what a manifest may say. Every list must be written, since a
// forgotten list must not mean "everything".
type Policy struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Servers are the NFS and SMB servers that a volume may reach, in-tree or
	// through CSI.
	Servers []PolicyServer `json:"servers"`
	// Drivers are the CSI drivers that a volume may use.
	Drivers []string `json:"drivers"`
	// Namespaces and StorageClasses are those of the claims.
	Namespaces     []string `json:"namespaces"`
	StorageClasses []string `json:"storageClasses"`
}

// PolicyServer is one server and the directories of it that may be reached.
type PolicyServer struct {
	Name string `json:"name"`
	// Exports are directories; what is below one is allowed as well.
	Exports []string `json:"exports"`
}

// ParsePolicy returns the policy in data, or every problem that it finds.
func ParsePolicy(data []byte) (Policy, strictyaml.Problems) {
	var p Policy
	if problems := strictyaml.Decode(data, MaxManifestBytes, &p); len(problems) > 0 {
		return Policy{}, problems
	}
	var errs field.ErrorList
	if p.APIVersion != PolicyAPIVersion || p.Kind != PolicyKind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), p.Kind, "expected apiVersion "+PolicyAPIVersion+" and kind "+PolicyKind))
	}
	for name, written := range map[string]bool{
		"servers": p.Servers != nil, "drivers": p.Drivers != nil,
		"namespaces": p.Namespaces != nil, "storageClasses": p.StorageClasses != nil,
	} {
		if !written {
			errs = append(errs, field.Required(field.NewPath(name), `expected a list; write [] to allow none, or ["*"] to allow all (servers are always named)`))
		}
	}
	for i, server := range p.Servers {
		errs = append(errs, server.check(field.NewPath("servers").Index(i))...)
	}
	if len(errs) > 0 {
		return Policy{}, problemsOf(errs)
	}
	return p, nil
}

func (s PolicyServer) check(at *field.Path) field.ErrorList {
	errs := checkServer(at.Child("name"), s.Name)
	if len(s.Exports) == 0 {
		errs = append(errs, field.Required(at.Child("exports"), "expected at least one directory; / allows all"))
	}
	for i, export := range s.Exports {
		errs = append(errs, checkAbsolute(at.Child("exports").Index(i), export)...)
	}
	return errs
}

// Check returns how the manifest leaves the policy; nothing if it does not.
func (p Policy) Check(m Manifest) strictyaml.Problems {
	var problems strictyaml.Problems
	deny := func(field, format string, args ...any) {
		problems = append(problems, strictyaml.Problem{Field: field, Detail: fmt.Sprintf(format, args...)})
	}
	spec := m.Volume.Spec
	if !allows(p.Namespaces, spec.ClaimRef.Namespace) {
		deny("spec.claimRef.namespace", "%q is not allowed by the policy; it allows %q", spec.ClaimRef.Namespace, p.Namespaces)
	}
	if !allows(p.StorageClasses, spec.StorageClassName) {
		deny("spec.storageClassName", "%q is not allowed by the policy; it allows %q", spec.StorageClassName, p.StorageClasses)
	}
	if spec.CSI != nil && !allows(p.Drivers, spec.CSI.Driver) {
		deny("spec.csi.driver", "%q is not allowed by the policy; it allows %q", spec.CSI.Driver, p.Drivers)
	}
	for _, location := range m.Locations {
		if location.isOnServer() && !slices.ContainsFunc(p.Servers, location.isAllowedBy) {
			deny("spec", "%s is not allowed by the policy, which names servers and their exports", location)
		}
	}
	return problems
}

func allows(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, anyValue)
}

// isOnServer says whether the location is on a server that a policy can name.
func (l Location) isOnServer() bool {
	return strings.HasPrefix(l.System, "nfs://") || strings.HasPrefix(l.System, "smb://")
}

func (l Location) isAllowedBy(server PolicyServer) bool {
	_, host, _ := strings.Cut(l.System, "://")
	if host != normalHost(server.Name) {
		return false
	}
	return slices.ContainsFunc(server.Exports, func(export string) bool {
		if strings.HasPrefix(l.System, "smb://") {
			export = strings.ToLower(export)
		}
		return l.Path == path.Clean(export) || isBelow(l.Path, export)
	})
}
