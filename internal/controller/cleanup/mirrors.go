package cleanup

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// Mirrors are the mirror volumes that exist, by their records.
type Mirrors struct {
	Count int `json:"count"`
	// Origins is of how many claims they are.
	Origins int `json:"origins"`
	// NotRetain names the volumes whose data may be deleted with their claim.
	NotRetain []string `json:"notRetain"`

	servedBy map[string]int
}

// MarshalJSON writes a list where there is none.
func (m Mirrors) MarshalJSON() ([]byte, error) {
	type plain Mirrors
	if m.NotRetain == nil {
		m.NotRetain = []string{}
	}
	return json.Marshal(plain(m))
}

// mirrors reads all volumes.
func (c *cleaner) mirrors(ctx context.Context) (Mirrors, error) {
	found, origins := Mirrors{servedBy: map[string]int{}}, map[types.NamespacedName]bool{}
	err := c.api.EachVolume(ctx, func(volume *corev1.PersistentVolume) {
		record := mirror.RecordOf(c.Names, volume)
		if !record.IsMirror() {
			return
		}
		found.Count++
		origins[record.Origin] = true
		found.servedBy[volume.Annotations[c.Names.ServedBy()]]++
		if volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
			found.NotRetain = append(found.NotRetain, volume.Name)
		}
	})
	if err != nil {
		return Mirrors{}, fmt.Errorf("list the volumes: %w", err)
	}
	found.Origins = len(origins)
	slices.Sort(found.NotRetain)
	return found, nil
}

// servedByOthers returns who else serves mirror volumes. A record that does not
// say who does is nobody's.
func (m Mirrors) servedByOthers(own []string) []string {
	others := maps.Clone(m.servedBy)
	delete(others, "")
	for _, name := range own {
		delete(others, name)
	}
	return slices.Sorted(maps.Keys(others))
}
