package controlplane

import (
	"context"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// shared has the gate on and an audit log.
var shared = &Shared{Options: Options{CrossNamespace: true, Audit: AuditMetadata}}

func TestMain(m *testing.M) {
	if os.Getenv(dyingEnv) != "" {
		diePanicking()
	}
	os.Exit(Run(m, shared))
}

// ownPlane starts a plane whose servers the test may kill.
func ownPlane(t *testing.T, options Options) *ControlPlane {
	t.Helper()
	if useExisting() {
		t.Skip("the servers of an existing cluster are left alone")
	}
	return ForTest(t, options)
}

func clientFor(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// newNamespace makes a namespace that ends with the test.
func newNamespace(t *testing.T, api kubernetes.Interface) string {
	t.Helper()
	made, err := api.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := api.CoreV1().Namespaces().Delete(context.Background(), made.Name, metav1.DeleteOptions{})
		if err != nil {
			t.Errorf("delete the namespace: %v", err)
		}
	})
	return made.Name
}

// eventually repeats check until it gives nil.
func eventually(t *testing.T, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := poll(ctx, nil, check); err != nil {
		t.Fatal(err)
	}
}
