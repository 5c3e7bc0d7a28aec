package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Errors are tried again after 50 ms, then twice that, up to 30 s: an API
// server that was away must not be missed for minutes.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// Setup adds the reconcilers, the indexes, the metrics and the probe to a
// manager whose cache was made with CacheOptions.
func Setup(ctx context.Context, mgr ctrl.Manager, options Options) error {
	if err := indexes(ctx, mgr.GetFieldIndexer(), options.Names); err != nil {
		return fmt.Errorf("index the cache: %w", err)
	}
	if err := startInformers(ctx, mgr.GetCache()); err != nil {
		return fmt.Errorf("watch the cluster: %w", err)
	}
	metrics, err := newMetrics(options.Metrics)
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	parts := assemble(mgr, options, metrics)
	if err := options.Metrics.Register(newMirrorsCollector(mgr.GetClient(), options, parts.volume.unproven)); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	if err := registerIdentity(options, mgr.Elected()); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	for _, add := range []func(ctrl.Manager) error{parts.addClaim, parts.addVolume, parts.addOrigin} {
		if err := add(mgr); err != nil {
			return err
		}
	}
	if err := mgr.Add(&brakeWatch{parts.claim.brake}); err != nil {
		return err
	}
	return mgr.Add(&probe{live: mgr.GetClient(), namespace: options.OwnNamespace, metrics: metrics, log: mgr.GetLogger()})
}

// startInformers lets a replica that does not lead fill its caches too, so that
// it can take over at once, and is not called ready before it could.
func startInformers(ctx context.Context, informers cache.Cache) error {
	for _, object := range []client.Object{
		&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}, newNamespace(), &storagev1.StorageClass{}, &storagev1.CSIDriver{},
	} {
		if _, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("%T: %w", object, err)
		}
	}
	return nil
}

// parts are the three reconcilers and what wakes them.
type parts struct {
	options Options
	wake    waker
	claim   *claimReconciler
	volume  *volumeReconciler
	origin  *originReconciler
}

func assemble(mgr ctrl.Manager, options Options, metrics *metrics) parts {
	cached, live := reader{mgr.GetClient()}, reader{readTogether(mgr.GetAPIReader())}
	write := writer{client: mgr.GetClient(), names: options.Names}
	say := &teller{names: options.Names, write: write, recorder: mgr.GetEventRecorder(fieldManager), metrics: metrics}
	locks := newOriginLocks()
	began, ended := &beginning{}, &losses{}
	stop := &brake{options: options, cache: cached, live: live, write: write, say: say, metrics: metrics}
	return parts{
		options: options,
		wake:    waker{names: options.Names, cache: cached},
		claim:   &claimReconciler{options: options, cache: cached, live: live, write: write, say: say, locks: locks, metrics: metrics, brake: stop, began: began, losses: ended},
		volume:  &volumeReconciler{options: options, cache: cached, live: live, write: write, say: say, metrics: metrics, unproven: &nameSet{}},
		origin:  &originReconciler{options: options, cache: cached, live: live, write: write, say: say, locks: locks, began: began, losses: ended},
	}
}

func (p parts) addClaim(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("claim").
		Watches(&corev1.PersistentVolumeClaim{}, on(p.wake.itself)).
		Watches(&corev1.PersistentVolumeClaim{}, on(p.wake.siblings), when(gone(p.options.Names))).
		Watches(&corev1.PersistentVolumeClaim{}, on(p.wake.mirrorsOfClaim), when(claimAsOriginChanged(p.options.Names))).
		Watches(&corev1.PersistentVolume{}, on(p.wake.mirrorsOfVolume), when(volumeAsOriginChanged())).
		WatchesMetadata(newNamespace(), on(p.wake.inNamespace), when(labelsChanged())).
		Watches(&storagev1.StorageClass{}, on(p.wake.ofClass), when(classChanged())).
		Watches(&storagev1.CSIDriver{}, on(p.wake.ofDriver), when(driverChanged())).
		WithOptions(p.queue()).
		Complete(calm(p.claim))
}

func (p parts) addVolume(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("volume").
		Watches(&corev1.PersistentVolume{}, on(p.wake.volume)).
		Watches(&corev1.PersistentVolume{}, on(p.wake.volumesOfOrigin), when(volumeAsModelChanged())).
		Watches(&corev1.PersistentVolumeClaim{}, on(p.wake.volumesOfClaim)).
		WithOptions(p.queue()).
		Complete(calm(p.volume))
}

func (p parts) addOrigin(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("origin").
		Watches(&corev1.PersistentVolumeClaim{}, on(p.wake.origin), when(concernsOrigins(p.options.Names))).
		Watches(&corev1.PersistentVolumeClaim{}, on(p.wake.mirrored), when(claimAsOriginChanged(p.options.Names))).
		Watches(&corev1.PersistentVolume{}, on(p.wake.originOfVolume)).
		WatchesMetadata(newNamespace(), on(p.wake.originsIn), when(labelsChanged())).
		WatchesMetadata(newNamespace(), on(p.wake.heldIn), when(terminates())).
		WithOptions(p.queue()).
		Complete(calm(p.origin))
}

// calm lets a reconciler that met somebody else's write look again soon,
// without an error in the log: conflicts are how writers take turns. Where there
// is no end of them it looks again ever later, as after any error; that the object
// changed wakes it before. One that has to wait before it does something again
// comes when it is time.
func calm(reconciler reconcile.Reconciler) reconcile.Reconciler {
	conflicts := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		result, err := reconciler.Reconcile(ctx, request)
		if apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: conflicts.When(request)}, nil
		}
		conflicts.Forget(request)
		var later notYet
		if errors.As(err, &later) {
			return reconcile.Result{RequeueAfter: later.rest}, nil
		}
		return result, err
	})
}

// queue returns the options of one controller; the limiter is its own.
func (p parts) queue() controller.Options {
	skipNameValidation := true // several managers of one process, in tests, may have the same controllers
	return controller.Options{
		MaxConcurrentReconciles: p.options.Workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		SkipNameValidation:      &skipNameValidation,
	}
}

func on(wake handler.MapFunc) handler.EventHandler { return handler.EnqueueRequestsFromMapFunc(wake) }

func when(p predicate.Predicate) builder.WatchesOption { return builder.WithPredicates(p) }

// CachesSynced returns a readiness check: a replica is ready when its caches
// hold the cluster, whether or not it leads.
func CachesSynced(mgr ctrl.Manager) healthz.Checker {
	return func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}
}
