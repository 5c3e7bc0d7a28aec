package retain

import (
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits beyond which a value is a mistake.
const (
	maxPath   = 1024 // NFS_MAXPATHLEN, RFC 1813
	maxHandle = 1024 // far above what drivers make; CSI itself says 128 bytes
)

func checkNFS(at *field.Path, nfs *corev1.NFSVolumeSource) field.ErrorList {
	errs := checkServer(at.Child("server"), nfs.Server)
	return append(errs, checkAbsolute(at.Child("path"), nfs.Path)...)
}

// checkServer accepts a host name or an IP address without brackets, port or
// zone.
func checkServer(at *field.Path, server string) field.ErrorList {
	if server == "" {
		return field.ErrorList{field.Required(at, "expected the server's host name or IP address")}
	}
	if addr, err := netip.ParseAddr(server); err == nil && addr.Zone() == "" && !addr.IsUnspecified() {
		return nil
	}
	name := strings.ToLower(strings.TrimSuffix(server, "."))
	if allDigits.MatchString(name) || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return field.ErrorList{field.Invalid(at, server, "expected a host name, or an IPv4 or IPv6 address without brackets and port")}
	}
	return nil
}

var allDigits = regexp.MustCompile(`^[0-9.]*$`) // a mistyped IPv4 address is no host name

func checkAbsolute(at *field.Path, dir string) field.ErrorList {
	switch {
	case dir == "":
		return field.ErrorList{field.Required(at, "expected the exported directory's absolute path")}
	case !strings.HasPrefix(dir, "/") || path.Clean(dir) != dir || len(dir) > maxPath || strings.ContainsFunc(dir, unicode.IsControl):
		return field.ErrorList{field.Invalid(at, dir, "expected an absolute path without .., //, a slash at its end or control characters, of at most 1024 bytes")}
	}
	return nil
}

// checkRelative accepts a directory below another one; empty means that one.
func checkRelative(at *field.Path, dir string) field.ErrorList {
	switch {
	case dir == "":
		return nil
	case strings.Contains(dir, "${"):
		return field.ErrorList{field.Invalid(at, dir, "a template is filled in at mount time; write the directory out, so that it can be reviewed")}
	case path.Clean("/"+dir) != "/"+dir || strings.ContainsFunc(dir, unicode.IsControl):
		return field.ErrorList{field.Invalid(at, dir, "expected a relative path without .., // or slashes at its ends")}
	}
	return nil
}

func checkCSI(at *field.Path, csi *corev1.CSIPersistentVolumeSource) field.ErrorList {
	errs := checkDriver(at.Child("driver"), csi.Driver)
	handle := csi.VolumeHandle
	switch {
	case handle == "":
		errs = append(errs, field.Required(at.Child("volumeHandle"), "expected the handle by which the driver knows the volume"))
	case len(handle) > maxHandle || strings.ContainsFunc(handle, notPrintable) || strings.Contains(handle, "^"):
		// kubelet and the attach controller join driver and handle with ^.
		errs = append(errs, field.Invalid(at.Child("volumeHandle"), handle, "expected printable characters without white space and ^, at most 1024"))
	}
	errs = append(errs, checkAttributes(at.Child("volumeAttributes"), csi.VolumeAttributes)...)
	errs = append(errs, checkSecretRefs(at, csi)...)
	return append(errs, checkKnownDriver(at, csi)...)
}

func checkDriver(at *field.Path, driver string) field.ErrorList {
	if driver == "" {
		return field.ErrorList{field.Required(at, "expected the driver's name, such as nfs.csi.k8s.io")}
	}
	if len(driver) > 63 || len(validation.IsDNS1123Subdomain(driver)) > 0 {
		return field.ErrorList{field.Invalid(at, driver, "expected a lower-case DNS subdomain of at most 63 characters")}
	}
	return nil
}

func checkAttributes(at *field.Path, all map[string]string) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		lower := strings.ToLower(name)
		switch {
		case name == "" || strings.ContainsFunc(name+all[name], unicode.IsControl):
			errs = append(errs, field.Forbidden(at.Key(name), "is empty or has control characters"))
		case seen[lower]:
			errs = append(errs, field.Forbidden(at.Key(name), "is there twice in different case; drivers that ignore case would take either"))
		case looksSecret(name+"=") || looksSecret(all[name]):
			errs = append(errs, field.Forbidden(at.Key(name), "looks like a secret; receipts and everybody who reads volumes would show it: use a Secret and nodePublishSecretRef or nodeStageSecretRef"))
		}
		seen[lower] = true
	}
	return errs
}

// secretWord finds options and attributes that hold a secret, such as
// password=x, smbPassword=x or AccountKey=x, and addresses that do, such as
// redis://user:x@host. Names that only lead to a Secret are no secrets.
var secretWord = regexp.MustCompile(`(?i)(^|[^a-z])(pass|secret|accesskey|secretkey|userkey|adminkey|api-?key` +
	`|[a-z]*(accountkey|passwd|password|passphrase|token|clientsecret))\s*=` +
	`|(^|//)[^/\s:@]*:[^/\s@]+@|-----BEGIN`)

func looksSecret(text string) bool { return secretWord.MatchString(text) }

func checkSecretRefs(at *field.Path, csi *corev1.CSIPersistentVolumeSource) field.ErrorList {
	var errs field.ErrorList
	for _, ref := range []struct {
		name  string
		value *corev1.SecretReference
	}{
		{"controllerPublishSecretRef", csi.ControllerPublishSecretRef},
		{"nodeStageSecretRef", csi.NodeStageSecretRef},
		{"nodePublishSecretRef", csi.NodePublishSecretRef},
		{"controllerExpandSecretRef", csi.ControllerExpandSecretRef},
		{"nodeExpandSecretRef", csi.NodeExpandSecretRef},
	} {
		if ref.value != nil && (ref.value.Name == "" || ref.value.Namespace == "") {
			errs = append(errs, field.Required(at.Child(ref.name), "expected name and namespace of the Secret"))
		}
	}
	return errs
}

// notPrintable finds white space and control characters.
func notPrintable(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
