package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// connection is the key of a request's connection in its context.
type connection struct{}

// kept is the answer to a list, as it once was.
type kept struct {
	header http.Header
	body   []byte
}

// ServeHTTP passes a request on, or does to it what the schedule says.
func (p *Proxy) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	request, err := p.describe(r)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	ctx := r.Context()
	if request.IsWrite() {
		if !hasSent(r) {
			return
		}
		ctx = context.WithoutCancel(ctx) // what was sent arrives, whatever becomes of the sender
	}
	fault := p.next(request)
	p.count(request, fault)
	if !p.before(rw, r, fault) {
		return
	}
	if p.ask(request, Before) {
		tear(r)
	}
	if fault.Kind == Cut {
		limited, cancel := context.WithTimeout(ctx, fault.Pause)
		defer cancel()
		ctx = limited
	}
	response, err := p.pass(ctx, r)
	if err != nil {
		tear(r) // the API server is away
	}
	defer func() { _ = response.Body.Close() }()
	p.passed(request)
	if request.IsWrite() {
		p.afterWrite(rw, r, response, fault, request)
		return
	}
	maps.Copy(rw.Header(), response.Header)
	rw.WriteHeader(response.StatusCode)
	if request.Verb == "list" && request.AnyVersion && response.StatusCode == http.StatusOK {
		p.keep(rw, r, response)
		return
	}
	if !p.stream(rw, r, response.Body, fault) {
		panic(http.ErrAbortHandler)
	}
}

// hasSent reads the whole of a request, and reports whether it came.
func hasSent(r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil
}

// before does what comes before a request is passed on; it is false if it is not
// to be passed on.
func (p *Proxy) before(rw http.ResponseWriter, r *http.Request, fault Fault) bool {
	switch fault.Kind {
	case Reset:
		tear(r)
	case Drop:
		p.hold(r.Context(), fault.Pause)
		tear(r)
	case Answer:
		answer(rw, fault.Code)
		return false
	case Delay:
		return p.hold(r.Context(), fault.Pause)
	case Stale:
		return !p.answerStale(rw, r)
	case None, Lose, Mislead, Cut, Starve:
	}
	return true
}

// afterWrite gives the answer of a write, or loses it.
func (p *Proxy) afterWrite(rw http.ResponseWriter, r *http.Request, response *http.Response, fault Fault, request Request) {
	body, err := io.ReadAll(response.Body)
	if err != nil || p.ask(request, After) || fault.Kind == Lose {
		tear(r)
	}
	if fault.Kind == Mislead {
		answer(rw, fault.Code)
		return
	}
	maps.Copy(rw.Header(), response.Header)
	rw.WriteHeader(response.StatusCode)
	_, _ = rw.Write(body) // a client that has gone needs none
}

// pass asks the API server what the client asked.
func (p *Proxy) pass(ctx context.Context, r *http.Request) (*http.Response, error) {
	out := r.Clone(ctx)
	out.URL.Scheme, out.URL.Host, out.Host = p.target.Scheme, p.target.Host, p.target.Host
	out.RequestURI = ""
	return p.upstream.RoundTrip(out)
}

// stream hands on what comes, as it comes; it is false if it ended early.
func (p *Proxy) stream(rw http.ResponseWriter, r *http.Request, body io.Reader, fault Fault) bool {
	flush := http.NewResponseController(rw)
	_ = flush.Flush() // a watch begins before it has anything to say
	piece := make([]byte, 32<<10)
	for {
		n, err := body.Read(piece)
		if n > 0 && fault.Kind == Starve && !p.hold(r.Context(), fault.Pause) {
			return false
		}
		if _, writeErr := rw.Write(piece[:n]); writeErr != nil {
			return false
		}
		_ = flush.Flush() // the next write says what is wrong
		if err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// keep hands a list on, and keeps the first of its kind to be served again.
func (p *Proxy) keep(rw http.ResponseWriter, r *http.Request, response *http.Response) {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	p.mutex.Lock()
	if p.lists[listKey(r)] == nil {
		p.lists[listKey(r)] = &kept{response.Header.Clone(), body}
	}
	p.mutex.Unlock()
	_, _ = rw.Write(body) // a client that has gone needs none
}

// answerStale answers a list as it once was, if it was asked for before.
func (p *Proxy) answerStale(rw http.ResponseWriter, r *http.Request) bool {
	p.mutex.Lock()
	old := p.lists[listKey(r)]
	p.mutex.Unlock()
	if old == nil {
		return false
	}
	maps.Copy(rw.Header(), old.header)
	_, _ = rw.Write(old.body) // a client that has gone needs none
	return true
}

// Forget forgets the lists that were kept: the next ones are.
func (p *Proxy) Forget() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	clear(p.lists)
}

// listKey is what a list asks for, and in which form.
func listKey(r *http.Request) string {
	query := url.Values{}
	for _, key := range []string{"limit", "labelSelector", "fieldSelector"} {
		query[key] = r.URL.Query()[key]
	}
	return r.URL.Path + "?" + query.Encode() + " " + r.Header.Get("Accept") + " " + r.Header.Get("Accept-Encoding")
}

// tear ends the connection of a request as a network does, without a word.
func tear(r *http.Request) {
	if c, ok := r.Context().Value(connection{}).(*tls.Conn); ok {
		if tcp, ok := c.NetConn().(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // with a reset
		}
		_ = c.NetConn().Close()
	}
	panic(http.ErrAbortHandler)
}

// reasons are what the API server calls its answers.
var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusConflict: metav1.StatusReasonConflict,
	http.StatusGone: metav1.StatusReasonExpired, http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError: metav1.StatusReasonInternalError, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout: metav1.StatusReasonTimeout,
}

// answer answers as the API server would.
func answer(rw http.ResponseWriter, code int) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reasons[code], Message: "made up by the proxy: " + http.StatusText(code),
	}
	body, err := json.Marshal(status)
	if err != nil {
		panic(err) // a struct of texts and numbers
	}
	rw.Header().Set("Content-Type", "application/json")
	if code == http.StatusTooManyRequests {
		rw.Header().Set("Retry-After", "1")
	}
	rw.WriteHeader(code)
	_, _ = io.Copy(rw, bytes.NewReader(body)) // a client that has gone needs none
}
