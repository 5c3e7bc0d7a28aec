// Command peer is what the benchmarks hold Mooring against: a minimal
// provisioner of mirror volumes on sig-storage-lib-external-provisioner. It does
// what Mooring does for a claim that is granted, and nothing else; it is not for
// use.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	provisioner "sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// The limits that controller-runtime gave clients for long.
const (
	usualQPS   = 20
	usualBurst = 30
)

func main() {
	flags := flag.NewFlagSet("peer", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig file")
	probes := flags.String("probes", "", "address of /readyz")
	unlimited := flags.Bool("unlimited", false, "without client-side limits")
	_ = flags.Parse(os.Args[1:]) // ends where it fails
	if err := run(ctrl.SetupSignalHandler(), *kubeconfig, *probes, *unlimited); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, probes string, unlimited bool) error {
	ctrl.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = usualQPS, usualBurst
	if unlimited {
		config.QPS = -1
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: probes})
	if err != nil {
		return err
	}
	for _, object := range []client.Object{&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}, &corev1.Namespace{}, &storagev1.StorageClass{}} {
		if _, err := mgr.GetCache().GetInformer(ctx, object); err != nil {
			return err
		}
	}
	if err := mgr.AddReadyzCheck("caches", func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("not filled")
		}
		return nil
	}); err != nil {
		return err
	}
	if err := mgr.Add(library(rest.CopyConfig(config), mgr.GetClient())); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// library runs the provisioning library with its own defaults, without leader
// election.
func library(config *rest.Config, cached client.Client) manager.Runnable {
	return manager.RunnableFunc(func(ctx context.Context) error {
		api, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		var names mooringapi.Names
		provisioner.NewProvisionController(ctx, api, names.Provisioner(), peer{cached, names}, provisioner.LeaderElection(false)).Run(ctx)
		return nil
	})
}

type peer struct {
	client.Client
	names mooringapi.Names
}

// Provision makes the volume of a claim whose origin grants its namespace.
func (p peer) Provision(ctx context.Context, options provisioner.ProvisionOptions) (*corev1.PersistentVolume, provisioner.ProvisioningState, error) {
	volume, err := p.volume(ctx, options)
	return volume, provisioner.ProvisioningFinished, err
}

// Delete does nothing: a mirror has no storage of its own.
func (peer) Delete(context.Context, *corev1.PersistentVolume) error { return nil }

func (p peer) volume(ctx context.Context, options provisioner.ProvisionOptions) (*corev1.PersistentVolume, error) {
	key := mirror.Origin(p.names, options.PVC)
	if key.Name == "" {
		return nil, errors.New("the claim names no origin")
	}
	var namespace corev1.Namespace
	var origin corev1.PersistentVolumeClaim
	var behind corev1.PersistentVolume
	if err := p.Get(ctx, client.ObjectKey{Name: options.PVC.Namespace}, &namespace); err != nil {
		return nil, err
	}
	if err := p.Get(ctx, key, &origin); err != nil {
		return nil, err
	}
	if grant.Evaluate(p.names, origin.Annotations, namespace.Labels, time.Now()).Access == grant.None {
		return nil, errors.New("not granted")
	}
	if err := p.Get(ctx, client.ObjectKey{Name: origin.Spec.VolumeName}, &behind); err != nil {
		return nil, err
	}
	volume := &corev1.PersistentVolume{Spec: *behind.Spec.DeepCopy()}
	volume.Name = options.PVName
	volume.Spec.ClaimRef = nil
	volume.Spec.StorageClassName = options.StorageClass.Name
	volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	if volume.Spec.CSI != nil {
		volume.Spec.CSI.VolumeHandle += "-" + options.PVName
	}
	return volume, nil
}
