package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// TestBrakeRecord asks about one mirror of few, which may go, with the record in
// every state: only one that is not there, or is plainly lifted, lets it.
func TestBrakeRecord(t *testing.T) {
	now := time.Now()
	for name, row := range map[string]struct {
		data  map[string]string
		holds bool
	}{
		"none":                     {nil, false},
		"watching":                 {map[string]string{brakeState: brakeWatching}, false},
		"lifted":                   {map[string]string{brakeState: brakeLifted}, false},
		"engaged":                  {map[string]string{brakeState: brakeEngaged}, true},
		"a state that nobody has":  {map[string]string{brakeState: "Lifted"}, true},
		"no state":                 {map[string]string{}, true},
		"lifted, and a blank more": {map[string]string{brakeState: "lifted "}, true},
	} {
		t.Run(name, func(t *testing.T) {
			b, volumes := braked(t, mirror.Limit{Count: 3}, now)
			if row.data != nil {
				record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "mooring-system", Name: "mooring-brake"}, Data: row.data}
				if err := b.write.client.Create(t.Context(), record); err != nil {
					t.Fatal(err)
				}
			}
			if holds, err := b.holds(t.Context(), volumes[0], now); err != nil || holds != row.holds {
				t.Errorf("it holds: %v, %v; want %v", holds, err, row.holds)
			}
			// A brake that holds is not asked again for each of thousands; but it is
			// soon enough, since somebody may have lifted it.
			if known := b.isKnownToHold(now.Add(brakeLook - 1)); known != row.holds {
				t.Errorf("it is known to hold: %v, want %v", known, row.holds)
			}
			if b.isKnownToHold(now.Add(brakeLook)) {
				t.Error("it is known to hold for ever")
			}
		})
	}
}

// TestBrakeFails has each read and write that the brake rests on fail once:
// nothing is deleted.
func TestBrakeFails(t *testing.T) {
	now, away := time.Now(), errors.New("the API server is away")
	engaged := []time.Time{now, now, now, now}
	for name, row := range map[string]struct {
		revoked []time.Time
		fail    interceptor.Funcs
	}{
		"the record cannot be read": {[]time.Time{now}, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return away
		}}},
		"mirrors cannot be counted": {[]time.Time{now}, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return away
		}}},
		"a stop cannot be recorded": {engaged, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return away
		}}},
		"what is deleted cannot be recorded": {[]time.Time{now}, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return away
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			b, volumes := braked(t, mirror.Limit{Count: 3}, row.revoked...)
			whole, ok := b.write.client.(client.WithWatch)
			if !ok {
				t.Fatal("the fake client cannot be made to fail")
			}
			failing := interceptor.NewClient(whole, row.fail)
			b.cache, b.live, b.write.client = reader{failing}, reader{failing}, failing
			if holds, err := b.holds(t.Context(), volumes[0], now); !holds || !errors.Is(err, away) {
				t.Errorf("it holds: %v, %v", holds, err)
			}
		})
	}
}
