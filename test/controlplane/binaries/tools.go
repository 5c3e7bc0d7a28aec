//go:build tools

// Package binaries pins what the control plane is built from. It is a module
// of its own, since k8s.io/kubernetes needs a replace directive for every
// staging module, and no other module should inherit those.
package binaries

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
