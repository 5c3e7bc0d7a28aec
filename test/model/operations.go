package model

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// draw are the numbers that say what an operation is about.
type draw [4]int

// kind is a kind of operation: it returns what it did, and how many claims
// and origins that could concern, 0 if nothing was to be done.
type kind struct {
	name   string
	weight int
	apply  func(m *Model, d draw) (what string, reach int, err error)
}

var kinds = []kind{
	{"claim", 300, (*Model).opClaim},
	{"delete claim", 60, (*Model).opDeleteClaim},
	{"re-create claim", 50, (*Model).opRecreateClaim},
	{"edit reference", 30, (*Model).opReference},
	{"grant", 160, (*Model).opGrant},
	{"expiry", 50, (*Model).opExpiry},
	{"relabel", 90, (*Model).opRelabel},
	{"origin", 80, (*Model).opOrigin},
	{"delete origin", 40, (*Model).opDeleteOrigin},
	{"allow deletion", 15, (*Model).opAllowDeletion},
	{"grow origin", 40, (*Model).opGrow},
	{"edit volume", 180, (*Model).opVolume},
	{"delete volume", 12, (*Model).opDeleteVolume},
	{"class", 20, (*Model).opClass},
	{"remove finalizer", 8, (*Model).opFinalizer},
	{"foreign finalizer", 25, (*Model).opForeign},
	{"wipe condition", 10, (*Model).opWipe},
	{"kill", 8, (*Model).opKill},
	{"lift brake", 10, (*Model).opLift},
}

var weights = func() (sum int) {
	for _, kind := range kinds {
		sum += kind.weight
	}
	return sum
}()

func kindOf(n int) kind {
	for _, kind := range kinds {
		if n -= kind.weight; n < 0 {
			return kind
		}
	}
	panic("more than all weights")
}

// isPassing reports whether an operation came too late or too early, which is
// not a failure.
func isPassing(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
}

// selectors are the grants that are written, and whom they let in, said
// once more without a parser.
var selectors = []struct {
	text  string
	allow func(labels map[string]string) bool
}{
	{tenantsOnly, func(l map[string]string) bool { return l["type"] == "tenant" }},
	{"kubernetes.io/metadata.name", func(map[string]string) bool { return true }},
	{"team=a", func(l map[string]string) bool { return l["team"] == "a" }},
	{"team in (a,b),type=tenant", func(l map[string]string) bool { return l["team"] != "" && l["type"] == "tenant" }},
	{"type=tenant,!suspended", func(l map[string]string) bool { _, s := l["suspended"]; return l["type"] == "tenant" && !s }},
	{"", func(map[string]string) bool { return false }},
	{"((", func(map[string]string) bool { return false }},
	{"!suspended", func(map[string]string) bool { return false }},
}

// opGrant writes, narrows, widens, breaks or removes a grant.
func (m *Model) opGrant(d draw) (string, int, error) {
	i := d[0] % m.origins
	o := m.originClaim(i)
	selector := selectors[d[1]%len(selectors)].text
	if d[1]%5 > 1 {
		selector = selectors[d[1]/5%2].text // mostly granted
	}
	write, remove, reading := names.ReadWriteGrant(), names.ReadOnlyGrant(), false
	if d[2]%4 == 0 {
		write, remove, reading = remove, write, true
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, write, selector)
	switch d[3] % 8 {
	case 0: // nothing is granted
		patch = fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:null}}}`, write, remove)
	case 1, 2: // nothing else is granted
		patch = fmt.Sprintf(`{"metadata":{"annotations":{%q:%q,%q:null}}}`, write, selector, remove)
	}
	return fmt.Sprintf("%d read-only=%v %s", i, reading, patch), 1 + m.claimsOf(i), m.Patch(m.Context(), o, jsonMerge(patch))
}

// opExpiry lets grants end at a time.
func (m *Model) opExpiry(d draw) (string, int, error) {
	i := d[0] % m.origins
	value := "null"
	switch d[1] % 6 {
	case 0, 1:
		value = fmt.Sprintf("%q", time.Now().Add(time.Duration(200+d[2]%1500)*time.Millisecond).UTC().Format(time.RFC3339Nano))
	case 2:
		value = fmt.Sprintf("%q", time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	case 3:
		value = `"tomorrow"`
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, names.GrantExpires(), value)
	return fmt.Sprintf("%d %s", i, value), 1 + 2*m.claimsOf(i), m.Patch(m.Context(), m.originClaim(i), jsonMerge(patch))
}

// opRelabel changes who a tenant is.
func (m *Model) opRelabel(d draw) (string, int, error) {
	namespace := m.tenants[d[0]%len(m.tenants)]
	labels := []string{`"type":"tenant"`, `"type":"tenant"`, `"type":"tenant"`, `"type":"guest"`, `"type":null`, `"team":"a"`, `"team":"b"`, `"team":null`, `"suspended":"yes"`, `"type":"tenant","suspended":null`}
	patch := `{"metadata":{"labels":{` + labels[d[1]%len(labels)] + `}}}`
	object := &corev1.Namespace{ObjectMeta: metaNamed(namespace)}
	return namespace + " " + patch, 2 * m.claims / len(m.tenants), m.Patch(m.Context(), object, jsonMerge(patch))
}

// opClass changes what happens to the class's mirrors whose grant has ended. One
// class mostly deletes, the other mostly reports.
func (m *Model) opClass(d draw) (string, int, error) {
	which := d[0] % 2
	often, seldom := []string{"Delete", "1s"}, []string{"Report", "1s"}
	if which == 1 {
		often, seldom = seldom, often
	}
	chosen := often
	switch d[1] % 6 {
	case 0:
		chosen = seldom
	case 1:
		chosen = []string{"delete", "1s"}
	case 2:
		chosen = []string{"Delete", "soon"}
	}
	object := &storagev1.StorageClass{ObjectMeta: metaNamed(m.classes[which])}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q,%q:%q}}}`, names.OnRevoke(), chosen[0], names.RevokeAfter(), chosen[1])
	return object.Name + " " + chosen[0] + " " + chosen[1], m.claims / 2, m.Patch(m.Context(), object, jsonMerge(patch))
}

// opKill kills the controller without warning, or starts it again.
func (m *Model) opKill(draw) (string, int, error) {
	m.running = !m.running
	if m.running {
		return "undone", m.claims + m.origins, m.options.Controller.Start(context.Background())
	}
	return "", 1, m.options.Controller.Kill()
}

// opLift does what the administrator does once the brake is engaged.
func (m *Model) opLift(draw) (string, int, error) {
	record, engaged := m.brake()
	if !engaged {
		return "", 0, nil
	}
	return "", 1, m.Patch(m.Context(), record, jsonMerge(`{"data":{"state":"lifted"}}`))
}

func (m *Model) brake() (*corev1.ConfigMap, bool) {
	var all corev1.ConfigMapList
	m.must(m.List(m.Context(), &all, client.InNamespace("mooring-system")), "list ConfigMaps")
	for i := range all.Items {
		if all.Items[i].Data["state"] == "engaged" {
			return &all.Items[i], true
		}
	}
	return nil, false
}
