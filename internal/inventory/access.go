package inventory

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/mirror"
)

// Reach is who can reach the data of one claim, as far as it is seen.
type Reach struct {
	// Claim is nil where there is none or it is hidden.
	Claim  *corev1.PersistentVolumeClaim
	Hidden bool
	// Volume is the claim's own; nil where it is hidden or there is none. IsMirror
	// says that it is itself a mirror, of Origin.
	Volume   *corev1.PersistentVolume
	IsMirror bool
	// Unbound says that it asks to be one, and is not bound yet: Origin is
	// empty where it names none that can be meant.
	Unbound bool
	Origin  types.NamespacedName
	// OwnPods are those of the claim's namespace that use it.
	OwnPods []string
	// Spaces are the namespaces that are granted something or have mirrors.
	Spaces []Space
}

// Space is a namespace that can reach the data, or could.
type Space struct {
	Namespace string `json:"namespace"`
	// Granted is what the grants give the namespace: ReadWrite, ReadOnly or None;
	// empty where its labels are not visible. GrantedNow is the same by the grants
	// as they are written, where others are tried.
	Granted    string       `json:"granted,omitempty"`
	GrantedNow string       `json:"grantedNow,omitempty"`
	Mirrors    []MirrorSeen `json:"mirrors,omitempty"`
}

// MirrorSeen is a mirror claim, as the record of its volume tells.
type MirrorSeen struct {
	Name   string `json:"name"`
	Access string `json:"access"`
	// State is Bound, Revoked (bound, and not granted) or Pending (not bound).
	State  State    `json:"state"`
	Volume string   `json:"volume"`
	Pods   []string `json:"pods,omitempty"`
}

// fewNamespaces is up to how many namespaces are asked for their Pods one by
// one; above that, all Pods are listed page by page.
const fewNamespaces = 4

// Access reads who can reach the data of a claim. With edit, the grants are
// tried as it leaves the claim's annotations; nil leaves them as they are.
func (c *Cluster) Access(ctx context.Context, key types.NamespacedName, edit func(map[string]string) map[string]string) (Reach, error) {
	claim, err := c.Claim(ctx, key)
	reach := Reach{Claim: claim.Object, Hidden: claim.Hidden}
	if err != nil || claim.Hidden {
		return reach, err
	}
	if claim.Object != nil {
		if err := c.ownVolume(ctx, &reach); err != nil {
			return reach, err
		}
	}
	if reach.IsMirror {
		return reach, nil
	}
	volumes, _, err := c.Mirrors(ctx, key)
	if err != nil {
		return reach, err
	}
	if claim.Object == nil && len(volumes) == 0 {
		return reach, nil
	}
	labels, err := c.namespaceLabels(ctx)
	if err != nil {
		return reach, err
	}
	reach.Spaces = c.spaces(key, claim.Object, edit, labels, volumes)
	return reach, c.addPods(ctx, key, &reach)
}

// ownVolume reads the claim's volume, and whether the claim is itself a mirror.
func (c *Cluster) ownVolume(ctx context.Context, reach *Reach) (err error) {
	if reach.Claim.Spec.VolumeName == "" {
		reach.IsMirror, reach.Origin, err = c.seemsMirror(ctx, reach.Claim)
		// One whose reference is missing or broken asks for a mirror all the same.
		reach.IsMirror = reach.IsMirror || mirror.AsksForMirror(c.Names, reach.Claim) || ConditionOf(c.Names, reach.Claim) != nil
		reach.Unbound = reach.IsMirror
		return err
	}
	volume, err := c.Volume(ctx, reach.Claim.Spec.VolumeName)
	if err != nil {
		return err
	}
	reach.Volume = volume.Object
	if volume.Object != nil {
		record := mirror.RecordOf(c.Names, volume.Object)
		reach.IsMirror, reach.Origin = record.IsMirror(), record.Origin
	}
	if volume.Hidden {
		reach.IsMirror, reach.Origin, err = c.seemsMirror(ctx, reach.Claim)
	}
	return err
}

// seemsMirror goes by what a claim itself says, for whom volumes are hidden
// from.
func (c *Cluster) seemsMirror(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, types.NamespacedName, error) {
	origin := mirror.Origin(c.Names, claim)
	if origin.Name == "" || mirror.AsksForMirror(c.Names, claim) || ConditionOf(c.Names, claim) != nil {
		return origin.Name != "", origin, nil
	}
	if claim.Spec.StorageClassName == nil {
		return false, origin, nil
	}
	class, err := c.Class(ctx, *claim.Spec.StorageClassName)
	return class.Hidden || class.Object != nil && class.Object.Provisioner == c.Names.Provisioner(), origin, err
}

// namespaceLabels returns the labels of all namespaces; nil where they are
// hidden.
func (c *Cluster) namespaceLabels(ctx context.Context) (map[string]map[string]string, error) {
	all, seen, err := c.Namespaces(ctx)
	if err != nil || !seen {
		return nil, err
	}
	labels := make(map[string]map[string]string, len(all))
	for i := range all {
		labels[all[i].Name] = all[i].Labels
	}
	return labels, nil
}

// spaces puts together what is granted and what is mirrored, by namespace.
func (c *Cluster) spaces(key types.NamespacedName, claim *corev1.PersistentVolumeClaim, edit func(map[string]string) map[string]string, labels map[string]map[string]string, volumes []corev1.PersistentVolume) []Space {
	var annotations map[string]string
	if claim != nil && claim.DeletionTimestamp == nil { // who deletes it ends its grants
		annotations = claim.Annotations
	}
	now, written := time.Now(), grant.Parse(c.Names, annotations)
	tried := written
	if edit != nil {
		tried = grant.Parse(c.Names, edit(annotations))
	}
	found := map[string]*Space{}
	for name, set := range labels {
		given, before := tried.For(set, now).Access, written.For(set, now).Access
		if name == key.Namespace || given == grant.None && before == grant.None {
			continue
		}
		found[name] = &Space{Namespace: name, Granted: given.String()}
		if edit != nil {
			found[name].GrantedNow = before.String()
		}
	}
	for i := range volumes {
		record := mirror.RecordOf(c.Names, &volumes[i])
		space, known := found[record.Claim.Namespace]
		if !known {
			space = &Space{Namespace: record.Claim.Namespace}
			if labels != nil {
				space.Granted = grant.None.String()
			}
			found[record.Claim.Namespace] = space
		}
		set, seen := labels[record.Claim.Namespace]
		space.Mirrors = append(space.Mirrors, mirrorSeen(c, &volumes[i], record, tried.For(set, now).Access, seen))
	}
	return sorted(found)
}

func mirrorSeen(c *Cluster, volume *corev1.PersistentVolume, record mirror.Record, given grant.Access, seen bool) MirrorSeen {
	access := grant.ReadWrite // unless it certainly is not
	if mirror.GrantedByOf(c.Names, volume).Access == grant.ReadOnly.String() {
		access = grant.ReadOnly
	}
	m := MirrorSeen{Name: record.Claim.Name, Access: access.String(), State: Bound, Volume: volume.Name}
	switch {
	case volume.Status.Phase != corev1.VolumeBound:
		m.State = Pending
	case seen && given < access, !seen && !record.RevokedAt.IsZero():
		m.State = Revoked
	}
	return m
}

func sorted(found map[string]*Space) []Space {
	all := make([]Space, 0, len(found))
	for _, space := range found {
		slices.SortFunc(space.Mirrors, func(a, b MirrorSeen) int { return cmp.Compare(a.Name, b.Name) })
		all = append(all, *space)
	}
	slices.SortFunc(all, func(a, b Space) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return all
}

// addPods finds the Pods that use the claim and its mirrors.
func (c *Cluster) addPods(ctx context.Context, key types.NamespacedName, reach *Reach) error {
	users := map[types.NamespacedName]*[]string{key: &reach.OwnPods}
	namespaces := []string{key.Namespace}
	for i := range reach.Spaces {
		space := &reach.Spaces[i]
		if len(space.Mirrors) > 0 {
			namespaces = append(namespaces, space.Namespace)
		}
		for j := range space.Mirrors {
			users[types.NamespacedName{Namespace: space.Namespace, Name: space.Mirrors[j].Name}] = &space.Mirrors[j].Pods
		}
	}
	if len(namespaces) > fewNamespaces {
		namespaces = []string{""}
	}
	for _, namespace := range namespaces {
		pods, seen, err := c.Pods(ctx, namespace)
		if err != nil {
			return err
		}
		if !seen && namespace == "" { // those of the origin at least
			if pods, _, err = c.Pods(ctx, key.Namespace); err != nil {
				return err
			}
		}
		addUsers(users, pods)
	}
	return nil
}

// addUsers notes which Pods use which claims. One that has ended uses nothing.
func addUsers(users map[types.NamespacedName]*[]string, pods []corev1.Pod) {
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, volume := range pod.Spec.Volumes {
			key := types.NamespacedName{Namespace: pod.Namespace, Name: claimOf(pod, volume)}
			if names, used := users[key]; used && !slices.Contains(*names, pod.Name) {
				*names = append(*names, pod.Name)
			}
		}
	}
}

// claimOf returns the name of the claim of a Pod's volume; "" if it has none.
func claimOf(pod *corev1.Pod, volume corev1.Volume) string {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral != nil:
		return pod.Name + "-" + volume.Name
	default:
		return ""
	}
}
