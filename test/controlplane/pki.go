package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime of every certificate: a plane that was left running may be old.
const lifetime = 365 * 24 * time.Hour

// pki is what a control plane's members know each other by.
type pki struct {
	ca, serving, admin      *pair // the API server's and its clients'
	etcdCA                  *pair // of its own, so that no user may speak to etcd
	etcdServing, etcdClient *pair
	serviceAccounts         *pair // a key without a certificate
}

// pair is a key and its certificate, in memory and in two files.
type pair struct {
	cert              *x509.Certificate
	key               crypto.Signer
	certPEM, keyPEM   []byte
	certFile, keyFile string
}

func newPKI(dir string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	p := &pki{}
	for _, member := range []struct {
		to     **pair
		file   string
		issuer **pair
		make   func(*x509.Certificate)
	}{
		{&p.ca, "ca", nil, authority("controlplane-ca")},
		{&p.serving, "serving", &p.ca, server},
		{&p.admin, "admin", &p.ca, client("admin", "system:masters")},
		{&p.etcdCA, "etcd-ca", nil, authority("etcd-ca")},
		{&p.etcdServing, "etcd-serving", &p.etcdCA, server},
		{&p.etcdClient, "etcd-client", &p.etcdCA, client("kube-apiserver")},
	} {
		var issuer *pair
		if member.issuer != nil {
			issuer = *member.issuer
		}
		made, err := issue(issuer, member.make)
		if err != nil {
			return nil, err
		}
		if err := made.write(dir, member.file); err != nil {
			return nil, err
		}
		*member.to = made
	}
	var err error
	p.serviceAccounts, err = newSigningKey(dir)
	return p, err
}

func authority(name string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.Subject = pkix.Name{CommonName: name}
		c.IsCA, c.BasicConstraintsValid = true, true
		c.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	}
}

func server(c *x509.Certificate) {
	c.Subject = pkix.Name{CommonName: "localhost"}
	c.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	// etcd is a client of itself, too.
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
}

func client(name string, groups ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.Subject = pkix.Name{CommonName: name, Organization: groups}
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
}

// issue makes a key and a certificate signed by issuer, or by itself.
func issue(issuer *pair, change func(*x509.Certificate)) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
	change(template)
	parent, signer := template, crypto.Signer(key)
	if issuer != nil {
		parent, signer = issuer.cert, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &pair{
		cert: cert, key: key,
		certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		keyPEM:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

// newSigningKey makes the key of service account tokens; the certificate's
// place has the public key.
func newSigningKey(dir string) (*pair, error) {
	made, err := issue(nil, authority("service-accounts"))
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(made.key.Public())
	if err != nil {
		return nil, err
	}
	made.certPEM = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	return made, made.write(dir, "service-accounts")
}

func (p *pair) write(dir, name string) error {
	p.certFile, p.keyFile = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	if err := os.WriteFile(p.certFile, p.certPEM, 0o600); err != nil {
		return err
	}
	return os.WriteFile(p.keyFile, p.keyPEM, 0o600)
}

func (p *pki) adminTLS() *tls.Config      { return clientTLS(p.ca, p.admin) }
func (p *pki) etcdClientTLS() *tls.Config { return clientTLS(p.etcdCA, p.etcdClient) }

func clientTLS(ca, client *pair) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	return &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: roots,
		Certificates: []tls.Certificate{{Certificate: [][]byte{client.cert.Raw}, PrivateKey: client.key}},
	}
}

// newUser makes a client certificate that the API server takes for that user.
func (p *pki) newUser(name string, groups ...string) (*pair, error) {
	made, err := issue(p.ca, client(name, groups...))
	if err != nil {
		return nil, fmt.Errorf("make a certificate for the user %s: %w", name, err)
	}
	return made, nil
}
