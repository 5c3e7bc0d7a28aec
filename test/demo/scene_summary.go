package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// summaryScene shows what is there in the end: as kubectl lists it, and by
// origin, as the mirror volumes' records have it.
func summaryScene(ctx context.Context, s *stage) error {
	if err := s.types(ctx, "get", "pvc", "-A"); err != nil {
		return err
	}
	if err := s.types(ctx, "get", "pv", "-L", s.names.OriginLabel()); err != nil {
		return err
	}
	volumes, err := s.api.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{LabelSelector: s.names.OriginLabel()})
	if err != nil {
		return err
	}
	byClaim := func(a, b corev1.PersistentVolume) int {
		return strings.Compare(a.Annotations[s.names.MirrorClaim()], b.Annotations[s.names.MirrorClaim()])
	}
	slices.SortFunc(volumes.Items, byClaim)
	s.tell.say("By origin, from the record that each mirror volume carries:")
	s.tell.shown(s.reach(volumes.Items))
	reached := s.mirrorClaims(volumes.Items)
	want := []string{"team-b/projects", "team-c/data-of-team-a", "tenant-s123456/s123456-drive-mirror"}
	if !slices.Equal(reached, want) {
		return surprised(volumes, "the claims that reach an origin are %v, not %v", want, reached)
	}
	return s.saidOnce(ctx)
}

func (s *stage) mirrorClaims(mirrors []corev1.PersistentVolume) []string {
	var claims []string
	for i := range mirrors {
		claims = append(claims, mirrors[i].Annotations[s.names.MirrorClaim()])
	}
	return claims
}

// reach is a table of the origins, their data, and who reaches it.
func (s *stage) reach(mirrors []corev1.PersistentVolume) string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "ORIGIN\tREACHED BY\tTO\tDATA")
	for _, origin := range slices.Sorted(maps.Keys(s.before)) {
		found := false
		for i := range mirrors {
			if mirrors[i].Annotations[s.names.OriginClaim()] == origin {
				found = true
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", origin, mirrors[i].Annotations[s.names.MirrorClaim()], access(&mirrors[i]), dataOf(&mirrors[i]))
			}
		}
		if !found {
			fmt.Fprintf(table, "%s\tnobody else\t\t%s\n", origin, dataOf(s.before[origin].volume))
		}
	}
	_ = table.Flush() // into memory
	return out.String()
}

func access(mirror *corev1.PersistentVolume) string {
	if slices.Contains(mirror.Spec.MountOptions, "ro") {
		return "read"
	}
	return "read, write"
}
