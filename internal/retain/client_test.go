package retain

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mooring-k8s/mooring/internal/kubeconfig"
)

const bearer = "s3cr3t-token"

// answering returns a client of a server that gives one answer to everything.
func answering(t *testing.T, code int, body string, headers ...string) (*Client, *[]string) {
	t.Helper()
	var asked []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	client, err := Connect(kubeconfig.Access{Server: server.URL, CA: ca, Token: bearer}, ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return client, &asked
}

// A right is denied only by an answer that says so.
func TestMayNeedsAnAnswer(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		has, fails bool
	}{
		{"no", `{"kind":"SelfSubjectAccessReview","status":{"allowed":false}}`, false, false},
		{"yes", `{"kind":"SelfSubjectAccessReview","status":{"allowed":true}}`, true, false},
		{"yes, in spite of an error", `{"kind":"SelfSubjectAccessReview","status":{"allowed":true,"evaluationError":"x"}}`, true, false},
		{"no for an error", `{"kind":"SelfSubjectAccessReview","status":{"allowed":false,"evaluationError":"x"}}`, false, true},
		{"no word", `{"kind":"SelfSubjectAccessReview","status":{}}`, false, true},
		{"no status", `{"kind":"SelfSubjectAccessReview"}`, false, true},
		{"another kind", `{"kind":"Status","status":{"allowed":false}}`, false, true},
		{"a page", `<html>`, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client, _ := answering(t, http.StatusCreated, tc.body)
			has, err := client.May(t.Context(), Right{Verb: "delete", Resource: volumes})
			if has != tc.has || (err != nil) != tc.fails {
				t.Fatalf("got %v, %v", has, err)
			}
		})
	}
}

func TestRulesAreWholeOnlyIfSaid(t *testing.T) {
	const rule = `{"verbs":["create"],"apiGroups":["authorization.k8s.io"],"resources":["selfsubjectaccessreviews"]}`
	for _, tc := range []struct {
		name, body   string
		whole, fails bool
	}{
		{"whole", `{"kind":"SelfSubjectRulesReview","status":{"resourceRules":[` + rule + `],"incomplete":false}}`, true, false},
		{"incomplete", `{"kind":"SelfSubjectRulesReview","status":{"resourceRules":[` + rule + `],"incomplete":true}}`, false, false},
		{"an error", `{"kind":"SelfSubjectRulesReview","status":{"resourceRules":[` + rule + `],"evaluationError":"x"}}`, false, false},
		{"none", `{"kind":"SelfSubjectRulesReview","status":{"resourceRules":[]}}`, false, false},
		{"no status", `{"kind":"SelfSubjectRulesReview"}`, false, false},
		{"another kind", `{"kind":"Status"}`, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client, _ := answering(t, http.StatusCreated, tc.body)
			_, whole, err := client.Rules(t.Context())
			if whole != tc.whole || (err != nil) != tc.fails {
				t.Fatalf("got %v, %v", whole, err)
			}
		})
	}
}

// A redirect is an answer like any other that is no success: nobody else gets
// the credentials, and a create that was redirected is not sent again.
func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, code := range []int{http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		other, reached := answering(t, http.StatusOK, `{}`)
		client, asked := answering(t, code, "", "Location", other.base.String()+volumesPath)
		if _, err := client.Volume(t.Context(), "v"); err == nil || !strings.Contains(err.Error(), strconv.Itoa(code)) {
			t.Errorf("%d: got %v", code, err)
		}
		if _, err := client.CreateVolume(t.Context(), nfsManifest()); err == nil || strings.Contains(err.Error(), bearer) {
			t.Errorf("%d: got %v", code, err)
		}
		if len(*reached) > 0 || len(*asked) != 2 || !strings.HasSuffix((*asked)[0], "Bearer "+bearer) {
			t.Errorf("%d: asked %q, and elsewhere %q", code, *asked, *reached)
		}
	}
}

// An answer that nobody could give in good faith is an error, never absence.
func TestNobodyElsesNotFoundIsAbsence(t *testing.T) {
	for name, body := range map[string]string{
		"a proxy's":        `<html>404</html>`,
		"without details":  `{"kind":"Status","code":404,"reason":"NotFound"}`,
		"another resource": `{"kind":"Status","code":404,"reason":"NotFound","details":{"kind":"namespaces","name":"v"}}`,
		"another name":     `{"kind":"Status","code":404,"reason":"NotFound","details":{"kind":"persistentvolumes","name":"w"}}`,
		"another reason":   `{"kind":"Status","code":404,"reason":"Gone","details":{"kind":"persistentvolumes","name":"v"}}`,
	} {
		client, _ := answering(t, http.StatusNotFound, body)
		if live, err := client.Volume(t.Context(), "v"); err == nil || live != nil {
			t.Errorf("%s: got %v, %v", name, live, err)
		}
	}
	client, _ := answering(t, http.StatusNotFound, `{"kind":"Status","code":404,"reason":"NotFound","details":{"kind":"persistentvolumes","name":"v"}}`)
	if live, err := client.Volume(t.Context(), "v"); err != nil || live != nil {
		t.Errorf("the server's own: got %v, %v", live, err)
	}
}

// A create is refused by an API server only. What a proxy answers with the same
// code may follow a create that was carried out.
func TestOnlyTheServerRefuses(t *testing.T) {
	for _, code := range rejected {
		said := `{"kind":"Status","code":` + strconv.Itoa(code) + `,"reason":"x"}`
		for body, want := range map[string]int{said: code, "<html>": 0, `{"kind":"Status","code":500}`: 0} {
			client, asked := answering(t, code, body)
			_, err := client.CreateVolume(t.Context(), nfsManifest())
			if err == nil || statusCode(err) != want || len(*asked) != 1 {
				t.Errorf("%d with %s: got %v", code, body, err)
			}
			r := &creation{run: newRun("create", nil, []Manifest{parsed(t, nfsManifest())}, Options{})}
			refused := r.judgeAnswer(0, nil, err)
			if known := slices.Contains(rejected, want); known != (refused.Reason == CreateRefused) || known == (refused.Reason == OutcomeUnknown) {
				t.Errorf("%d with %s: judged %s", code, body, refused)
			}
		}
	}
}
