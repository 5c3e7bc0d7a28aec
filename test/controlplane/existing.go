package controlplane

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ExistingClusterEnv set to true makes Start use the cluster of KUBECONFIG.
const ExistingClusterEnv = "USE_EXISTING_CLUSTER"

func useExisting() bool { return os.Getenv(ExistingClusterEnv) == "true" }

// attach makes the plane the cluster of KUBECONFIG.
func (cp *ControlPlane) attach(ctx context.Context) error {
	cp.existing = true
	for name, to := range map[string]**Process{
		EtcdName: &cp.etcd, APIServerName: &cp.apiServer, ControllerManagerName: &cp.controllerManager,
	} {
		*to = cp.newProcess(name)
		(*to).foreign = true
	}
	if err := cp.options.fitExisting(); err != nil {
		return err
	}
	file, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		return fmt.Errorf("read KUBECONFIG: %w", err)
	}
	if err := clientcmdapi.MinifyConfig(file); err != nil {
		return fmt.Errorf("read KUBECONFIG: %w", err)
	}
	if err := clientcmdapi.FlattenConfig(file); err != nil {
		return fmt.Errorf("read KUBECONFIG: %w", err)
	}
	if cp.admin, err = identityOf("admin", file); err != nil {
		return err
	}
	if err := cp.admin.WriteKubeconfig(cp.AdminKubeconfigFile()); err != nil {
		return err
	}
	if err := cp.waitForNamespaces(ctx); err != nil {
		return err
	}
	keeps, err := cp.KeepsDataSourceNamespace(ctx)
	if err != nil {
		return err
	}
	if keeps != cp.options.CrossNamespace {
		return fmt.Errorf("%w: its gate %s is %t and %t is asked for", ErrExistingCluster, CrossNamespaceGate, keeps, cp.options.CrossNamespace)
	}
	return nil
}

// fitExisting refuses options that only a new plane can have.
func (o Options) fitExisting() error {
	switch {
	case o.Audit != AuditNone:
		return fmt.Errorf("an audit log is %w", ErrExistingCluster)
	case len(o.FeatureGates) > 0:
		return fmt.Errorf("setting feature gates is %w", ErrExistingCluster)
	case len(o.APIServerArgs)+len(o.ControllerManagerArgs)+len(o.EtcdArgs)+len(o.Controllers) > 0:
		return fmt.Errorf("changing how the servers run is %w", ErrExistingCluster)
	default:
		return nil
	}
}

// KeepsDataSourceNamespace says whether the API server stores a claim's
// dataSourceRef that names another namespace. It asks by a dry run and leaves
// nothing behind.
func (cp *ControlPlane) KeepsDataSourceNamespace(ctx context.Context) (bool, error) {
	api, err := kubernetes.NewForConfig(cp.admin.Config)
	if err != nil {
		return false, err
	}
	elsewhere, noClass := "elsewhere", ""
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			StorageClassName: &noClass,
			DataSourceRef:    &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "origin", Namespace: &elsewhere},
		},
	}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: oneByte}
	stored, err := api.CoreV1().PersistentVolumeClaims(metav1.NamespaceDefault).
		Create(ctx, claim, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return false, fmt.Errorf("try by a dry run whether %s is on: %w", CrossNamespaceGate, err)
	}
	ref := stored.Spec.DataSourceRef
	return ref != nil && ref.Namespace != nil, nil
}

// requestUser gets a client certificate from the cluster's signer.
func (cp *ControlPlane) requestUser(ctx context.Context, name string, groups []string) (*Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: groups}}, key)
	if err != nil {
		return nil, err
	}
	cert, err := cp.sign(ctx, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}))
	if err != nil {
		return nil, fmt.Errorf("get a certificate for the user %s: %w", name, err)
	}
	return newIdentity(name, cp.cluster(), &clientcmdapi.AuthInfo{
		ClientCertificateData: cert,
		ClientKeyData:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	})
}

// sign files a request, approves it, waits for the certificate and removes the
// request.
func (cp *ControlPlane) sign(ctx context.Context, request []byte) ([]byte, error) {
	api, err := kubernetes.NewForConfig(cp.admin.Config)
	if err != nil {
		return nil, err
	}
	requests := api.CertificatesV1().CertificateSigningRequests()
	filed, err := requests.Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "controlplane-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = requests.Delete(context.WithoutCancel(ctx), filed.Name, metav1.DeleteOptions{}) }()
	filed.Status.Conditions = append(filed.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test", Message: "asked for by a test",
	})
	if _, err := requests.UpdateApproval(ctx, filed.Name, filed, metav1.UpdateOptions{}); err != nil {
		return nil, err
	}
	var cert []byte
	ctx, cancel := context.WithTimeout(ctx, cp.options.StartTimeout)
	defer cancel()
	err = poll(ctx, nil, func(ctx context.Context) error {
		signed, err := requests.Get(ctx, filed.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if cert = signed.Status.Certificate; len(cert) == 0 {
			return errors.New("the cluster's signer has not signed it")
		}
		return nil
	})
	return cert, err
}

var oneByte = resource.MustParse("1")
