package main

import (
	"maps"
	"os"
	"testing"
)

func TestAPIRequests(t *testing.T) {
	const scrape = `# HELP apiserver_request_total Counter
apiserver_request_total{code="201",resource="persistentvolumes",subresource="",verb="POST"} 10
apiserver_request_total{code="409",resource="persistentvolumes",subresource="",verb="POST"} 2
apiserver_request_total{code="200",resource="persistentvolumeclaims",subresource="status",verb="APPLY"} 1e+02
apiserver_request_total{code="200",resource="leases",subresource="",verb="PUT"} 99
apiserver_request_total_other{resource="events",verb="POST"} 1
`
	got, err := apiRequests(scrape)
	want := map[string]int{"POST persistentvolumes": 12, "APPLY persistentvolumeclaims/status": 100}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if got := since(map[string]int{"POST persistentvolumes": 12}, map[string]int{"POST persistentvolumes": 15, "GET events": 1, "LIST events": 0}); !maps.Equal(got, map[string]int{"POST persistentvolumes": 3, "GET events": 1}) {
		t.Errorf("since: %v", got)
	}
	for _, broken := range []string{"apiserver_request_total{verb=", `apiserver_request_total{verb="GET"} many`} {
		if _, err := apiRequests(broken); err == nil {
			t.Errorf("%q is read", broken)
		}
	}
}

// A process has used some memory and not much less processor time than this
// test has burnt.
func TestUsage(t *testing.T) {
	before, err := cpuSeconds(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for {
		for i := range 1 << 20 {
			sum += i
		}
		now, err := cpuSeconds(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if now > before {
			break
		}
	}
	if mib, err := peakMiB(os.Getpid()); err != nil || mib < 1 {
		t.Errorf("peak %v MiB, %v (%d)", mib, err, sum)
	}
	if _, err := cpuSeconds(0); err == nil {
		t.Error("process 0 has no figures")
	}
	if _, err := peakMiB(0); err == nil {
		t.Error("process 0 has no memory")
	}
}
