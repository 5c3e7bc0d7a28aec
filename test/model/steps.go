package model

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Single operations, for tests that say themselves what is done.

// Claims creates all claims at once, each of another origin in turn.
func (m *Model) Claims() {
	m.Helper()
	m.ClaimsOf(0, m.claims)
}

// ClaimsOf creates the claims of these numbers, in turn of a class that deletes
// what is revoked and of one that reports it.
func (m *Model) ClaimsOf(from, to int) {
	m.Helper()
	for j := from; j < to; j++ {
		m.createClaim(j, m.classes[j%2])
	}
}

// DeleteClaim deletes a claim, as its owner.
func (m *Model) DeleteClaim(j int) {
	m.Helper()
	_, _, err := m.opDeleteClaim(draw{j})
	m.must(err, "delete claim %d", j)
}

// DeleteOrigin deletes an origin, as its owner.
func (m *Model) DeleteOrigin(i int) {
	m.Helper()
	_, _, err := m.opDeleteOrigin(draw{i})
	m.must(err, "delete origin %d", i)
}

// Grow lets an origin's volume grow to 20Gi.
func (m *Model) Grow(i int) {
	m.Helper()
	_, _, err := m.opGrow(draw{i, 10})
	m.must(err, "let origin %d grow", i)
}

// Grant lets all tenants have an origin.
func (m *Model) Grant(i int) {
	m.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, names.ReadWriteGrant(), tenantsOnly)
	m.must(m.Patch(m.Context(), m.originClaim(i), jsonMerge(patch)), "grant origin %d", i)
}

// EndGrant lets nobody have an origin any more.
func (m *Model) EndGrant(i int) {
	m.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, names.ReadWriteGrant())
	m.must(m.Patch(m.Context(), m.originClaim(i), jsonMerge(patch)), "end the grant of origin %d", i)
}

// AreBound fails unless the claims of these numbers are bound.
func (m *Model) AreBound(from, to int) {
	m.Helper()
	for j := from; j < to; j++ {
		claim := m.claim(j)
		m.must(m.Get(m.Context(), keyOf(claim), claim), "get claim %d", j)
		if claim.Status.Phase != corev1.ClaimBound {
			m.Errorf("claim %d is not bound:\n%s", j, m.show(claim))
		}
	}
}

// AreAbsent fails if one of the claims of these numbers is there.
func (m *Model) AreAbsent(from, to int) {
	m.Helper()
	for j := from; j < to; j++ {
		claim := m.claim(j)
		if err := m.Get(m.Context(), keyOf(claim), claim); !apierrors.IsNotFound(err) {
			m.Errorf("claim %d is there (%v):\n%s", j, err, m.show(claim))
		}
	}
}

// WentBack says that the cluster's data were put back to what they once were: what
// was watched until now does not lead to what is there.
func (m *Model) WentBack() {
	m.Helper()
	m.mark(func() {
		clear(m.deleted)
		clear(m.volumes)
	})
	m.seen = m.watch()
}

// ClaimName returns NAMESPACE/NAME of a claim.
func (m *Model) ClaimName(j int) string { return m.claimKey(j).String() }

// OriginName returns NAMESPACE/NAME of an origin.
func (m *Model) OriginName(i int) string { return m.originKey(i).String() }
