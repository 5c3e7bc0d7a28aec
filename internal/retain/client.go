package retain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/mooring-k8s/mooring/internal/kubeconfig"
)

// Client is the Cluster behind one kubeconfig. It sends each POST once, whatever
// happens; a GET is repeated by Go's transport alone, if the server had closed
// the idle connection. client-go's own REST client would repeat writes that are
// answered with Retry-After, and follow redirects with the credentials.
type Client struct {
	http    *http.Client
	base    *url.URL
	timeout time.Duration
	agent   string

	requests, pages atomic.Int64
}

var _ Cluster = (*Client)(nil)

// ClientOptions say how a Client behaves.
type ClientOptions struct {
	// Timeout bounds each request; 0 means 30 seconds.
	Timeout time.Duration
	// Version of Mooring, for the user agent.
	Version string
}

// Connect returns a client for access. It verifies the server by the embedded
// certificates only and goes through no proxy, whatever the environment says.
// It sends nothing yet.
func Connect(access kubeconfig.Access, o ClientOptions) (*Client, error) {
	config := &rest.Config{
		Host: access.Server,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: access.TLSServerName,
			CAData:     access.CA,
			CertData:   access.ClientCert,
			KeyData:    access.ClientKey,
		},
		BearerToken: access.Token,
		Proxy:       func(*http.Request) (*url.URL, error) { return nil, nil },
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", access.Server, err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	base, err := url.Parse(access.Server)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", access.Server, err)
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	return &Client{http: client, base: base, timeout: o.Timeout, agent: "mooring/" + o.Version}, nil
}

// Requests returns how many requests were sent, without the pages of lists, and
// how many pages.
func (c *Client) Requests() (single, pages int64) { return c.requests.Load(), c.pages.Load() }

// The requests that exist. There is no verb but GET and POST, and no POST but
// to a review and to persistentvolumes.
const (
	volumesPath = "/api/v1/persistentvolumes"
	reviewsPath = "/apis/authorization.k8s.io/v1/"
	whoAmIPath  = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
)

func (c *Client) get(ctx context.Context, path string, into any) error {
	return c.do(ctx, request{method: http.MethodGet, path: path}, into)
}

func (c *Client) post(ctx context.Context, path string, query url.Values, body, into any) error {
	return c.do(ctx, request{method: http.MethodPost, path: path, query: query, body: body}, into)
}

type request struct {
	method, path string
	query        url.Values
	body         any
	isPage       bool // of a list: counted apart
}

// maxAnswer bounds one answer: a page of 500 volumes has about one MiB.
const maxAnswer = 64 << 20

// do sends one request, once, and reads the answer into into. The error of an
// answer that is no success is an *apierrors.StatusError or an *answerError.
func (c *Client) do(ctx context.Context, r request, into any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := c.build(ctx, r)
	if err != nil {
		return err
	}
	c.count(r)
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("%s %s: %w", r.method, r.path, withoutURL(err))
	}
	defer func() { _ = resp.Body.Close() }() // nothing that was read depends on it
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s %s: read the answer: %w", r.method, r.path, err)
	case len(data) > maxAnswer:
		return fmt.Errorf("%s %s: the answer has more than %d bytes", r.method, r.path, maxAnswer)
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated:
		return answer(r, resp.StatusCode, data)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s %s: the answer is no JSON of an API server: %w", r.method, r.path, err)
	}
	return nil
}

func (c *Client) count(r request) {
	if r.isPage {
		c.pages.Add(1)
		return
	}
	c.requests.Add(1)
}

func (c *Client) build(ctx context.Context, r request) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		data, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
		}
		body = bytes.NewReader(data)
	}
	target := *c.base
	target.Path, target.RawPath = strings.TrimSuffix(target.Path, "/")+r.path, ""
	target.RawQuery = r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, r.method, target.String(), body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	req.GetBody = nil // the transport cannot send a body a second time
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.agent)
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// withoutURL drops the *url.Error around a transport error, whose text repeats
// the method and the whole URL.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// answerError is an answer that is neither a success nor an API server's
// Status: that of a proxy or load balancer, for example.
type answerError struct {
	request string
	code    int
}

func (e *answerError) Error() string {
	return e.request + ": answered with " + strconv.Itoa(e.code) + " " + http.StatusText(e.code) + ", and not in the form of an API server"
}

func answer(r request, code int, data []byte) error {
	var status metav1.Status
	if err := json.Unmarshal(data, &status); err != nil || status.Kind != "Status" || int(status.Code) != code {
		return &answerError{r.method + " " + r.path, code}
	}
	return fmt.Errorf("%s %s: answered with %d: %w", r.method, r.path, code, &apierrors.StatusError{ErrStatus: status})
}

// statusCode returns the HTTP code of an API server's error answer, or 0 if it
// gave none. The code that somebody in front of it gave says nothing about what
// the API server did.
func statusCode(err error) int {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return int(status.Status().Code)
	}
	return 0
}
