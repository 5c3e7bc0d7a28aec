package inventory

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// Query says which mirror claims are asked for.
type Query struct {
	// Namespace is where the claims are; "" means everywhere. Where claims of
	// all namespaces may not be listed, those of Own are.
	Namespace, Own string
	// Origin and States narrow the answer; empty ones do not.
	Origin types.NamespacedName
	States []State
	// LabelSelector and FieldSelector are of the claims; the API server applies
	// them.
	LabelSelector, FieldSelector string
}

// wants reports whether a row is asked for.
func (q Query) wants(row Row) bool {
	return (q.Origin.Name == "" || row.Origin == q.Origin.String()) &&
		(len(q.States) == 0 || slices.Contains(q.States, row.State))
}

func (q Query) options() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: q.LabelSelector, FieldSelector: q.FieldSelector}
}

// Listing is the mirror claims that were found.
type Listing struct {
	// Namespace is the one whose claims were read; "" for all.
	Namespace string
	// Rows are sorted by namespace and name.
	Rows []Row

	query   Query
	classes map[string]storagev1.StorageClass
	// volumes are the mirror volumes that were read, by name; all are the mirror
	// claims, also those that are not asked for.
	volumes map[string]*corev1.PersistentVolume
	all     map[types.NamespacedName]Row
}

// fewVolumes is up to how many volumes are read one by one: above that all
// mirror volumes are, which costs a request a page.
const fewVolumes = 4

// List finds mirror claims. What may not be read is noted (Hidden).
func (c *Cluster) List(ctx context.Context, query Query) (*Listing, error) {
	listing := &Listing{query: query, volumes: map[string]*corev1.PersistentVolume{}, all: map[types.NamespacedName]Row{}}
	var err error
	if listing.classes, _, err = c.Classes(ctx); err != nil {
		return nil, err
	}
	claims, seen, err := c.Claims(ctx, query.Namespace, query.options())
	if err == nil && !seen && query.Namespace == "" {
		listing.query.Namespace = query.Own
		claims, _, err = c.Claims(ctx, query.Own, query.options())
	}
	if err != nil {
		return nil, err
	}
	listing.Namespace = listing.query.Namespace
	if err := c.volumesOf(ctx, listing, claims); err != nil {
		return nil, err
	}
	for i := range claims {
		row, is := c.row(listing, &claims[i])
		if !is {
			continue
		}
		listing.all[row.Key()] = row
		if query.wants(row) {
			listing.Rows = append(listing.Rows, row)
		}
	}
	return listing, nil
}

// row returns a claim as a row, if it is a mirror claim.
func (c *Cluster) row(listing *Listing, claim *corev1.PersistentVolumeClaim) (Row, bool) {
	volume := listing.volumes[mirror.NameOf(claim)]
	if volume != nil && !c.isOf(volume, claim) {
		volume = nil
	}
	if !IsMirrorClaim(c.Names, claim, listing.classes, volume) && !c.refersAbroad(claim) {
		return Row{}, false
	}
	return RowOf(c.Names, claim, volume), true
}

// isOf reports whether a volume's record is of this claim.
func (c *Cluster) isOf(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return mirror.RecordOf(c.Names, volume).ClaimUID == claim.UID || mirror.IsRestoredFor(c.Names, volume, claim)
}

// refersAbroad reports whether all that says that a claim is a mirror is a
// reference to another namespace: good enough only for whom classes are hidden
// from, as they are from most tenants.
func (c *Cluster) refersAbroad(claim *corev1.PersistentVolumeClaim) bool {
	return c.isHidden("storageclasses") && mirror.Origin(c.Names, claim).Name != ""
}

// volumesOf reads the mirror volumes of claims: all there are where claims of
// all namespaces are listed, else those of the few claims that can have one.
func (c *Cluster) volumesOf(ctx context.Context, listing *Listing, claims []corev1.PersistentVolumeClaim) error {
	if listing.query.Namespace == "" && listing.query.Origin.Name == "" {
		return c.takeMirrors(ctx, listing, types.NamespacedName{})
	}
	if listing.query.Namespace == "" {
		if err := c.takeMirrors(ctx, listing, listing.query.Origin); err != nil {
			return err
		}
	}
	return c.readMissing(ctx, listing, c.missing(listing, claims))
}

// missing names the volumes that are still to be read: what a claim names as
// its origin may have been edited since, and the record counts.
func (c *Cluster) missing(listing *Listing, claims []corev1.PersistentVolumeClaim) []string {
	var missing []string
	for i := range claims {
		name := mirror.NameOf(&claims[i])
		if claims[i].Spec.VolumeName == name && listing.volumes[name] == nil && c.mayMirror(listing, &claims[i]) {
			missing = append(missing, name)
		}
	}
	return missing
}

func (c *Cluster) readMissing(ctx context.Context, listing *Listing, missing []string) error {
	if len(missing) > fewVolumes {
		return c.takeMirrors(ctx, listing, types.NamespacedName{})
	}
	for _, name := range missing {
		volume, err := c.Volume(ctx, name)
		if err != nil || volume.Hidden {
			return err
		}
		listing.take(volume.Object)
	}
	return nil
}

// mayMirror reports whether a bound claim's volume can tell something that is
// asked for.
func (c *Cluster) mayMirror(listing *Listing, claim *corev1.PersistentVolumeClaim) bool {
	if listing.query.Namespace == "" { // of one origin, whose volumes are known
		return mirror.Origin(c.Names, claim) == listing.query.Origin
	}
	return IsMirrorClaim(c.Names, claim, listing.classes, nil) || mirror.Origin(c.Names, claim).Name != ""
}

func (c *Cluster) takeMirrors(ctx context.Context, listing *Listing, origin types.NamespacedName) error {
	volumes, _, err := c.Mirrors(ctx, origin)
	for i := range volumes {
		listing.take(&volumes[i])
	}
	return err
}

func (l *Listing) take(volume *corev1.PersistentVolume) {
	if volume != nil {
		l.volumes[volume.Name] = volume
	}
}
