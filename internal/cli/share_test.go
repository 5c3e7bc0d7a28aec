package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/inventory"
)

// What share tells of many namespaces fits every terminal, and names each once.
func TestShareFitsEveryWidth(t *testing.T) {
	now := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	s := &session{Cluster: &inventory.Cluster{}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		s.Names.ReadWriteGrant(): "example.com/project in (atlas, borealis, caelum)",
		s.Names.GrantExpires():   "2026-01-01T00:00:00Z",
		s.Names.Origin():         "a/b",
	}}}
	var changes []grant.Change
	for i := range 300 {
		changes = append(changes, grant.Change{Namespace: fmt.Sprintf("tenant-%03d", i), Before: grant.None, After: grant.ReadWrite})
	}
	for width := 40; width <= 200; width++ {
		p := &prose{width: width}
		s.showGrants(p, claim, grant.Parse(s.Names, claim.Annotations), now)
		printChanges(p, changes)
		p.warn("system namespaces have access: default, kube-system")
		text := p.text.String()
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			key := strings.HasSuffix(line, "required-target-ns-labels:") // a word that is wider
			if n := utf8.RuneCountInString(line); n > width && !key {
				t.Fatalf("at %d: a line of %d: %q", width, n, line)
			}
		}
		if n := strings.Count(text, "tenant-"); n != len(changes) || !strings.Contains(text, "300 namespaces:") {
			t.Fatalf("at %d: %d namespaces are named\n%s", width, n, text)
		}
		if again := strings.Join(strings.Fields(text), " "); !strings.Contains(again, "warning: this claim is itself a mirror") || !strings.Contains(again, "warning: it ended at 2026-01-01T00:00:00Z") {
			t.Fatalf("at %d: a warning is missing\n%s", width, text)
		}
	}
}
