// Package retain_test runs mooring retain against a real control plane: real
// credentials with the documented rights, the real binder, and a proxy that
// fails on purpose.
package retain_test

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/mooring-k8s/mooring/internal/cli"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

var plane = &controlplane.Shared{Options: controlplane.Options{
	Audit:            controlplane.AuditMetadata,
	BinderSyncPeriod: time.Second,
}}

// asCommand makes the test program be mooring, so that a test can kill one.
const asCommand = "MOORING_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) == "true" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		os.Exit(cli.Run(ctx, os.Args[1:], cli.Env{Out: os.Stdout, Err: os.Stderr, Version: "test"}))
	}
	os.Exit(controlplane.Run(m, plane))
}
