package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/mooring-k8s/mooring/internal/controller"
	"github.com/mooring-k8s/mooring/internal/mirror"
)

// stopTime is how long work under way may take to end after a signal.
const stopTime = 20 * time.Second

// serve runs the controller until the context ends.
func serve(ctx context.Context, f flags, chosen choices) error {
	log := newLogger(f)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	log.Info("starting", "version", buildVersion(), "provisioner", chosen.names.Provisioner(), "instance", f.instance)

	config, err := restConfig(f)
	if err != nil {
		return err
	}
	tellOfCleanup(ctx, log, config, f, chosen.names)
	mgr, err := newManager(config, f, chosen)
	if err != nil {
		return err
	}
	err = controller.Setup(ctx, mgr, controller.Options{
		Names:                chosen.names,
		Instance:             instanceName(os.Getenv("POD_NAMESPACE"), f.instance),
		NamespaceSelector:    chosen.selector,
		RefuseUnknownDrivers: f.unknownDrivers == "refuse",
		Workers:              f.workers,
		OwnNamespace:         os.Getenv("POD_NAMESPACE"),
		Adopt:                controller.Adoption(f.adopt),
		MaxRevocations:       mirror.Limit{Count: chosen.maxRevocations, Percent: chosen.maxRevokedPercent},
		BrakeName:            f.brakeConfigMap,
		Version:              buildVersion(),
		Metrics:              metrics.Registry,
	})
	if err != nil {
		return err
	}
	err = mgr.Start(ctx)
	if err != nil && ctx.Err() == nil && f.leaderElect && isClosed(mgr.Elected()) {
		return startOver(log, err)
	}
	return err
}

// startOver replaces the process by a new one of its own: a leader that lost
// its lease, since the API server was away or another took it, stands by again
// with nothing left of what it had under way.
func startOver(log logr.Logger, why error) error {
	log.Info("starting over", "why", why.Error())
	executable, err := os.Executable()
	if err != nil {
		return errors.Join(why, err)
	}
	return errors.Join(why, syscall.Exec(executable, os.Args, os.Environ())) //nolint:gosec // itself, as it was started
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

func newManager(config *rest.Config, f flags, chosen choices) (ctrl.Manager, error) {
	stop := stopTime
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		MapperProvider:                controller.Mapper,
		Cache:                         controller.CacheOptions(chosen.names),
		Metrics:                       metricsserver.Options{BindAddress: f.metricsAddress},
		HealthProbeBindAddress:        f.probeAddress,
		PprofBindAddress:              f.pprofAddress,
		LeaderElection:                f.leaderElect,
		LeaderElectionID:              leaseName(f.instance, chosen.names.Provisioner()),
		LeaderElectionNamespace:       f.leaseNamespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &stop,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	if err := mgr.AddReadyzCheck("caches", controller.CachesSynced(mgr)); err != nil {
		return nil, err
	}
	return mgr, nil
}

// instanceName returns what the record calls this installation: two releases of
// one name in two namespaces are two instances.
func instanceName(namespace, instance string) string {
	if namespace == "" {
		return instance
	}
	return namespace + "/" + instance
}

// leaseName returns a name of at most 253 characters that no other instance or
// provisioner name has.
func leaseName(instance, provisioner string) string {
	const longest = 253
	name := instance + "." + provisioner
	if len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "mooring-" + hex.EncodeToString(sum[:16])
}

func restConfig(f flags) (*rest.Config, error) {
	config, err := clientConfig(f.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("find the cluster (--kubeconfig, $KUBECONFIG or a Pod's service account): %w", err)
	}
	config.UserAgent = "mooring-controller/" + buildVersion()
	config.QPS, config.Burst = f.kubeAPIQPS, f.kubeAPIBurst
	switch {
	case f.kubeAPIQPS == 0:
		config.QPS = -1 // no limit of our own
	case f.kubeAPIBurst == 0:
		config.Burst = int(2 * f.kubeAPIQPS)
	}
	return config, nil
}

func clientConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	if kubeconfig == "" && os.Getenv("KUBECONFIG") == "" {
		if config, err := rest.InClusterConfig(); err == nil {
			return config, nil
		}
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
}

func newLogger(f flags) logr.Logger {
	level := zapcore.InfoLevel
	if f.logLevel == "debug" {
		level = zapcore.DebugLevel
	}
	encoder := zap.JSONEncoder
	if f.logFormat == "text" {
		encoder = zap.ConsoleEncoder
	}
	readableTime := func(config *zapcore.EncoderConfig) { config.EncodeTime = zapcore.RFC3339NanoTimeEncoder }
	return zap.New(zap.Level(level), encoder(readableTime), zap.StacktraceLevel(zapcore.PanicLevel))
}
