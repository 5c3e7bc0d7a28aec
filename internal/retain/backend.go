package retain

import (
	"maps"
	"net/netip"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Location is one place that a volume reaches, written so that two volumes on
// one place have equal Locations. What is compared is text: two names of one
// server, or two exports of one directory, are two places.
type Location struct {
	// System is where: nfs://server, smb://server, cephfs://cluster/filesystem
	// or csi://driver.
	System string
	// Path is a clean absolute path within System, or the handle of a CSI volume.
	Path string
	// Opaque says that Path is a handle: it has no directories.
	Opaque bool
}

// String returns System and Path in one text.
func (l Location) String() string {
	if l.Opaque {
		return l.System + "#" + l.Path
	}
	return l.System + l.Path
}

// overlap is how two locations relate. The zero value is apart.
type overlap int

const (
	apart overlap = iota
	nested
	same
)

func (l Location) overlap(other Location) overlap {
	switch {
	case l.System != other.System || l.Opaque != other.Opaque:
		return apart
	case l.Path == other.Path:
		return same
	case !l.Opaque && (isBelow(l.Path, other.Path) || isBelow(other.Path, l.Path)):
		return nested
	}
	return apart
}

func isBelow(dir, other string) bool {
	return strings.HasPrefix(dir, strings.TrimSuffix(other, "/")+"/")
}

// locations returns the places that a volume reaches: one for an in-tree
// source that Mooring knows, handle and place for a CSI driver that it knows,
// the handle for another CSI driver, none for other sources.
func locations(spec *corev1.PersistentVolumeSpec) []Location {
	if nfs := spec.NFS; nfs != nil {
		return []Location{nfsLocation(nfs.Server, nfs.Path)}
	}
	if spec.CSI == nil {
		return nil
	}
	// The API also accepts drivers' names in capitals.
	found := []Location{{System: "csi://" + strings.ToLower(spec.CSI.Driver), Path: spec.CSI.VolumeHandle, Opaque: true}}
	if place, known := csiPlace(spec.CSI); known {
		found = append(found, place)
	}
	return found
}

func nfsLocation(server, dir string) Location {
	return Location{System: "nfs://" + normalHost(server), Path: cleanPath(dir)}
}

// normalHost makes names equal that differ in case, a trailing dot or, for IP
// addresses, in spelling.
func normalHost(host string) string {
	host = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(host), "["), "]")
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().String()
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func cleanPath(parts ...string) string {
	return path.Clean("/" + strings.Join(parts, "/"))
}

// CSI drivers whose attributes say which place a volume reaches.
const (
	driverNFS     = "nfs.csi.k8s.io"
	driverCephNFS = "nfs.csi.ceph.com"
	driverSMB     = "smb.csi.k8s.io"
	driverCephFS  = "cephfs.csi.ceph.com"
)

// csiPlace returns the place that the attributes of a known driver name.
func csiPlace(csi *corev1.CSIPersistentVolumeSource) (Location, bool) {
	get := attributes(csi.VolumeAttributes)
	switch strings.ToLower(csi.Driver) {
	case driverNFS:
		// csi-driver-nfs, pkg/nfs/nodeserver.go NodePublishVolume: server:share,
		// and below it subdir with the claim's and volume's names filled in.
		if get("server") == "" || get("share") == "" {
			return Location{}, false
		}
		return nfsLocation(get("server"), get("share")+"/"+fillNames(get("subdir"), get)), true
	case driverCephNFS:
		if get("server") == "" || get("share") == "" {
			return Location{}, false
		}
		return nfsLocation(get("server"), get("share")), true
	case driverSMB:
		// csi-driver-smb, pkg/smb/nodeserver.go NodeStageVolume, fills in names
		// as well. SMB servers ignore the case of shares and, as a rule, of paths.
		server, share, _ := strings.Cut(strings.TrimLeft(strings.ReplaceAll(get("source"), `\`, "/"), "/"), "/")
		if server == "" {
			return Location{}, false
		}
		return Location{System: "smb://" + normalHost(server), Path: strings.ToLower(cleanPath(share, fillNames(get("subdir"), get)))}, true
	case driverCephFS:
		if get("rootpath") == "" {
			return Location{}, false // made by the provisioner: known by its handle
		}
		return Location{System: "cephfs://" + get("clusterid") + "/" + get("fsname"), Path: cleanPath(get("rootpath"))}, true
	}
	return Location{}, false
}

// attributes returns a reader of volume attributes that ignores the case of
// their names, as the drivers do.
func attributes(all map[string]string) func(name string) string {
	lower := make(map[string]string, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) { // sorted: one answer if two names differ in case only
		lower[strings.ToLower(name)] = all[name]
	}
	return func(name string) string { return lower[name] }
}

// fillNames fills in the names that a volume has; the drivers leave a template
// whose name they do not know as it is.
func fillNames(subdir string, get func(string) string) string {
	var pairs []string
	for _, name := range []string{"pvc/name", "pvc/namespace", "pv/name"} {
		if value := get("csi.storage.k8s.io/" + name); value != "" {
			pairs = append(pairs, "${"+strings.Replace(name, "/", ".metadata.", 1)+"}", value)
		}
	}
	return strings.NewReplacer(pairs...).Replace(subdir)
}
