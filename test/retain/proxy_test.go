package retain_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mooring-k8s/mooring/internal/kubeconfig"
)

// fault is what a proxy does to a request instead of, or after, passing it on.
type fault string

const (
	none     fault = ""
	error500 fault = "500"
	error429 fault = "429"
	reset    fault = "reset"
	hang     fault = "hang"
	redirect fault = "redirect"
	html404  fault = "html404"
)

// rulebook says what happens to one request: a fault before it is passed on, or
// after the API server carried it out.
type rulebook func(step string) (before, after fault)

// proxy stands between mooring and the API server and fails on purpose.
type proxy struct {
	w        *world
	server   *httptest.Server
	upstream *http.Client
	target   string
	rules    rulebook
	done     chan struct{}

	// onEnd is called when the API server has carried out a step; rewrite can
	// change its answer.
	onEnd   func(step string)
	rewrite func(step string, answer object)

	mu   sync.Mutex
	seen map[string]int // how often each step was asked for
}

func (w *world) proxy(rules rulebook) *proxy {
	w.Helper()
	admin := w.plane.Admin()
	transport, err := rest.TLSConfigFor(admin)
	if err != nil {
		w.Fatal(err)
	}
	transport.Certificates, transport.GetClientCertificate = nil, nil // the caller's own token counts
	p := &proxy{
		w: w, target: admin.Host, rules: rules, seen: map[string]int{}, done: make(chan struct{}),
		upstream: &http.Client{Transport: &http.Transport{TLSClientConfig: transport}},
	}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	p.server.Config.ErrorLog = nil
	p.server.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	p.server.StartTLS()
	w.Cleanup(func() { close(p.done); p.server.CloseClientConnections(); p.server.Close() })
	return p
}

// kubeconfig returns a file that leads to the proxy.
func (p *proxy) kubeconfig(token string) string {
	p.w.Helper()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	data, err := kubeconfig.Build(kubeconfig.BuildOptions{
		Server: p.server.URL, TLSServerName: "example.com", CA: certificate, Token: token, Now: time.Now(),
	})
	if err != nil {
		p.w.Fatal(err)
	}
	file := p.w.file("proxy.kubeconfig")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		p.w.Fatal(err)
	}
	return file
}

// documented returns a kubeconfig of the documented identity through the proxy.
func (p *proxy) documented() string {
	p.w.Helper()
	identity, err := p.w.plane.ServiceAccount(p.w.Context(), "mooring-retain", "retain")
	if err != nil {
		p.w.Fatal(err)
	}
	return p.kubeconfig(identity.Config.BearerToken)
}

// stepOf names a request as the tests do; a read after the create has the suffix
// 2.
func (p *proxy) stepOf(r *http.Request) string {
	step := "other"
	path := r.URL.Path
	switch {
	case path == "/version":
		step = "version"
	case strings.HasSuffix(path, "/namespaces/kube-system"):
		step = "namespace"
	case strings.HasSuffix(path, "/selfsubjectreviews"):
		step = "whoami"
	case strings.HasSuffix(path, "/selfsubjectrulesreviews"):
		step = "rules"
	case strings.HasSuffix(path, "/selfsubjectaccessreviews"):
		step = "may"
	case strings.Contains(path, "/persistentvolumeclaims/"):
		step = "claim"
	case r.Method == http.MethodPost && r.URL.Query().Has("dryRun"):
		step = "dry-run"
	case r.Method == http.MethodPost:
		step = "create"
	case strings.HasSuffix(path, "/persistentvolumes"):
		step = "list"
	case strings.Contains(path, "/persistentvolumes/"):
		step = "volume"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[step]++
	if p.seen["create"] > 0 && (step == "volume" || step == "claim" || step == "list") {
		return step + "2"
	}
	return step
}

func (p *proxy) count(step string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[step]
}

func (p *proxy) serve(rw http.ResponseWriter, r *http.Request) {
	step := p.stepOf(r)
	var before, after fault
	if p.rules != nil {
		before, after = p.rules(step)
	}
	if before != none {
		p.fail(rw, r, before)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	req, err := http.NewRequestWithContext(r.Context(), r.Method, p.target+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return
	}
	req.Header = r.Header.Clone()
	resp, err := p.upstream.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return
	}
	if p.onEnd != nil {
		p.onEnd(step)
	}
	answer = p.rewritten(step, answer)
	if after != none {
		p.fail(rw, r, after)
		return
	}
	rw.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	rw.WriteHeader(resp.StatusCode)
	_, _ = rw.Write(answer)
}

func (p *proxy) rewritten(step string, answer []byte) []byte {
	if p.rewrite == nil {
		return answer
	}
	var o object
	if err := json.Unmarshal(answer, &o); err != nil {
		return answer
	}
	p.rewrite(step, o)
	changed, err := json.Marshal(o)
	if err != nil {
		return answer
	}
	return changed
}

func (p *proxy) fail(rw http.ResponseWriter, r *http.Request, f fault) {
	switch f {
	case none:
	case error500:
		http.Error(rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`, http.StatusInternalServerError)
	case error429:
		rw.Header().Set("Retry-After", "1")
		http.Error(rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}`, http.StatusTooManyRequests)
	case html404:
		http.Error(rw, "<html>no such page</html>", http.StatusNotFound)
	case redirect:
		http.Redirect(rw, r, p.target+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	case reset:
		connection, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			return
		}
		if raw, ok := connection.(*tls.Conn); ok {
			if tcp, ok := raw.NetConn().(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			_ = raw.NetConn().Close()
		}
	case hang:
		select {
		case <-r.Context().Done():
		case <-p.done:
		}
	}
}

// The proxy's own certificate is trusted because the kubeconfig says so, and for
// no other reason.
func TestOnlyTheEmbeddedAuthorityCounts(t *testing.T) {
	w := newWorld(t)
	p := w.proxy(nil)
	w.want(w.run(p.documented(), "preview", w.write(w.volume("v"))), "")
	other := w.proxy(nil)
	if _, err := x509.ParseCertificate(other.server.Certificate().Raw); err != nil {
		t.Fatal(err)
	}
	// The kubeconfig of the API server's authority, sent to the proxy.
	data, err := os.ReadFile(w.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	file := w.file("wrong.kubeconfig")
	if err := os.WriteFile(file, bytes.ReplaceAll(data, []byte(w.plane.Admin().Host), []byte(p.server.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	before := p.count("version")
	r := w.run(file, "preview", w.write(w.volume("v")))
	w.want(r, "read-failed")
	if !strings.Contains(r.err, "certificate") || p.count("version") != before {
		t.Fatalf("got %s", r.err)
	}
}
