package controller

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A fight over a field is fought once in a while, and the first repair at once.
func TestPause(t *testing.T) {
	var p pace
	volume, now := types.NamespacedName{Name: "v"}, time.Now()
	if rest := p.rest(volume, now); rest != 0 {
		t.Errorf("the first repair waits %v", rest)
	}
	p.pause(volume, repairPause, now)
	if rest := p.rest(volume, now.Add(repairPause/4)); rest != 3*repairPause/4 {
		t.Errorf("the second waits %v", rest)
	}
	p.forget(volume)
	if rest := p.rest(volume, now); rest != 0 {
		t.Errorf("another volume of the name waits %v", rest)
	}
	again := calm(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, fmt.Errorf("wrapped: %w", notYet{time.Second})
	}))
	if result, err := again.Reconcile(t.Context(), reconcile.Request{}); err != nil || result.RequeueAfter != time.Second {
		t.Errorf("got %v, %v", result, err)
	}
}
