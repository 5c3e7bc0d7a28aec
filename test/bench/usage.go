package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ticksPerSecond is how /proc counts processor time, on every Linux that Go
// runs on.
const ticksPerSecond = 100

// cpuSeconds is the processor time that a process has used.
func cpuSeconds(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, which may hold blanks, ends with the last parenthesis.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat: expected more than %d fields", pid, len(fields))
	}
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(fields[12])
	return float64(user+system) / ticksPerSecond, err
}

// peakMiB is the most memory that a process has held.
func peakMiB(pid int) (float64, error) {
	return statusMiB(pid, "VmHWM")
}

// statusMiB reads a figure of memory that /proc has of a process.
func statusMiB(pid int, key string) (float64, error) {
	value, _, _ := strings.Cut(lineOf(fmt.Sprintf("/proc/%d/status", pid), key), " ")
	kib, err := strconv.Atoi(value)
	if err != nil {
		return 0, fmt.Errorf("%s of process %d: %w", key, pid, err)
	}
	return float64(kib) / 1024, nil
}

// counted are the resources that a provisioner has to do with. Leases are
// everybody's, and renewed by time.
var counted = []string{"persistentvolumes", "persistentvolumeclaims", "events", "namespaces", "storageclasses", "csidrivers"}

// requests returns how many requests the API server has answered, by verb and
// resource.
func (s *stage) requests(ctx context.Context) (map[string]int, error) {
	body, err := s.api.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("scrape the API server: %w", err)
	}
	return apiRequests(string(body))
}

func apiRequests(scrape string) (map[string]int, error) {
	return sum(scrape, "apiserver_request_total", func(label map[string]string) string {
		if !slices.Contains(counted, label["resource"]) {
			return ""
		}
		what := label["verb"] + " " + label["resource"]
		if label["subresource"] != "" {
			what += "/" + label["subresource"]
		}
		return what
	})
}

// clientRequests returns how many requests a controller has sent, by method,
// as client-go counts them.
func clientRequests(scrape string) (map[string]int, error) {
	return sum(scrape, "rest_client_requests_total", func(label map[string]string) string { return label["method"] })
}

var labelPattern = regexp.MustCompile(`(\w+)="([^"]*)"`)

// sum adds up the samples of a metric under the name that a key gives; "" leaves
// a sample out.
func sum(scrape, metric string, key func(map[string]string) string) (map[string]int, error) {
	sums := map[string]int{}
	lines := bufio.NewScanner(strings.NewReader(scrape))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		rest, ours := strings.CutPrefix(lines.Text(), metric+"{")
		if !ours {
			continue
		}
		end := strings.LastIndexByte(rest, '}')
		if end < 0 {
			return nil, fmt.Errorf("metric %s: expected labels in %q", metric, rest)
		}
		label := map[string]string{}
		for _, match := range labelPattern.FindAllStringSubmatch(rest[:end], -1) {
			label[match[1]] = match[2]
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(rest[end+1:]), 64)
		if err != nil {
			return nil, fmt.Errorf("metric %s: %w", metric, err)
		}
		if name := key(label); name != "" {
			sums[name] += int(value)
		}
	}
	return sums, lines.Err()
}

// since is what was added between two sums.
func since(before, after map[string]int) map[string]int {
	added := map[string]int{}
	for name, count := range after {
		if more := count - before[name]; more > 0 {
			added[name] = more
		}
	}
	return added
}
