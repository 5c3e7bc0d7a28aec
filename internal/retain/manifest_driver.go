package retain

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// knownDrivers check what a static volume of a driver needs in order to be
// mounted, and to be compared with other volumes.
var knownDrivers = map[string]func(at *field.Path, csi *corev1.CSIPersistentVolumeSource) field.ErrorList{
	driverNFS:     checkNFSDriver,
	driverCephNFS: checkCephNFSDriver,
	driverSMB:     checkSMBDriver,
	driverCephFS:  checkCephFSDriver,
}

func isFileDriver(driver string) bool {
	_, known := knownDrivers[driver]
	return known
}

func checkKnownDriver(at *field.Path, csi *corev1.CSIPersistentVolumeSource) field.ErrorList {
	if check, known := knownDrivers[csi.Driver]; known {
		return check(at, csi)
	}
	return nil
}

// nfsDriverAttributes are what csi-driver-nfs reads at mount time
// (pkg/nfs/nodeserver.go, NodePublishVolume), without the ones that only a
// provisioner writes. A misspelt one would be ignored in silence.
var nfsDriverAttributes = []string{"server", "share", "subdir", "mountoptions", "mountpermissions", "uid", "gid"}

func checkNFSDriver(at *field.Path, csi *corev1.CSIPersistentVolumeSource) field.ErrorList {
	get := attributes(csi.VolumeAttributes)
	at = at.Child("volumeAttributes")
	errs := checkServer(at.Key("server"), get("server"))
	errs = append(errs, checkAbsolute(at.Key("share"), get("share"))...)
	errs = append(errs, checkRelative(at.Key("subdir"), get("subdir"))...)
	if mode := get("mountpermissions"); strings.Trim(mode, "01234567") != "" {
		errs = append(errs, field.Invalid(at.Key("mountPermissions"), mode, `expected octal digits, such as "0750", or "0" to leave the directory alone`))
	}
	for name := range csi.VolumeAttributes {
		if !slices.Contains(nfsDriverAttributes, strings.ToLower(name)) {
			errs = append(errs, field.NotSupported(at, name, nfsDriverAttributes))
		}
	}
	return errs
}

func checkCephNFSDriver(at *field.Path, csi *corev1.CSIPersistentVolumeSource) field.ErrorList {
	get := attributes(csi.VolumeAttributes)
	at = at.Child("volumeAttributes")
	return append(checkServer(at.Key("server"), get("server")), checkAbsolute(at.Key("share"), get("share"))...)
}

func checkSMBDriver(at *field.Path, csi *corev1.CSIPersistentVolumeSource) field.ErrorList {
	get := attributes(csi.VolumeAttributes)
	source := at.Child("volumeAttributes").Key("source")
	var errs field.ErrorList
	server, share, _ := strings.Cut(strings.TrimPrefix(get("source"), "//"), "/")
	if !strings.HasPrefix(get("source"), "//") || share == "" {
		errs = append(errs, field.Invalid(source, get("source"), "expected //server/share"))
	} else {
		errs = append(errs, checkServer(source, server)...)
		errs = append(errs, checkRelative(source, share)...)
	}
	errs = append(errs, checkRelative(at.Child("volumeAttributes").Key("subDir"), get("subdir"))...)
	return append(errs, needStageSecret(at, csi)...)
}

// checkCephFSDriver checks a static CephFS volume (ceph-csi,
// docs/static-pvc.md). A volume whose rootPath is missing was made by the
// provisioner and is known by its handle.
func checkCephFSDriver(at *field.Path, csi *corev1.CSIPersistentVolumeSource) field.ErrorList {
	get := attributes(csi.VolumeAttributes)
	attributesAt := at.Child("volumeAttributes")
	errs := needStageSecret(at, csi)
	if get("clusterid") == "" {
		errs = append(errs, field.Required(attributesAt.Key("clusterID"), "expected the Ceph cluster's ID in the driver's configuration"))
	}
	if get("rootpath") == "" {
		return errs
	}
	if get("staticvolume") != "true" {
		errs = append(errs, field.Required(attributesAt.Key("staticVolume"), `expected "true" for a volume with a rootPath`))
	}
	if get("fsname") == "" {
		errs = append(errs, field.Required(attributesAt.Key("fsName"), "expected the CephFS file system's name"))
	}
	return append(errs, checkAbsolute(attributesAt.Key("rootPath"), get("rootpath"))...)
}

func needStageSecret(at *field.Path, csi *corev1.CSIPersistentVolumeSource) field.ErrorList {
	if csi.NodeStageSecretRef != nil {
		return nil
	}
	return field.ErrorList{field.Required(at.Child("nodeStageSecretRef"), "expected the Secret that the driver mounts with")}
}
