// Package proxy is a server on the loopback that stands between a client and the
// API server and does to its requests what networks and servers in trouble do, by
// a schedule that a seed repeats. It speaks TLS and HTTP/2 or HTTP/1.1 on both
// sides. Whoever comes by it brings a bearer token, which is passed on: a client
// certificate proves nothing to a server behind a proxy.
package proxy

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Moment is when a hook is asked about a write.
type Moment string

// The moments of a write.
const (
	Before Moment = "before" // the API server has not seen it
	After  Moment = "after"  // the API server has answered, the client does not know
)

// Hook is asked before and after each write. If it returns true the write is not
// passed on, or its answer not given: the connection is torn.
type Hook func(r Request, moment Moment) (tear bool)

// Proxy is a running proxy. It passes everything on as it is until Disturb.
type Proxy struct {
	server   *httptest.Server
	upstream *http.Transport
	target   *url.URL
	kinds    *apirequest.RequestInfoFactory
	ends     chan struct{}

	mutex    sync.Mutex
	schedule *Schedule     // nil: no faults
	calm     chan struct{} // closed while nothing is disturbed
	hook     Hook
	counts
	lists map[string]*kept
}

// Start starts a proxy before the API server of a configuration, of which only
// address and authority are used. HTTP/1.1 only is what some networks leave.
func Start(config *rest.Config, onlyHTTP1 bool) (*Proxy, error) {
	upstream, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	if upstream == nil {
		return nil, fmt.Errorf("reach the API server: %s: expected https and an authority", config.Host)
	}
	upstream.Certificates, upstream.GetClientCertificate = nil, nil // the caller's own token counts
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	p := &Proxy{
		upstream: &http.Transport{TLSClientConfig: upstream, ForceAttemptHTTP2: !onlyHTTP1, DisableCompression: true, MaxIdleConnsPerHost: 32},
		target:   target, ends: make(chan struct{}), calm: closed(), lists: map[string]*kept{}, counts: newCounts(),
		kinds: &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")},
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.EnableHTTP2 = !onlyHTTP1
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0) // torn connections are what it is for
	p.server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connection{}, c) }
	p.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	p.server.StartTLS()
	return p, nil
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// Close ends the proxy and everything that goes through it.
func (p *Proxy) Close() {
	close(p.ends)
	p.server.CloseClientConnections()
	p.server.Close()
	p.upstream.CloseIdleConnections()
}

// Kubeconfig returns a file's content that leads to the proxy, for who has this
// token.
func (p *Proxy) Kubeconfig(token string) ([]byte, error) {
	const name = "proxy"
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{
		Server: p.server.URL, TLSServerName: "example.com", // as the certificate of httptest says
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw}),
	}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	return clientcmd.Write(*file)
}

// Disturb begins to make the faults of a schedule, where it left off.
func (p *Proxy) Disturb(s *Schedule) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.schedule = s
	select {
	case <-p.calm:
		p.calm = make(chan struct{})
	default:
	}
}

// Calm ends all faults: what was held back goes on at once.
func (p *Proxy) Calm() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.schedule = nil
	select {
	case <-p.calm:
	default:
		close(p.calm)
	}
}

// SetHook replaces the hook; nil is none.
func (p *Proxy) SetHook(h Hook) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.hook = h
}

// ask asks the hook about a write.
func (p *Proxy) ask(r Request, moment Moment) bool {
	p.mutex.Lock()
	hook := p.hook
	p.mutex.Unlock()
	return hook != nil && r.IsWrite() && hook(r, moment)
}

func (p *Proxy) next(r Request) Fault {
	p.mutex.Lock()
	schedule := p.schedule
	p.mutex.Unlock()
	if schedule == nil {
		return Fault{}
	}
	return schedule.Next(r)
}

// hold waits for a while, or until all is calm; it is false if the client has
// gone meanwhile.
func (p *Proxy) hold(ctx context.Context, pause time.Duration) bool {
	p.mutex.Lock()
	calm := p.calm
	p.mutex.Unlock()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-calm:
	case <-p.ends:
		return false
	case <-ctx.Done():
		return false
	}
	return true
}

// describe says what is asked for.
func (p *Proxy) describe(r *http.Request) (Request, error) {
	info, err := p.kinds.NewRequestInfo(r)
	if err != nil {
		return Request{}, err
	}
	query := r.URL.Query()
	described := Request{
		Verb: info.Verb, Resource: info.Path, DryRun: query.Has("dryRun"),
		AnyVersion: query.Get("resourceVersion") == "0", Streamed: query.Get("sendInitialEvents") == "true",
	}
	if info.IsResourceRequest {
		described.Resource = info.Resource
		if info.Subresource != "" {
			described.Resource += "/" + info.Subresource
		}
	}
	return described, nil
}
