package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestCalm answers a reconciler in each way, in a row: conflicts without end are
// not looked at again and again at once, and one alone is.
func TestCalm(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "persistentvolumes"}, "v", errors.New("it changed"))
	broken := errors.New("broken")
	var answer error
	calmed := calm(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, answer
	}))
	one := reconcile.Request{NamespacedName: types.NamespacedName{Name: "one"}}
	other := reconcile.Request{NamespacedName: types.NamespacedName{Name: "other"}}
	for i, step := range []struct {
		request reconcile.Request
		answer  error
		want    time.Duration
		err     error
	}{
		{one, conflict, 50 * time.Millisecond, nil},
		{one, conflict, 100 * time.Millisecond, nil},
		{one, conflict, 200 * time.Millisecond, nil},
		{other, conflict, 50 * time.Millisecond, nil}, // each object on its own
		{one, conflict, 400 * time.Millisecond, nil},
		{one, nil, 0, nil},
		{one, conflict, 50 * time.Millisecond, nil}, // what ended well is forgotten
		{one, broken, 0, broken},
		{one, conflict, 50 * time.Millisecond, nil},
		{one, notYet{time.Second}, time.Second, nil},
		{one, conflict, 50 * time.Millisecond, nil},
	} {
		answer = step.answer
		result, err := calmed.Reconcile(t.Context(), step.request)
		if result.RequeueAfter != step.want || !errors.Is(err, step.err) {
			t.Errorf("step %d: got %v, %v, want %v, %v", i, result.RequeueAfter, err, step.want, step.err)
		}
	}
	answer = conflict
	var last time.Duration
	for range 100 {
		result, err := calmed.Reconcile(t.Context(), one)
		if err != nil {
			t.Fatal(err)
		}
		last = result.RequeueAfter
	}
	if last != lastRetry {
		t.Errorf("after 100 conflicts it comes again in %v, want %v", last, lastRetry)
	}
}
