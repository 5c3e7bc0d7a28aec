package main

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// summaryScene shows what is there in the end: as kubectl lists the volumes, and
// as mooring tells who reaches what.
func summaryScene(ctx context.Context, s *stage) error {
	if err := s.types(ctx, "get", "pv", "-L", s.names.OriginLabel()); err != nil {
		return err
	}
	for _, args := range [][]string{{"list", "-A"}, {"access", "team-a/data"}} {
		if _, err := s.mooring(ctx, exitOK, args...); err != nil {
			return err
		}
	}
	volumes, err := s.api.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{LabelSelector: s.names.OriginLabel()})
	if err != nil {
		return err
	}
	byClaim := func(a, b corev1.PersistentVolume) int {
		return strings.Compare(a.Annotations[s.names.MirrorClaim()], b.Annotations[s.names.MirrorClaim()])
	}
	slices.SortFunc(volumes.Items, byClaim)
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
