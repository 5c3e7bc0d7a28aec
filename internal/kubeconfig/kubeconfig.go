// Package kubeconfig holds the contract of the only kubeconfig that a retained
// volumes run accepts: one cluster, one user, one context, everything embedded,
// nothing that starts a program, reads a file, changes identity or loosens TLS.
// What the file says is then all there is to know about who connects where.
//
// It is PURE: bytes and a time in, an Access or every problem out. No message
// ever holds a value that could be a secret.
package kubeconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mooring-k8s/mooring/internal/strictyaml"
)

// MaxBytes is the largest kubeconfig that is read: a bundle of some fifty
// certificates.
const MaxBytes = 256 << 10

// Access is what a kubeconfig that satisfies the contract gives: one server and
// one identity. It prints without its secrets.
type Access struct {
	// Server is the https URL of the API server.
	Server string
	// TLSServerName is the name expected in the server's certificate, or empty
	// for the URL's host.
	TLSServerName string
	// CA holds the PEM certificates that the server's certificate must chain
	// to; the machine's own roots are not consulted.
	CA []byte
	// CADigest is "sha256:" and the digest of CA's certificates, in whichever
	// order and with whichever text between they were written.
	CADigest string
	// Token is the bearer token, or empty if ClientCert and ClientKey are set.
	Token string
	// ClientCert and ClientKey are PEM, or empty if Token is set.
	ClientCert, ClientKey []byte
	// Notes are sentences for the owner about what was accepted, such as one
	// expired certificate among valid ones.
	Notes []string
}

// String names the server and the kind of identity, never a secret.
func (a Access) String() string {
	identity := "client certificate"
	if a.Token != "" {
		identity = "token"
	}
	return fmt.Sprintf("%s with a %s", a.Server, identity)
}

// GoString is String: %#v must not print secrets either.
func (a Access) GoString() string { return a.String() }

// fieldName is what the name of a field looks like. A token that stands where one is
// expected, as in {token:x} or in braces alone, does not.
var fieldName = regexp.MustCompile(`^[A-Za-z-]{1,40}(\[[0-9]+\])*$`)

// withoutNames leaves names out of the problems' paths that can be something else.
func withoutNames(problems strictyaml.Problems) strictyaml.Problems {
	for i, p := range problems {
		names := strings.Split(p.Field, ".")
		for n, name := range names {
			if p.Field != "" && !fieldName.MatchString(name) {
				problems[i].Field = strings.Join(append(names[:n:n], "(a name that is not shown)"), ".")
				break
			}
		}
	}
	return problems
}

// Parse returns the access that data gives, or strictyaml.Problems with every
// breach of the contract that it finds. Certificates are judged at now.
func Parse(data []byte, now time.Time) (Access, error) {
	var f file
	if problems := strictyaml.Decode(data, MaxBytes, &f); len(problems) > 0 {
		return Access{}, withoutNames(problems)
	}
	var c checker
	c.now = now
	c.header(f)
	c.context(f)
	if c.exactlyOne("clusters", len(f.Clusters)) {
		c.cluster(f.Clusters[0].Cluster)
	}
	if c.exactlyOne("users", len(f.Users)) {
		c.user(f.Users[0].User)
	}
	if len(c.problems) > 0 {
		return Access{}, c.problems
	}
	return c.access, nil
}

// checker collects the problems of one file and builds what it gives.
type checker struct {
	now      time.Time
	problems strictyaml.Problems
	access   Access
}

func (c *checker) refuse(field, format string, args ...any) {
	c.problems = append(c.problems, strictyaml.Problem{Field: field, Detail: fmt.Sprintf(format, args...)})
}

func (c *checker) note(format string, args ...any) {
	c.access.Notes = append(c.access.Notes, fmt.Sprintf(format, args...))
}

func (c *checker) exactlyOne(field string, n int) bool {
	if n != 1 {
		c.refuse(field, "has %d entries; expected exactly one, so that nobody has to guess which counts", n)
	}
	return n == 1
}

func (c *checker) header(f file) {
	if f.APIVersion != "v1" || f.Kind != "Config" {
		c.refuse("kind", "expected apiVersion v1 and kind Config")
	}
	if f.Extensions != nil {
		c.refuse("extensions", "not accepted; leave it out: no client reads it")
	}
	if p := f.Preferences; p != nil && (p.Extensions != nil || p.Colors != nil) {
		c.refuse("preferences", "expected nothing in it; leave it out")
	}
}

// context refuses names that lead nowhere, or to two things.
func (c *checker) context(f file) {
	if !c.exactlyOne("contexts", len(f.Contexts)) {
		return
	}
	context := f.Contexts[0]
	if context.Name == "" {
		c.refuse("contexts[0].name", "empty; expected the name that current-context gives")
	}
	if f.CurrentContext == "" || f.CurrentContext != context.Name {
		c.refuse("current-context", "expected the name of the only context, %q", context.Name)
	}
	if context.Context.Extensions != nil {
		c.refuse("contexts[0].context.extensions", "not accepted; leave it out: no client reads it")
	}
	if len(f.Clusters) == 1 {
		c.names("cluster", f.Clusters[0].Name, context.Context.Cluster)
	}
	if len(f.Users) == 1 {
		c.names("user", f.Users[0].Name, context.Context.User)
	}
}

// names refuses an entry without a name, and a context that names another.
func (c *checker) names(kind, entry, reference string) {
	if entry == "" {
		c.refuse(kind+"s[0].name", "empty; expected a name that the context refers to")
	}
	if reference != entry || reference == "" {
		c.refuse("contexts[0].context."+kind, "expected the name of the only %s, %q", kind, entry)
	}
}

// digest returns one digest for one set of certificates.
func digest(certificates [][]byte) string {
	sorted := make([]string, len(certificates))
	for i, der := range certificates {
		sum := sha256.Sum256(der)
		sorted[i] = hex.EncodeToString(sum[:])
	}
	slices.Sort(sorted)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(sorted), "\n")))
	return "sha256:" + hex.EncodeToString(sum[:])
}
