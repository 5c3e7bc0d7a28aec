package model

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ScriptSize is the world of a script: three origins, three claims.
func ScriptSize(o Options) Options {
	o.Origins, o.Owners, o.Claims, o.Tenants = 3, 1, 3, 1
	return o
}

// Script makes Mooring do everything that it writes for, once: it provisions
// three mirrors, follows an origin's growth, revokes one mirror with Delete, holds
// an origin that is deleted, lets it go once its mirror is gone, and ends the
// mirror of another origin that is deleted. After each step all must come to rest.
func (m *Model) Script() {
	m.Helper()
	for _, step := range []struct {
		name  string
		apply func()
	}{
		{"share", m.scriptShare}, {"grow", func() { m.Grow(0) }}, {"revoke", m.scriptRevoke}, {"hold", m.scriptHold},
		{"release", m.scriptRelease}, {"delete an origin", m.scriptDeleteOrigin},
	} {
		m.note("step %s", step.name)
		step.apply()
		m.Rest()
	}
	m.scriptEnd()
}

func (m *Model) scriptShare() {
	m.Helper()
	for j, class := range []string{m.classes[0], m.classes[0], m.classes[1]} {
		m.createClaim(j, class)
	}
	m.Rest()
	m.AreBound(0, 3)
}

func (m *Model) scriptRevoke() {
	m.Helper()
	m.EndGrant(1)
	m.goes(m.claim(1))
}

func (m *Model) scriptHold() {
	m.Helper()
	m.DeleteOrigin(2)
	m.Rest()
	origin := m.originClaim(2)
	m.must(m.Get(m.Context(), keyOf(origin), origin), "get origin 2, which has a mirror")
	if !slices.Contains(origin.Finalizers, names.Finalizer()) {
		m.Fatalf("origin 2 is deleted and has a mirror, and Mooring does not hold it:\n%s", m.show(origin))
	}
}

func (m *Model) scriptRelease() {
	m.Helper()
	m.DeleteClaim(2)
	m.goes(m.claim(2))
	m.goes(m.originClaim(2))
}

func (m *Model) scriptDeleteOrigin() {
	m.Helper()
	m.DeleteOrigin(0)
	m.goes(m.claim(0))
	m.goes(m.originClaim(0))
}

// scriptEnd checks what must be left: origin 1, held by nobody, and no mirror.
func (m *Model) scriptEnd() {
	m.Helper()
	origin := m.originClaim(1)
	m.must(m.Get(m.Context(), keyOf(origin), origin), "get origin 1")
	if slices.Contains(origin.Finalizers, names.Finalizer()) {
		m.Errorf("origin 1 has no mirror, and Mooring holds it:\n%s", m.show(origin))
	}
	s := m.snapshot()
	for _, volume := range s.volumes {
		if recorded := split(volume.Annotations[names.OriginClaim()]); slices.Contains(m.owners, recorded.Namespace) {
			m.Errorf("mirror volume %s is left", volume.Name)
		}
	}
}

// goes waits until an object is no more.
func (m *Model) goes(object client.Object) {
	m.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(m.Context(), 50*time.Millisecond, m.options.Quiescence, true, func(ctx context.Context) (bool, error) {
		err := m.Get(ctx, keyOf(object), object)
		last = fmt.Sprint(err)
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		m.Fatalf("%s is not gone within %v: %s\n%s", keyOf(object), m.options.Quiescence, last, m.show(object))
	}
}

// createClaim creates a claim that names the origin of its number.
func (m *Model) createClaim(j int, class string) {
	m.Helper()
	claim := m.claim(j)
	annotate(claim, names.Origin(), m.originKey(j%m.origins).String())
	claim.Spec = corev1.PersistentVolumeClaimSpec{
		StorageClassName: ptr.To(class),
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		Resources:        requesting("1"),
	}
	m.must(m.Create(m.Context(), claim), "create claim %d", j)
}
