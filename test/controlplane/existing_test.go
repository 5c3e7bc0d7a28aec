package controlplane

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestExistingCluster uses one plane as the existing cluster of another.
func TestExistingCluster(t *testing.T) {
	cluster := ownPlane(t, Options{Controllers: []string{"certificatesigningrequest-signing-controller"}})
	t.Setenv("KUBECONFIG", cluster.AdminKubeconfigFile())
	t.Setenv(ExistingClusterEnv, "true")

	cp := ForTest(t, Options{})
	if err := cp.APIServer().Kill(); !errors.Is(err, ErrExistingCluster) {
		t.Errorf("killing its API server gives %v", err)
	}
	admin := clientFor(t, cp.Admin())
	namespace := newNamespace(t, admin)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}
	if _, err := admin.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	robot, err := cp.ServiceAccount(t.Context(), namespace, "robot")
	if err != nil {
		t.Fatal(err)
	}
	checkKubeconfig(t, robot)
	user, err := cp.User(t.Context(), "alice", "readers")
	if err != nil {
		t.Fatal(err)
	}
	allowClaims(t, admin, namespace, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"})
	checkLimited(t, user, namespace)

	for name, options := range map[string]Options{
		"the gate": {CrossNamespace: true},
		"an audit": {Audit: AuditMetadata},
		"a flag":   {APIServerArgs: []string{"--v=2"}},
	} {
		if _, err := Start(t.Context(), options); !errors.Is(err, ErrExistingCluster) {
			t.Errorf("asking for %s gives %v", name, err)
		}
	}
	if err := cp.Stop(); err != nil {
		t.Error(err)
	}
	if cluster.APIServer().PID() == 0 {
		t.Error("Stop ended a cluster that it did not start")
	}
}
