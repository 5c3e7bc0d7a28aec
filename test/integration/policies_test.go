package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// readOnlyStays narrows the grant to reading: a mirror that only reads is as
// valid as before, and its namespace's other one is revoked.
func (r *revocation) readOnlyStays() {
	r.Helper()
	reader := r.mirror(r.tenant, "reader", r.origin, withModes(corev1.ReadOnlyMany), ofClass(r.class.Name))
	r.isBound(reader)
	c := causes[slices.IndexFunc(causes, func(c cause) bool { return c.reason == mirror.GrantReadOnly })]
	r.isRevoked(c)
	r.isEnded(cause{reason: c.reason, grant: func(r *revocation) {
		r.annotate(names.ReadWriteGrant(), tenantsOnly)
		r.must(r.Delete(r.Context(), reader), "delete the reader")
	}})
	if events := r.events(reader); len(events) != 1 {
		r.Errorf("a mirror that only reads was told something:\n%v", events)
	}
	if at := r.history.marksOf(mirror.VolumeName(reader.UID)); len(at) != 0 {
		r.Errorf("a mirror that only reads was marked as revoked: %v", at)
	}
}

// reportsOnly are classes that do not plainly say that claims are deleted.
var reportsOnly = []struct {
	name   string
	change func(r *revocation)
}{
	{"on-revoke missing", func(r *revocation) {
		r.merge(r.class, fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:"0s"}}}`, names.OnRevoke(), names.RevokeAfter()))
	}},
	{"on-revoke in small letters", func(r *revocation) {
		r.merge(r.class, fmt.Sprintf(`{"metadata":{"annotations":{%q:"delete",%q:"0s"}}}`, names.OnRevoke(), names.RevokeAfter()))
	}},
	{"a delay that is no duration", func(r *revocation) { r.revokeAfter("five minutes") }},
	{"a negative delay", func(r *revocation) { r.revokeAfter("-1s") }},
	{"class deleted", func(r *revocation) { r.must(r.Delete(r.Context(), r.class), "delete the class") }},
	{"class of another provisioner", func(r *revocation) {
		r.must(r.Delete(r.Context(), r.class), "delete the class")
		other := &storagev1.StorageClass{ObjectMeta: metaNamed(r.class.Name), Provisioner: "other.example.com"}
		deleting("0s")(other)
		r.must(r.Create(r.Context(), other), "create a class of that name")
	}},
}

// isOnlyReported changes the class of a revoked mirror to one that does not
// plainly say Delete, and sees nothing deleted by the time that another mirror,
// revoked later, is.
func (r *revocation) isOnlyReported(change func(r *revocation)) {
	r.Helper()
	change(r)
	r.isRevoked(causes[0])
	deletes := *r
	deletes.class = r.scene.world.class("deletes", deleting(never))
	deletes.delayPasses()
	for _, claim := range r.both() {
		r.lives(claim)
		r.isSaid(claim, corev1.ConditionFalse, mirror.NotShared)
	}
}

// flap takes the label from the namespace and gives it back a hundred times, as
// fast as it can: the mirrors end in the right state both ways, nothing is
// deleted, and the events are few.
func (r *revocation) flap() {
	r.Helper()
	const changes = 100
	for _, last := range []struct {
		label  string
		status corev1.ConditionStatus
		reason mirror.Reason
	}{{"tenant", corev1.ConditionTrue, mirror.Mirrored}, {"-", corev1.ConditionFalse, mirror.NotShared}, {"tenant", corev1.ConditionTrue, mirror.Mirrored}} {
		began := time.Now()
		for range changes / 2 {
			r.label(r.tenant, "type", map[string]string{"tenant": "-", "-": "tenant"}[last.label])
			r.label(r.tenant, "type", last.label)
		}
		took := time.Since(began)
		r.isSaid(r.doomed, last.status, last.reason)
		r.isSaid(r.reported, last.status, last.reason)
		if last.label == "-" {
			r.revokedAt(r.doomed)
		} else {
			r.isNotMarked(r.doomed)
			r.isNotMarked(r.reported)
		}
		var told []string
		for _, claim := range []*corev1.PersistentVolumeClaim{r.reported, r.doomed, r.PersistentVolumeClaim} {
			events := r.events(claim)
			told = append(told, fmt.Sprintf("%d about %s", len(events), claim.Name))
			if len(events) > 6 {
				r.Errorf("%d events about %s:\n%s", len(events), claim.Name, r.show(claim))
			}
		}
		r.Logf("%d changes of a namespace's label in %v, ending with %s: events in all: %s", changes, took.Round(time.Millisecond), last.reason, strings.Join(told, ", "))
	}
	r.delayPasses()
	r.lives(r.doomed)
	r.lives(r.reported)
}
