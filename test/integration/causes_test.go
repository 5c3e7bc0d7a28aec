package integration_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// cause is one way in which a grant ends.
type cause struct {
	name   string
	reason mirror.Reason
	why    string // part of what the origin's owner is told; "" where there is none
	revoke func(r *revocation)
	grant  func(r *revocation) // nil where it cannot be granted again
	also   func(r *revocation) // what else is seen, once it is revoked
}

const noLongerMatches = "the grant no longer matches them, or has ended"

var causes = []cause{
	{name: "grant removed", reason: mirror.NotShared, why: noLongerMatches,
		revoke: func(r *revocation) { r.remove(names.ReadWriteGrant()) },
		grant:  func(r *revocation) { r.annotate(names.ReadWriteGrant(), tenantsOnly) }},
	{name: "grant narrowed", reason: mirror.NotShared, why: noLongerMatches,
		revoke: func(r *revocation) { r.annotate(names.ReadWriteGrant(), tenantsOnly+",team=a") },
		grant:  func(r *revocation) { r.annotate(names.ReadWriteGrant(), "type in (tenant,other)") }},
	{name: "grant expired", reason: mirror.NotShared, why: noLongerMatches,
		revoke: func(r *revocation) { r.annotate(names.GrantExpires(), "2020-01-01T00:00:00Z") },
		grant:  func(r *revocation) { r.remove(names.GrantExpires()) }},
	{name: "end of the grant malformed", reason: mirror.NotShared, why: noLongerMatches,
		revoke: func(r *revocation) { r.annotate(names.GrantExpires(), "tomorrow") },
		grant:  func(r *revocation) { r.remove(names.GrantExpires()) },
		also:   func(r *revocation) { r.isTold(r.PersistentVolumeClaim, "GrantBroken", "is not an RFC 3339 time") }},
	{name: "namespace's label gone", reason: mirror.NotShared, why: noLongerMatches,
		revoke: func(r *revocation) { r.label(r.tenant, "type", "-") },
		grant:  func(r *revocation) { r.label(r.tenant, "type", "tenant") }},
	{name: "grant read-only now", reason: mirror.GrantReadOnly, why: "the grant is read-only now, and their mirrors are read-write",
		revoke: func(r *revocation) {
			r.merge(r.PersistentVolumeClaim, fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:%q}}}`, names.ReadWriteGrant(), names.ReadOnlyGrant(), tenantsOnly))
		},
		grant: func(r *revocation) { r.annotate(names.ReadWriteGrant(), tenantsOnly) }},
	{name: "origin deleted", reason: mirror.OriginTerminating,
		revoke: func(r *revocation) { r.must(r.Delete(r.Context(), r.PersistentVolumeClaim), "delete the origin") },
		also: func(r *revocation) {
			r.isTold(r.PersistentVolumeClaim, "DeletionHeld", "They are in "+r.tenant)
		}},
	{name: "origin gone", reason: mirror.NotShared,
		revoke: func(r *revocation) { r.goAway() },
		grant:  func(r *revocation) { r.comeBack(r.source) }},
	{name: "origin replaced", reason: mirror.OriginReplaced, why: "this claim has other data than the one that they mirror",
		revoke: func(r *revocation) { r.goAway(); r.comeBack(corev1.PersistentVolumeSource{}) },
		grant:  func(r *revocation) { r.goAway(); r.comeBack(r.source) }},
}
