package gate_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"github.com/mooring-k8s/mooring/internal/gate"
)

func sha256Of(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// The secrets of these tests are made when they run: none stands in the source.

func letters(n int) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	var text strings.Builder
	for range n {
		text.WriteByte(alphabet[mathrand.IntN(len(alphabet))])
	}
	return text.String()
}

func pemOf(t *testing.T, kind string, der []byte, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// secrets returns texts that must be found, each with what no output may hold.
func secrets(t *testing.T) map[string][2]string {
	t.Helper()
	small, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err1 := x509.MarshalECPrivateKey(small)
	pkcs8, err2 := x509.MarshalPKCS8PrivateKey(small)
	_, edwards, err3 := ed25519.GenerateKey(rand.Reader)
	ed, err4 := x509.MarshalPKCS8PrivateKey(edwards)
	large, err5 := rsa.GenerateKey(rand.Reader, 2048)
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ec := pemOf(t, "EC PRIVATE KEY", sec1, nil)
	github, jwtPart := "ghp_"+letters(36), letters(40)
	jwt := "eyJhbGciOiJSUzI1NiJ9." + "eyJpc3MiOiJrdWJlcm5ldGVz" + letters(30) + "." + jwtPart
	password := letters(24)
	kubeconfig := func(user string) string {
		return "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    server: https://k.example.com:6443\ncontexts:\n- name: x\n  context: {cluster: c, user: u}\ncurrent-context: x\nusers:\n- name: u\n  user:\n    " + user + "\n"
	}
	return map[string][2]string{
		"ec.pem":             {ec, body(ec)},
		"pkcs8.key":          {pemOf(t, "PRIVATE KEY", pkcs8, nil), body(pemOf(t, "PRIVATE KEY", pkcs8, nil))},
		"ed25519":            {pemOf(t, "PRIVATE KEY", ed, nil), body(pemOf(t, "PRIVATE KEY", ed, nil))},
		"rsa.pem":            {pemOf(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(large), nil), body(pemOf(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(large), nil))},
		"in a string.go":     {`const key = "` + strings.ReplaceAll(ec, "\n", `\n`) + `"`, body(ec)},
		"indented.yaml":      {"key: |\n    " + strings.ReplaceAll(ec, "\n", "\n    "), body(ec)},
		"binary":             {"\x7fELF\x00\x00\x01" + ec, body(ec)},
		"token.txt":          {"token = " + github + "\n", github},
		"jwt.env":            {"KUBE_TOKEN=" + jwt + "\n", jwtPart},
		"kube token.yaml":    {kubeconfig("token: " + jwt), jwtPart},
		"kube key.yaml":      {kubeconfig("client-key-data: " + base64.StdEncoding.EncodeToString([]byte(ec))), base64.StdEncoding.EncodeToString([]byte(ec))[80:120]},
		"kube password.yaml": {kubeconfig("username: admin\n    password: " + password), password},
		"kube exec.yaml":     {kubeconfig("exec: {apiVersion: client.authentication.k8s.io/v1, command: x}"), "client.authentication"},
		"kube.json":          {`{"kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://k.example.com"}}],"users":[{"name":"u","user":{"token":"` + password + `"}}]}`, password},
		"secret.yaml":        {"apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\ndata:\n  password: " + base64.StdEncoding.EncodeToString([]byte(password)) + "\n", base64.StdEncoding.EncodeToString([]byte(password))},
		"utf16.txt":          {utf16Of("token = " + github + "\n" + ec), body(ec)},
		"name " + github:     {"nothing\n", github},
		"a\nb.pem":           {ec, body(ec)},
		"base64.txt":         {"t=" + base64.StdEncoding.EncodeToString([]byte("token = "+github+" and more")), github},
	}
}

// body is a line of a key that no output may hold.
func body(key string) string { return strings.Split(key, "\n")[1] }

func utf16Of(text string) string {
	var b bytes.Buffer
	b.WriteString("\xff\xfe")
	for _, u := range utf16.Encode([]rune(text)) {
		b.WriteByte(byte(u))
		b.WriteByte(byte(u >> 8))
	}
	return b.String()
}

// rules are read once: that takes half a second with the race detector.
var rules = sync.OnceValues(func() (*gate.Scanner, error) { return gate.NewScanner(nil) })

func scannerWith(t *testing.T, check func([]byte) string) *gate.Scanner {
	t.Helper()
	scanner, err := rules()
	if err != nil {
		t.Fatal(err)
	}
	return scanner.With(check)
}

func scanOne(t *testing.T, name, text string, check func([]byte) string) gate.Result {
	t.Helper()
	scanner := scannerWith(t, check)
	result, err := scanner.File(t.Context(), name, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	result.Findings = append(result.Findings, scanner.Name(t.Context(), name)...)
	return result
}

func TestSecretsAreFoundAndNotTold(t *testing.T) {
	for name, secret := range secrets(t) {
		findings := scanOne(t, name, secret[0], acceptAll).Findings
		if len(findings) == 0 {
			t.Errorf("%q: nothing found", name)
		}
		if told := fmt.Sprintf("%+v", findings); strings.Contains(told, secret[1]) || strings.Contains(told, "\n") {
			t.Errorf("%q: a secret, or a line break, is told: %q", name, told)
		}
	}
}

func TestWhatIsNoSecret(t *testing.T) {
	for name, text := range map[string]string{
		"keys.md":     "A file that begins with `-----BEGIN RSA PRIVATE KEY-----` is a private key.\n",
		"empty":       "",
		"values.yaml": "clusters:\n- a\nusers:\n- b\n",
		"cert.pem":    "-----BEGIN CERTIFICATE-----\n" + strings.Repeat("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0NTY3ODkw\n", 9) + "-----END CERTIFICATE-----\n",
		"ci.yaml":     "env:\n  TOKEN: ${{ secrets.TOKEN }}\n",
		"deploy.yaml": "apiVersion: apps/v1\nkind: Deployment\n",
		"binary":      "\x00\x01\x02" + letters(2000),
	} {
		if got := scanOne(t, name, text, acceptAll).Findings; len(got) > 0 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestLinesAndAllowedLines(t *testing.T) {
	token := "ghp_" + letters(36)
	result := scanOne(t, "a.txt", "one\ntwo\ntoken = "+token+"\nexample = ghp_"+letters(36)+" # gitleaks:allow\n", acceptAll)
	if len(result.Findings) != 1 || result.Findings[0].Line != 3 || result.Findings[0].Rule != "github-pat" || result.Allowed != 1 {
		t.Errorf("got %+v", result)
	}
}

func TestVolumesInTheRepository(t *testing.T) {
	var seen []string
	check := func(data []byte) string {
		seen = append(seen, string(data))
		if strings.Contains(string(data), "Delete") {
			return "bad"
		}
		return ""
	}
	for name, text := range map[string]string{
		"good.yaml":   "kind: PersistentVolume\nspec: {persistentVolumeReclaimPolicy: Retain}\n",
		"claim.yaml":  "kind: PersistentVolumeClaim\nspec: {persistentVolumeReclaimPolicy: Delete}\n",
		"readme.md":   "kind: PersistentVolume\nDelete\n",
		"comment.yml": "x: 1 # no PersistentVolume: Delete\n",
	} {
		if got := scanOne(t, name, text, check).Findings; len(got) > 0 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if !slices.Equal(seen, []string{"kind: PersistentVolume\nspec: {persistentVolumeReclaimPolicy: Retain}\n"}) {
		t.Errorf("checked %q", seen)
	}
	for name, text := range map[string]string{
		"bad.yaml":    "kind: PersistentVolume\nDelete\n",
		"quoted.yml":  "\"kind\": \"PersistentVolume\"\nDelete\n",
		"flow.yaml":   "{apiVersion: v1, kind: PersistentVolume, x: Delete}\n",
		"several.yml": "kind: ConfigMap\n---\r\nkind: PersistentVolume\r\nx: Delete\n",
		"one.json":    `{"kind":"PersistentVolume","x":"Delete"}`,
		"list.yaml":   "kind: PersistentVolumeList\nitems: [{x: Delete}]\n",
		"tagged.yaml": "kind: !!str PersistentVolume\nx: Delete\n",
		"anchor.yaml": "kind: &k PersistentVolume\nx: Delete\n",
		"below.yaml":  "kind:\n  PersistentVolume\nx: Delete\n",
		"folded.yaml": "kind: >-\n  PersistentVolume\nx: Delete\n",
		"broken.json": "{\"kind\"\n:\n\"PersistentVolume\"\n,\"x\":\"Delete\"}",
	} {
		if got := scanOne(t, name, text, check).Findings; len(got) != 1 || got[0].Rule != "volume" {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// A file of nothing but secrets does not fill the memory with findings.
func TestFindingsAreBounded(t *testing.T) {
	var text strings.Builder
	for range 250 {
		text.WriteString("token = ghp_" + letters(36) + "\n")
	}
	if got := len(scanOne(t, "a.txt", text.String(), acceptAll).Findings); got != 200 {
		t.Errorf("got %d findings", got)
	}
}
