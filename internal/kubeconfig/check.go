package kubeconfig

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	clusterPath = "clusters[0].cluster."
	userPath    = "users[0].user."
)

func (c *checker) refuseForbidden(path string, fields []forbidden) {
	for _, f := range fields {
		if f.present != nil {
			c.refuse(path+f.field, "%s", f.why)
		}
	}
}

func (c *checker) cluster(cl cluster) {
	c.refuseForbidden(clusterPath, cl.forbidden())
	if cl.InsecureSkipTLSVerify {
		c.refuse(clusterPath+"insecure-skip-tls-verify", "the server would not be verified; leave it out")
	}
	c.server(cl.Server)
	if name := cl.TLSServerName; name != "" && !isHost(name) {
		c.refuse(clusterPath+"tls-server-name", "expected a host name or an IP address")
	}
	c.access.TLSServerName = cl.TLSServerName
	c.ca(cl.CAData)
}

// server accepts https URLs without user, query and fragment; none of those
// parts is shown, since they can hold secrets.
func (c *checker) server(server string) {
	field := clusterPath + "server"
	if server == "" {
		c.refuse(field, "missing; expected the https URL of the API server")
		return
	}
	u, err := url.Parse(server)
	switch {
	case err != nil || !isHost(u.Hostname()):
		c.refuse(field, "not a URL with a host; expected one like https://api.example.com:6443")
	case u.Scheme != "https":
		c.refuse(field, "expected an https URL, since the credentials would travel readable")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		c.refuse(field, "expected only scheme, host, port and path; remove user, query or fragment")
	}
	c.access.Server = server
}

func isHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return len(validation.IsDNS1123Subdomain(strings.ToLower(strings.TrimSuffix(host, ".")))) == 0
}

// ca accepts PEM certificates with any text between them.
func (c *checker) ca(encoded *string) {
	field := clusterPath + "certificate-authority-data"
	data, ok := c.decode(field, encoded, "the PEM certificates of the server's authority")
	if !ok {
		return
	}
	certificates, ok := c.certificates(field, data)
	if !ok {
		return
	}
	var raw [][]byte
	valid := 0
	for _, certificate := range certificates {
		raw = append(raw, certificate.Raw)
		if problem := outsideValidity(certificate, c.now); problem != "" {
			c.note("%s: the certificate of %q %s", field, certificate.Subject, problem)
			continue
		}
		valid++
	}
	if valid == 0 {
		first := certificates[0]
		c.refuse(field, "no certificate in it is valid now: the one of %q %s; get the cluster's current authority", first.Subject, outsideValidity(first, c.now))
	}
	c.access.CA = data
	c.access.CADigest = digest(raw)
}

// certificates returns the certificates of PEM data, at least one.
func (c *checker) certificates(field string, data []byte) ([]*x509.Certificate, bool) {
	var found []*x509.Certificate
	rest := data
	for {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			c.refuse(field, "a PEM block is no certificate; expected CERTIFICATE blocks only")
			return nil, false
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			c.refuse(field, "certificate %d in it cannot be parsed", len(found)+1)
			return nil, false
		}
		found = append(found, certificate)
	}
	// pem.Decode skips what it cannot read; a block that is skipped here might
	// be read by somebody else.
	if strings.Count(string(data), "-----BEGIN ") != len(found) {
		c.refuse(field, "a PEM block in it is cut off or malformed")
		return nil, false
	}
	if len(found) == 0 {
		c.refuse(field, "no PEM certificate in it; expected at least one block that begins with -----BEGIN CERTIFICATE-----")
	}
	return found, len(found) > 0
}

func outsideValidity(certificate *x509.Certificate, now time.Time) string {
	switch {
	case now.After(certificate.NotAfter):
		return "expired on " + certificate.NotAfter.UTC().Format(time.RFC3339)
	case now.Before(certificate.NotBefore):
		return "is valid only from " + certificate.NotBefore.UTC().Format(time.RFC3339)
	}
	return ""
}

// user accepts exactly one of a token and a complete pair.
func (c *checker) user(u user) {
	c.refuseForbidden(userPath, u.forbidden())
	hasToken := u.Token != nil
	hasPair := u.ClientCertData != nil || u.ClientKeyData != nil
	switch {
	case hasToken && hasPair:
		c.refuse(userPath+"token", "stands beside a client certificate; expected exactly one of the two, or nobody can say who acts")
	case hasToken:
		c.token(*u.Token)
	case hasPair:
		c.pair(u)
	default:
		c.refuse("users[0].user", "no credentials; expected token, or client-certificate-data with client-key-data")
	}
}

func (c *checker) token(token string) {
	notVisible := func(r rune) bool { return r <= ' ' || r > '~' }
	switch {
	case strings.TrimSpace(token) == "":
		c.refuse(userPath+"token", "empty")
	case strings.ContainsFunc(token, notVisible):
		c.refuse(userPath+"token", "has white space or characters that no token has; a line break at its end, perhaps")
	}
	c.access.Token = token
}

func (c *checker) pair(u user) {
	certField, keyField := userPath+"client-certificate-data", userPath+"client-key-data"
	cert, certOK := c.decode(certField, u.ClientCertData, "a PEM certificate")
	key, keyOK := c.decode(keyField, u.ClientKeyData, "a PEM private key")
	if !certOK || !keyOK {
		return
	}
	certificates, ok := c.certificates(certField, cert)
	if !ok {
		return
	}
	if problem := outsideValidity(certificates[0], c.now); problem != "" {
		c.refuse(certField, "the certificate of %q %s; get a new one", certificates[0].Subject, problem)
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		// The cause is left out: it can describe the key.
		c.refuse(keyField, "is no unencrypted PEM private key of the certificate in client-certificate-data")
	}
	c.access.ClientCert, c.access.ClientKey = cert, key
}

// decode returns the bytes of a base64 field that must be there.
func (c *checker) decode(field string, encoded *string, expected string) ([]byte, bool) {
	if encoded == nil || strings.TrimSpace(*encoded) == "" {
		c.refuse(field, "missing or empty; expected %s, base64-encoded", expected)
		return nil, false
	}
	data, err := base64.StdEncoding.DecodeString(*encoded)
	if err != nil {
		c.refuse(field, "cannot be decoded; expected %s, base64-encoded", expected)
		return nil, false
	}
	return data, true
}
