package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const tokenSeconds = 24 * 60 * 60

// Identity is somebody who may speak to the API server.
type Identity struct {
	// Name is what the API server calls the identity.
	Name string
	// Config has no client-side limit of requests.
	Config *rest.Config
	// Kubeconfig is a kubeconfig file's content with one cluster, one user and
	// one context, which is the current one, and with everything embedded.
	Kubeconfig []byte
}

// WriteKubeconfig writes the kubeconfig to a file that only this user may read.
func (i *Identity) WriteKubeconfig(path string) error {
	if err := os.WriteFile(path, i.Kubeconfig, 0o600); err != nil {
		return fmt.Errorf("write the kubeconfig of %s: %w", i.Name, err)
	}
	return nil
}

// User gives the identity of a user in the named groups, with a client
// certificate. Nobody needs to create the user; RBAC says what it may do. On
// an existing cluster the certificate comes from its CertificateSigningRequest
// API, which the administrator must be allowed to approve, which does not sign
// for the group system:masters, and which some managed clusters do not serve.
func (cp *ControlPlane) User(ctx context.Context, name string, groups ...string) (*Identity, error) {
	if cp.existing {
		return cp.requestUser(ctx, name, groups)
	}
	made, err := cp.pki.newUser(name, groups...)
	if err != nil {
		return nil, err
	}
	return cp.pki.identity(name, address(cp.apiServer.ports[0]), made)
}

// ServiceAccount gives the identity of a service account that exists, with a
// token of 24 hours.
func (cp *ControlPlane) ServiceAccount(ctx context.Context, namespace, name string) (*Identity, error) {
	fullName := "system:serviceaccount:" + namespace + ":" + name
	api, err := kubernetes.NewForConfig(cp.admin.Config)
	if err != nil {
		return nil, fmt.Errorf("ask for a token of %s: %w", fullName, err)
	}
	seconds := int64(tokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := api.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("ask for a token of %s: %w", fullName, err)
	}
	return newIdentity(fullName, cp.cluster(), &clientcmdapi.AuthInfo{Token: answer.Status.Token})
}

// cluster is how the administrator's configuration reaches the API server.
func (cp *ControlPlane) cluster() *clientcmdapi.Cluster {
	c := cp.admin.Config
	return &clientcmdapi.Cluster{
		Server:                   c.Host,
		CertificateAuthorityData: c.CAData,
		TLSServerName:            c.ServerName,
		InsecureSkipTLSVerify:    c.Insecure,
	}
}

// identity is a certificate of this plane as an Identity.
func (p *pki) identity(name, server string, client *pair) (*Identity, error) {
	return newIdentity(name,
		&clientcmdapi.Cluster{Server: server, CertificateAuthorityData: p.ca.certPEM},
		&clientcmdapi.AuthInfo{ClientCertificateData: client.certPEM, ClientKeyData: client.keyPEM})
}

func newIdentity(name string, cluster *clientcmdapi.Cluster, auth *clientcmdapi.AuthInfo) (*Identity, error) {
	const clusterName, contextName = "controlplane", "default"
	file := clientcmdapi.NewConfig()
	file.Clusters[clusterName] = cluster
	file.AuthInfos[name] = auth
	file.Contexts[contextName] = &clientcmdapi.Context{Cluster: clusterName, AuthInfo: name}
	file.CurrentContext = contextName
	return identityOf(name, file)
}

// identityOf reads the client configuration from the very kubeconfig that is
// handed out, so that the two cannot differ.
func identityOf(name string, file *clientcmdapi.Config) (*Identity, error) {
	data, err := clientcmd.Write(*file)
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig of %s: %w", name, err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of %s: %w", name, err)
	}
	config.QPS = -1
	return &Identity{Name: name, Config: config, Kubeconfig: data}, nil
}

// makeAdmin makes the administrator's identity, once the API server's port is
// chosen; at a restart there is nothing to do.
func (cp *ControlPlane) makeAdmin() error {
	server := address(cp.apiServer.ports[0])
	if cp.admin != nil && cp.admin.Config.Host == server {
		return nil
	}
	admin, err := cp.pki.identity("admin", server, cp.pki.admin)
	if err != nil {
		return err
	}
	cp.admin = admin
	return admin.WriteKubeconfig(cp.AdminKubeconfigFile())
}

// controllerManagerKubeconfig writes the file that the controller manager
// starts with.
func (cp *ControlPlane) controllerManagerKubeconfig() (string, error) {
	const name = "system:kube-controller-manager"
	made, err := cp.pki.newUser(name)
	if err != nil {
		return "", err
	}
	identity, err := cp.pki.identity(name, address(cp.apiServer.ports[0]), made)
	if err != nil {
		return "", err
	}
	path := filepath.Join(cp.dir, ControllerManagerName+".kubeconfig")
	return path, identity.WriteKubeconfig(path)
}
