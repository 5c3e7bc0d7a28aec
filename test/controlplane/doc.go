// Package controlplane starts a real Kubernetes control plane for tests and
// demonstrations: etcd, kube-apiserver and kube-controller-manager with its
// real volume binder, on free loopback ports, with TLS and RBAC, in a
// directory that is removed afterwards. The binaries come from the program in
// the directory build ("make controlplane").
//
// controller-runtime's envtest is not used: it cannot start
// kube-controller-manager, gives no handle to kill, pause and restart a
// server, and leaves its children behind when the test process dies. Here a
// small guardian process, which notices the death of the test process by the
// end of a pipe, kills exactly the processes that were started.
package controlplane
