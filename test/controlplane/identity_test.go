package controlplane

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// allowClaims lets a subject list claims in a namespace, and nothing else.
func allowClaims(t *testing.T, admin kubernetes.Interface, namespace string, subject rbacv1.Subject) {
	t.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "claims"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"list"},
		}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "claims"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "claims"},
		Subjects:   []rbacv1.Subject{subject},
	}
	if _, err := admin.RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// checkLimited asserts that the identity is who it says, may do what its role
// allows, and nothing else.
func checkLimited(t *testing.T, identity *Identity, namespace string) {
	t.Helper()
	checkKubeconfig(t, identity)
	api := clientFor(t, identity.Config)
	review, err := api.AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := review.Status.UserInfo.Username; got != identity.Name {
		t.Errorf("the API server knows %q as %q", identity.Name, got)
	}
	eventually(t, func(ctx context.Context) error { // the authorizer reads roles from a cache
		_, err := api.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{})
		return err
	})
	if _, err := api.CoreV1().PersistentVolumeClaims("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing claims elsewhere gives %v, want forbidden", err)
	}
	if _, err := api.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing secrets gives %v, want forbidden", err)
	}
}

// checkKubeconfig asserts the form in which kubeconfigs are handed out, and
// that the file works.
func checkKubeconfig(t *testing.T, identity *Identity) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := identity.WriteKubeconfig(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v (%v), want 0600", info.Mode(), err)
	}
	file, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Clusters) != 1 || len(file.AuthInfos) != 1 || len(file.Contexts) != 1 {
		t.Fatalf("want one cluster, one user, one context: %s", identity.Kubeconfig)
	}
	at := file.Contexts[file.CurrentContext]
	if at == nil || file.Clusters[at.Cluster] == nil || file.AuthInfos[at.AuthInfo] == nil {
		t.Fatalf("the current context does not lead anywhere: %s", identity.Kubeconfig)
	}
	cluster, auth := file.Clusters[at.Cluster], file.AuthInfos[at.AuthInfo]
	if len(cluster.CertificateAuthorityData) == 0 || cluster.CertificateAuthority != "" || cluster.InsecureSkipTLSVerify {
		t.Errorf("the authority is not embedded: %+v", cluster)
	}
	hasToken, hasCert := auth.Token != "", len(auth.ClientCertificateData) > 0 && len(auth.ClientKeyData) > 0
	if hasToken == hasCert || auth.TokenFile != "" || auth.ClientCertificate != "" || auth.ClientKey != "" {
		t.Error("want exactly one embedded token or certificate")
	}
}

func TestUserIsLimitedByRBAC(t *testing.T) {
	cp := shared.ForTest(t)
	admin := clientFor(t, cp.Admin())
	namespace := newNamespace(t, admin)
	user, err := cp.User(t.Context(), "alice", "readers")
	if err != nil {
		t.Fatal(err)
	}
	allowClaims(t, admin, namespace, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "readers"})
	checkLimited(t, user, namespace)
}

func TestServiceAccountIsLimitedByRBAC(t *testing.T) {
	cp := shared.ForTest(t)
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
	allowClaims(t, admin, namespace, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "robot"})
	checkLimited(t, robot, namespace)
}

func TestServiceAccountMustExist(t *testing.T) {
	_, err := shared.ForTest(t).ServiceAccount(t.Context(), "default", "nobody")
	if !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want not found", err)
	}
}

func TestAuditLogTellsWhoDidWhat(t *testing.T) {
	cp := shared.ForTest(t)
	admin := clientFor(t, cp.Admin())
	namespace := newNamespace(t, admin)
	newClaim(t, admin, namespace, "audited")
	log, err := os.Open(cp.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	for events := json.NewDecoder(log); ; {
		var event struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef struct{ Resource, Namespace, Name string }
		}
		if err := events.Decode(&event); err != nil {
			t.Fatalf("the creation of the claim is not in the log: %v", err)
		}
		ref := event.ObjectRef
		if event.Verb == "create" && ref.Resource == "persistentvolumeclaims" && ref.Namespace == namespace && event.User.Username == "admin" {
			return
		}
	}
}
