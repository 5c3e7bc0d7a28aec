package kubeconfig_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/mooring-k8s/mooring/internal/kubeconfig"
	"github.com/mooring-k8s/mooring/internal/strictyaml"
)

// Each row changes the base case in one place; wantField is the field that the
// only refusal must name, wantDetail a part of its sentence.
func TestContract(t *testing.T) {
	p := newPKI(t)
	expired, expiredKey := issue(t, "old", validity{now.Add(-2 * time.Hour), now.Add(-time.Hour)})
	future, futureKey := issue(t, "early", validity{now.Add(time.Hour), now.Add(2 * time.Hour)})
	const cl, us = "clusters[0].cluster.", "users[0].user."
	for _, tc := range []struct {
		name       string
		change     func(config object)
		wantField  string
		wantDetail string
	}{
		{"the base case", func(object) {}, "", ""},
		{"a client pair", p.withPair, "", ""},
		{"apiVersion missing", func(c object) { delete(c, "apiVersion") }, "kind", "apiVersion v1"},
		{"apiVersion wrong", func(c object) { c["apiVersion"] = "v2" }, "kind", "apiVersion v1"},
		{"kind missing", func(c object) { delete(c, "kind") }, "kind", "kind Config"},
		{"kind wrong", func(c object) { c["kind"] = "Secret" }, "kind", "kind Config"},
		{"top extensions", func(c object) { c["extensions"] = []any{} }, "extensions", "not accepted"},
		{"empty preferences", func(c object) { c["preferences"] = object{} }, "", ""},
		{"preferences", func(c object) { c["preferences"] = object{"colors": true} }, "preferences", "leave it out"},
		{"unknown top field", func(c object) { c["Kind"] = "Config" }, "Kind", "no field of this name"},

		{"no clusters", func(c object) { delete(c, "clusters") }, "clusters", "has 0 entries"},
		{"two clusters", func(c object) { double(c, "clusters") }, "clusters", "has 2 entries"},
		{"no users", func(c object) { delete(c, "users") }, "users", "has 0 entries"},
		{"two users", func(c object) { double(c, "users") }, "users", "has 2 entries"},
		{"no contexts", func(c object) { delete(c, "contexts") }, "contexts", "has 0 entries"},
		{"two contexts", func(c object) { double(c, "contexts") }, "contexts", "has 2 entries"},
		{"current-context missing", func(c object) { delete(c, "current-context") }, "current-context", "the only context"},
		{"current-context wrong", func(c object) { c["current-context"] = "x" }, "current-context", `"c"`},
		{"context's cluster missing", func(c object) { delete(contextOf(c), "cluster") }, "contexts[0].context.cluster", `"k"`},
		{"context's cluster dangling", func(c object) { contextOf(c)["cluster"] = "x" }, "contexts[0].context.cluster", `"k"`},
		{"context's user missing", func(c object) { delete(contextOf(c), "user") }, "contexts[0].context.user", `"u"`},
		{"context's user dangling", func(c object) { contextOf(c)["user"] = "x" }, "contexts[0].context.user", `"u"`},
		{"context's namespace", func(c object) { contextOf(c)["namespace"] = "n" }, "", ""},
		{"context's extensions", func(c object) { contextOf(c)["extensions"] = []any{} }, "contexts[0].context.extensions", "not accepted"},
		{"context's unknown field", func(c object) { contextOf(c)["x"] = "y" }, "contexts[0].context.x", "no field of this name"},

		{"server missing", func(c object) { delete(clusterOf(c), "server") }, cl + "server", "missing"},
		{"server http", func(c object) { clusterOf(c)["server"] = "http://api.example.com" }, cl + "server", "https"},
		{"server without a host", func(c object) { clusterOf(c)["server"] = "https://:6443" }, cl + "server", "with a host"},
		{"server unparsable", func(c object) { clusterOf(c)["server"] = "https://a b" }, cl + "server", "with a host"},
		{"server with a user", func(c object) { clusterOf(c)["server"] = "https://u:" + secretMark + "@a.example.com" }, cl + "server", "remove user"},
		{"server with a query", func(c object) { clusterOf(c)["server"] = "https://a.example.com?x=" + secretMark }, cl + "server", "remove user"},
		{"server with a fragment", func(c object) { clusterOf(c)["server"] = "https://a.example.com#x" }, cl + "server", "remove user"},
		{"server with a path", func(c object) { clusterOf(c)["server"] = "https://a.example.com/k8s/c-1" }, "", ""},
		{"server by IPv6", func(c object) { clusterOf(c)["server"] = "https://[::1]:6443" }, "", ""},
		{"insecure", func(c object) { clusterOf(c)["insecure-skip-tls-verify"] = true }, cl + "insecure-skip-tls-verify", "not be verified"},
		{"insecure written as false", func(c object) { clusterOf(c)["insecure-skip-tls-verify"] = false }, "", ""},
		{"CA file", func(c object) { clusterOf(c)["certificate-authority"] = "/ca" }, cl + "certificate-authority", "file reference"},
		{"proxy", func(c object) { clusterOf(c)["proxy-url"] = "http://p" }, cl + "proxy-url", "proxy"},
		{"proxy, empty", func(c object) { clusterOf(c)["proxy-url"] = "" }, cl + "proxy-url", "proxy"},
		{"server name", func(c object) { clusterOf(c)["tls-server-name"] = "kubernetes" }, "", ""},
		{"server name wrong", func(c object) { clusterOf(c)["tls-server-name"] = "a b" }, cl + "tls-server-name", "host name"},
		{"compression", func(c object) { clusterOf(c)["disable-compression"] = true }, "", ""},
		{"cluster's extensions", func(c object) { clusterOf(c)["extensions"] = []any{} }, cl + "extensions", "not accepted"},
		{"cluster's unknown field", func(c object) { clusterOf(c)["tls"] = true }, cl + "tls", "no field of this name"},

		{"CA missing", func(c object) { delete(clusterOf(c), "certificate-authority-data") }, cl + "certificate-authority-data", "missing"},
		{"CA empty", func(c object) { clusterOf(c)["certificate-authority-data"] = "" }, cl + "certificate-authority-data", "empty"},
		{"CA undecodable", func(c object) { clusterOf(c)["certificate-authority-data"] = "%" }, cl + "certificate-authority-data", "cannot be decoded"},
		{"CA without certificates", func(c object) { setCA(c, []byte("nothing")) }, cl + "certificate-authority-data", "no PEM certificate"},
		{"CA cut off", func(c object) { setCA(c, append(bytes.Clone(p.ca), "-----BEGIN CERTIFICATE-----\nabc"...)) }, cl + "certificate-authority-data", "cut off"},
		{"CA with a key", func(c object) { setCA(c, append(bytes.Clone(p.ca), p.key...)) }, cl + "certificate-authority-data", "CERTIFICATE blocks only"},
		{"CA of rubbish", func(c object) {
			setCA(c, []byte("-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"))
		}, cl + "certificate-authority-data", "cannot be parsed"},
		{"CA with text between", func(c object) { setCA(c, bytes.Join([][]byte{[]byte("one\n"), p.ca, []byte("two\n"), expired}, nil)) }, "", ""},
		{"CA expired", func(c object) { setCA(c, expired) }, cl + "certificate-authority-data", "expired on 2026-06-01T11:00:00Z"},

		{"no credentials", func(c object) { delete(userOf(c), "token") }, "users[0].user", "no credentials"},
		{"token empty", func(c object) { userOf(c)["token"] = "" }, us + "token", "empty"},
		{"token of white space", func(c object) { userOf(c)["token"] = " \n" }, us + "token", "empty"},
		{"token with a line break", func(c object) { userOf(c)["token"] = secretMark + "\n" }, us + "token", "white space"},
		{"token a number", func(c object) { userOf(c)["token"] = 4711 }, "users.user.token", "put it in quotes"},
		{"token and pair", func(c object) { p.withPair(c); userOf(c)["token"] = secretMark }, us + "token", "exactly one"},
		{"tokenFile", func(c object) { userOf(c)["tokenFile"] = "/t" }, us + "tokenFile", "file reference"},
		{"certificate file", func(c object) { userOf(c)["client-certificate"] = "/c" }, us + "client-certificate", "file reference"},
		{"key file", func(c object) { userOf(c)["client-key"] = "/k" }, us + "client-key", "file reference"},
		{"username", func(c object) { userOf(c)["username"] = "x" }, us + "username", "passwords"},
		{"password", func(c object) { userOf(c)["password"] = secretMark }, us + "password", "passwords"},
		{"as", func(c object) { userOf(c)["as"] = "x" }, us + "as", "impersonation"},
		{"as-uid", func(c object) { userOf(c)["as-uid"] = "x" }, us + "as-uid", "impersonation"},
		{"as-groups", func(c object) { userOf(c)["as-groups"] = []any{"x"} }, us + "as-groups", "impersonation"},
		{"as-user-extra", func(c object) { userOf(c)["as-user-extra"] = object{} }, us + "as-user-extra", "impersonation"},
		{"exec", func(c object) { userOf(c)["exec"] = object{"command": secretMark} }, us + "exec", "starts a program"},
		{"auth-provider", func(c object) { userOf(c)["auth-provider"] = object{"name": "x"} }, us + "auth-provider", "another login"},
		{"user's extensions", func(c object) { userOf(c)["extensions"] = []any{} }, us + "extensions", "not accepted"},
		{"a token alone in braces", func(c object) { c["users"].([]any)[0].(object)["user"] = object{"k8s-4711.x": "y"} }, us + "(a name that is not shown)", "no field of this name"},
		{"user's unknown field", func(c object) { userOf(c)["Token"] = secretMark }, us + "Token", "no field of this name"},

		{"certificate without key", func(c object) { p.withPair(c); delete(userOf(c), "client-key-data") }, us + "client-key-data", "missing"},
		{"key without certificate", func(c object) { p.withPair(c); delete(userOf(c), "client-certificate-data") }, us + "client-certificate-data", "missing"},
		{"certificate undecodable", func(c object) { p.withPair(c); userOf(c)["client-certificate-data"] = "%" }, us + "client-certificate-data", "cannot be decoded"},
		{"certificate empty", func(c object) { p.withPair(c); userOf(c)["client-certificate-data"] = "" }, us + "client-certificate-data", "empty"},
		{"key undecodable", func(c object) { p.withPair(c); userOf(c)["client-key-data"] = "%" + secretMark }, us + "client-key-data", "cannot be decoded"},
		{"key of another certificate", func(c object) { p.withPair(c); userOf(c)["client-key-data"] = b64(p.otherKey) }, us + "client-key-data", "no unencrypted PEM private key of the certificate"},
		{"key no key", func(c object) { p.withPair(c); userOf(c)["client-key-data"] = b64([]byte(secretMark)) }, us + "client-key-data", "no unencrypted PEM private key"},
		{"certificate expired", func(c object) { pair(c, expired, expiredKey) }, us + "client-certificate-data", "expired on"},
		{"certificate not valid yet", func(c object) { pair(c, future, futureKey) }, us + "client-certificate-data", "valid only from"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			config := p.tokenConfig()
			tc.change(config)
			data, err := yaml.Marshal(config)
			if err != nil {
				t.Fatal(err)
			}
			access, err := kubeconfig.Parse(data, now)
			if tc.wantField == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			requireProblem(t, err, tc.wantField, tc.wantDetail)
			if access.Server != "" || access.Token != "" {
				t.Error("a refused kubeconfig still gives access")
			}
		})
	}
}

func requireProblem(t *testing.T, err error, field, detail string) {
	t.Helper()
	var problems strictyaml.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("got %v; want a refusal of %s", err, field)
	}
	if len(problems) != 1 || problems[0].Field != field || !strings.Contains(problems[0].Detail, detail) {
		t.Fatalf("got %v; want only %q with %q", err, field, detail)
	}
	if strings.Contains(err.Error(), secretMark) || strings.Contains(err.Error(), "4711") {
		t.Errorf("the refusal shows a secret: %v", err)
	}
}

func double(c object, list string) { c[list] = append(c[list].([]any), c[list].([]any)[0]) }

func setCA(c object, ca []byte) { clusterOf(c)["certificate-authority-data"] = b64(ca) }

func pair(c object, cert, key []byte) {
	user := userOf(c)
	delete(user, "token")
	user["client-certificate-data"], user["client-key-data"] = b64(cert), b64(key)
}

func TestContractOnText(t *testing.T) {
	p := newPKI(t)
	base, err := yaml.Marshal(p.tokenConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, text, wantField, wantDetail string
	}{
		{"empty", "", "", "the document is empty"},
		{"several documents", string(base) + "---\n" + string(base), "", "several documents"},
		{"a field twice", string(base) + "kind: Config\n", "kind", "given twice"},
		{"an alias", "kind: *" + secretMark + "\n", "", "not valid YAML"},
		{"a list", "- a\n", "", "no object"},
		{"not YAML", "a: b: " + secretMark + "\n", "", "not valid YAML"},
		{"too large", string(base) + "#" + strings.Repeat("x", kubeconfig.MaxBytes), "", "expected at most"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := kubeconfig.Parse([]byte(tc.text), now)
			requireProblem(t, err, tc.wantField, tc.wantDetail)
		})
	}
}

// Whatever is wrong with it, and wherever its secret stands: that is not told.
func TestARefusalHoldsNoSecret(t *testing.T) {
	const secret = "hunter2-9f8e7d6c"
	base := "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster: {server: 'https://k.example.com'}\ncontexts:\n- name: x\n  context: {cluster: c, user: u}\ncurrent-context: x\nusers:\n- name: u\n  user: {token: " + secret + "}\n"
	for name, text := range map[string]string{
		"no authority":          base,
		"a password":            strings.Replace(base, "token:", "password:", 1),
		"a password in the URL": strings.Replace(base, "https://", "https://user:"+secret+"@", 1),
		"a password, over http": strings.Replace(base, "https://", "http://user:"+secret+"@", 1),
		"a token in the query":  strings.Replace(base, "k.example.com", "k.example.com/?token="+secret, 1),
		"a URL that is none":    strings.Replace(base, "k.example.com", "user:"+secret+"@[::1", 1),
		"the token alone":       strings.Replace(base, "token: ", "", 1),
		"no blank":              strings.Replace(base, "token: ", "token:", 1),
		"a proxy":               strings.Replace(base, "{server:", "{proxy-url: 'http://u:"+secret+"@p', server:", 1),
		"a key that is none":    strings.Replace(base, "token:", "client-key-data:", 1),
		"an authority":          strings.Replace(base, "{server:", "{certificate-authority-data: "+secret+", server:", 1),
		"exec":                  strings.Replace(base, "token: "+secret, "exec: {command: "+secret+", apiVersion: v1}", 1),
		"JSON cut off":          `{"kind":"Config","users":[{"user":{"token":"` + secret,
		"a tab":                 "\t" + base,
		"nothing else":          secret,
		"a list":                "- " + secret,
		"an alias":              "kind: *" + secret,
		"a tag":                 "kind: !!" + secret + " x",
		"two documents":         base + "---\n" + base,
		"a long one":            base + strings.Repeat("# "+secret+"\n", 1<<16),
	} {
		if _, err := kubeconfig.Parse([]byte(text), now); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAllProblemsAreToldAtOnce(t *testing.T) {
	config := newPKI(t).tokenConfig()
	clusterOf(config)["server"] = "http://x"
	userOf(config)["exec"] = object{}
	delete(config, "current-context")
	data, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = kubeconfig.Parse(data, now)
	var problems strictyaml.Problems
	if !errors.As(err, &problems) || len(problems) != 3 {
		t.Fatalf("got %v; want three problems", err)
	}
}

func TestDigestOfTheAuthorityIsStable(t *testing.T) {
	p := newPKI(t)
	other, _ := issue(t, "second", valid)
	digest := func(ca ...[]byte) string {
		config := p.tokenConfig()
		setCA(config, bytes.Join(ca, []byte("text\n")))
		data, err := yaml.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		access, err := kubeconfig.Parse(data, now)
		if err != nil {
			t.Fatal(err)
		}
		return access.CADigest
	}
	if digest(p.ca, other) != digest(other, p.ca, p.ca) {
		t.Error("order, repetition or text change the digest of one set of certificates")
	}
	if digest(p.ca) == digest(other) {
		t.Error("two authorities have one digest")
	}
}

func TestAccessPrintsNoSecret(t *testing.T) {
	data, err := yaml.Marshal(newPKI(t).tokenConfig())
	if err != nil {
		t.Fatal(err)
	}
	access, err := kubeconfig.Parse(data, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, access); strings.Contains(text, secretMark) || !strings.Contains(text, "api.example.com") {
			t.Errorf("%s prints %s", format, text)
		}
	}
}

func TestBuildSatisfiesTheContract(t *testing.T) {
	p := newPKI(t)
	for _, token := range []string{secretMark + "\n", "12345", "yes", "0x1f", "1e3"} {
		data, err := kubeconfig.Build(kubeconfig.BuildOptions{
			Server: "https://api.example.com", TLSServerName: "kubernetes", CA: p.ca, Token: token, Now: now})
		if err != nil {
			t.Fatalf("token %q: %v", token, err)
		}
		access, err := kubeconfig.Parse(data, now)
		if err != nil || access.Token != strings.TrimSpace(token) || access.TLSServerName != "kubernetes" {
			t.Fatalf("token %q: got %v, %v", token, access, err)
		}
	}
	if _, err := kubeconfig.Build(kubeconfig.BuildOptions{Server: "http://x", CA: p.ca, Token: "t", Now: now}); err == nil {
		t.Error("built a kubeconfig that the contract refuses")
	}
}

func FuzzParse(f *testing.F) {
	p := newPKI(f)
	config := p.tokenConfig()
	base, _ := yaml.Marshal(config)
	f.Add(base)
	p.withPair(config)
	pair, _ := yaml.Marshal(config)
	f.Add(pair)
	for _, seed := range []string{"", "---\n---\n", "a: &x 1\nb: *x\n", "{}", "kind: on\n", "users: [{user: {token: !!binary aGk=}}]", "? {a: b}\n: c\n", "<<: {a: b}\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		access, err := kubeconfig.Parse(data, now)
		if err != nil {
			if access.Server != "" || access.Token != "" || access.ClientKey != nil {
				t.Fatal("refused, but gives access")
			}
			return
		}
		if !strings.HasPrefix(strings.ToLower(access.Server), "https://") || len(access.CA) == 0 || access.CADigest == "" ||
			(access.Token == "") == (access.ClientKey == nil) {
			t.Fatalf("accepted outside the contract: %v", access)
		}
	})
}

// FuzzBuild holds that what is built satisfies the contract, or is not built.
func FuzzBuild(f *testing.F) {
	p := newPKI(f)
	for _, server := range []string{"https://api.example.com", "https://[::1]:6443", "http://x", "", "https://a b", "https://x\n", "https://u:p@x"} {
		f.Add(server, "kubernetes", "token", string(p.ca))
		f.Add(server, "a\nb", "to\nken", "")
	}
	f.Fuzz(func(t *testing.T, server, serverName, token, ca string) {
		data, err := kubeconfig.Build(kubeconfig.BuildOptions{Server: server, TLSServerName: serverName, CA: []byte(ca), Token: token, Now: now})
		if err != nil {
			return
		}
		access, err := kubeconfig.Parse(data, now)
		if err != nil || access.Server != server || access.TLSServerName != serverName || access.Token != strings.TrimSpace(token) || access.ClientKey != nil {
			t.Fatalf("built of %q %q: %v, %v", server, serverName, access, err)
		}
	})
}
