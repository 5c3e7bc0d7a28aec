package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const volumes = "/api/v1/persistentvolumes"

// pair is a proxy and what stands behind it.
type pair struct {
	*Proxy
	got    atomic.Int64 // requests that reached the server
	client *http.Client
	url    string
	more   chan string // what a watch says next
}

func newPair(t *testing.T, onlyHTTP1 bool) *pair {
	t.Helper()
	p := &pair{more: make(chan string, 8)}
	server := httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	var err error
	p.Proxy, err = Start(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}, onlyHTTP1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	p.connect(t)
	return p
}

// connect makes a client from the kubeconfig.
func (p *pair) connect(t *testing.T) {
	t.Helper()
	data, err := p.Kubeconfig("the token")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.CAData)
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: config.ServerName}}
	t.Cleanup(transport.CloseIdleConnections)
	p.client, p.url = &http.Client{Transport: transport}, config.Host
}

// serve is the API server: it counts, and answers with what it was asked.
func (p *pair) serve(rw http.ResponseWriter, r *http.Request) {
	n := p.got.Add(1)
	if !r.URL.Query().Has("watch") {
		_, _ = fmt.Fprintf(rw, "%d %s %s", n, r.Method, r.Header.Get("Authorization"))
		return
	}
	_ = http.NewResponseController(rw).Flush()
	for {
		select {
		case text := <-p.more:
			_, _ = io.WriteString(rw, text)
			_ = http.NewResponseController(rw).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// ask asks by the proxy and returns code and answer, or "torn".
func (p *pair) ask(t *testing.T, method, path string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, p.url+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer the token")
	response, err := p.client.Do(request)
	if err != nil {
		return "torn"
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "torn"
	}
	if after := response.Header.Get("Retry-After"); after != "" {
		return fmt.Sprintf("%d after %s", response.StatusCode, after)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Sprint(response.StatusCode)
	}
	return string(body)
}

// TestFaults makes each fault, by both protocols, and sees what the client and
// what the server got of it.
func TestFaults(t *testing.T) {
	for _, onlyHTTP1 := range []bool{false, true} {
		for _, row := range []struct {
			fault  Fault
			method string
			want   string
			passed bool
		}{
			{Fault{}, http.MethodPost, "1 POST Bearer the token", true},
			{Fault{Kind: Delay, Pause: time.Millisecond}, http.MethodPost, "1 POST Bearer the token", true},
			{Fault{Kind: Drop, Pause: time.Millisecond}, http.MethodPost, "torn", false},
			{reset, http.MethodPost, "torn", false},
			{conflict, http.MethodPost, "409", false},
			{busy, http.MethodPost, "429 after 1", false},
			{late, http.MethodPost, "504", false},
			{lose, http.MethodPost, "torn", true},
			{doneBad, http.MethodPost, "500", true},
			{away, http.MethodGet, "503", false},
			{gone, http.MethodGet, "410", false},
		} {
			t.Run(fmt.Sprintf("%s %s, only HTTP/1.1: %v", row.method, row.fault, onlyHTTP1), func(t *testing.T) {
				t.Parallel()
				p := newPair(t, onlyHTTP1)
				p.Disturb(Always(row.fault, row.fault))
				if got := p.ask(t, row.method, volumes); got != row.want {
					t.Errorf("the client got %q, want %q", got, row.want)
				}
				// A client may ask once more by itself after a torn connection.
				if got := p.got.Load() > 0; got != row.passed {
					t.Errorf("it reached the server: %v, want %v", got, row.passed)
				}
			})
		}
	}
}

// TestStale serves an old list to whoever takes any, and to nobody else.
func TestStale(t *testing.T) {
	t.Parallel()
	p := newPair(t, false)
	const any0 = volumes + "?resourceVersion=0"
	first := p.ask(t, http.MethodGet, any0)
	p.Disturb(Always(stale, Fault{}))
	if got := p.ask(t, http.MethodGet, any0); got != first {
		t.Errorf("got %q, want what it was: %q", got, first)
	}
	if got := p.ask(t, http.MethodGet, volumes); got == first {
		t.Errorf("a list of the newest got the old one: %q", got)
	}
	p.Calm()
	if got := p.ask(t, http.MethodGet, any0); got == first {
		t.Errorf("when all is calm it got the old one: %q", got)
	}
}

// TestWatches starves a watch until all is calm, and cuts another.
func TestWatches(t *testing.T) {
	t.Parallel()
	p := newPair(t, false)
	p.Disturb(Always(Fault{Kind: Starve, Pause: time.Hour}, Fault{}))
	response, err := p.client.Get(p.url + volumes + "?watch=1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	p.more <- "something"
	said := make(chan string, 1)
	go func() {
		piece := make([]byte, 9)
		_, _ = io.ReadFull(response.Body, piece)
		said <- string(piece)
	}()
	select {
	case text := <-said:
		t.Errorf("a starved watch said %q", text)
	case <-time.After(50 * time.Millisecond):
	}
	p.Calm()
	if text := <-said; text != "something" {
		t.Errorf("when all is calm it said %q", text)
	}

	p.Disturb(Always(Fault{Kind: Cut, Pause: 20 * time.Millisecond}, Fault{}))
	if got := p.ask(t, http.MethodGet, volumes+"?watch=1"); got != "torn" {
		t.Errorf("a watch that is cut gave %q", got)
	}
}

// TestHook tears a write before and after, and no read.
func TestHook(t *testing.T) {
	for _, row := range []struct {
		moment Moment
		passed int64
	}{{Before, 0}, {After, 1}} {
		t.Run(string(row.moment), func(t *testing.T) {
			t.Parallel()
			p := newPair(t, true)
			asked := make(chan string, 8)
			p.SetHook(func(r Request, moment Moment) bool {
				asked <- fmt.Sprintf("%s %s", moment, r)
				return moment == row.moment
			})
			if got := p.ask(t, http.MethodPost, volumes+"?dryRun=All"); got != "torn" {
				t.Errorf("the client got %q", got)
			}
			if got := p.got.Load(); got != row.passed {
				t.Errorf("the server got %d requests, want %d", got, row.passed)
			}
			last := ""
			for len(asked) > 0 {
				last = <-asked
			}
			if want := fmt.Sprintf("%s create persistentvolumes (dry run)", row.moment); last != want {
				t.Errorf("it asked about %q last, want %q", last, want)
			}
			if got := p.ask(t, http.MethodGet, volumes); strings.HasPrefix(got, "torn") {
				t.Errorf("a read was torn")
			}
		})
	}
}

// TestCounts counts requests, faults and the writes that were passed on.
func TestCounts(t *testing.T) {
	t.Parallel()
	p := newPair(t, false)
	p.ask(t, http.MethodPost, volumes)
	p.ask(t, http.MethodGet, volumes)
	p.Disturb(Always(Fault{}, conflict))
	p.ask(t, http.MethodPost, volumes)
	faults, which := p.Faults()
	got := fmt.Sprintf("%d %v %d, %s; %s", p.Requests(), p.Writes(), faults, which, p.Asked())
	if want := "3 map[create persistentvolumes:1] 1, 1 answer 409; 2 create persistentvolumes, 1 list persistentvolumes"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if busiest := p.Busiest(60); busiest != 3 {
		t.Errorf("the busiest minute has %d requests, want 3", busiest)
	}
}

// TestNotReached tears what cannot be passed on.
func TestNotReached(t *testing.T) {
	t.Parallel()
	p := newPair(t, true)
	p.target.Host = "127.0.0.1:1"
	if got := p.ask(t, http.MethodGet, volumes); got != "torn" {
		t.Errorf("got %q", got)
	}
	_, err := Start(&rest.Config{Host: "http://127.0.0.1:1"}, false)
	if want := "reach the API server: http://127.0.0.1:1: expected https and an authority"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
