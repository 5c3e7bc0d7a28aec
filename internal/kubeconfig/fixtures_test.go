package kubeconfig_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

var now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// secretMark stands in every secret of the fixtures, so that a test can look
// for it where no secret may be.
const secretMark = "s3cr3tmark"

// pki is one authority and one client pair, made anew in every run.
type pki struct{ ca, cert, key, otherKey []byte }

type validity struct{ from, until time.Time }

var valid = validity{now.Add(-time.Hour), now.Add(time.Hour)}

func newPKI(tb testing.TB) pki {
	tb.Helper()
	cert, key := issue(tb, "client", valid)
	_, other := issue(tb, "other", valid)
	ca, _ := issue(tb, "authority", valid)
	return pki{ca: ca, cert: cert, key: key, otherKey: other}
}

// issue returns a self-signed certificate and its key as PEM.
func issue(tb testing.TB, name string, v validity) (cert, key []byte) {
	tb.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: v.from, NotAfter: v.until, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		tb.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		tb.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

func b64(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

type object = map[string]any

// tokenConfig is the base case that every row changes in one place.
func (p pki) tokenConfig() object {
	return object{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{object{"name": "k", "cluster": object{
			"server": "https://api.example.com:6443", "certificate-authority-data": b64(p.ca)}}},
		"users":    []any{object{"name": "u", "user": object{"token": secretMark}}},
		"contexts": []any{object{"name": "c", "context": object{"cluster": "k", "user": "u"}}},
	}
}

func entry(config object, list, kind string) object {
	return config[list].([]any)[0].(object)[kind].(object)
}

func clusterOf(config object) object { return entry(config, "clusters", "cluster") }
func userOf(config object) object    { return entry(config, "users", "user") }
func contextOf(config object) object { return entry(config, "contexts", "context") }

// withPair replaces the token by the client pair.
func (p pki) withPair(config object) {
	user := userOf(config)
	delete(user, "token")
	user["client-certificate-data"] = b64(p.cert)
	user["client-key-data"] = b64(p.key)
}
