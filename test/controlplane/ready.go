package controlplane

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// pollInterval is how often a condition is looked at again.
const pollInterval = 50 * time.Millisecond

// probe asks a health endpoint once; its answer must be good and contain every
// one of the wanted texts.
func probe(ctx context.Context, config *tls.Config, url string, want ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", url, response.Status, body)
	}
	for _, text := range want {
		if !bytes.Contains(body, []byte(text)) {
			return fmt.Errorf("%s does not say %q: %s", url, text, body)
		}
	}
	return nil
}

// poll repeats check until it succeeds. When ctx ends first, or abort is
// closed, it gives check's last error.
func poll(ctx context.Context, abort <-chan struct{}, check func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	last := check(ctx)
	for last != nil {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", context.Cause(ctx), last)
		case <-abort:
			return last
		case <-ticker.C:
		}
		if err := check(ctx); err == nil || ctx.Err() == nil {
			last = err
		}
	}
	return nil
}

// waitForNamespaces waits for what the API server makes on its own soon after
// it is ready.
func (cp *ControlPlane) waitForNamespaces(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(cp.admin.Config)
	if err != nil {
		return err
	}
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
		err := poll(ctx, nil, func(ctx context.Context) error {
			_, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			return err
		})
		if err != nil {
			return fmt.Errorf("wait for the namespace %s: %w", name, err)
		}
	}
	return nil
}
