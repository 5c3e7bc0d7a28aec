package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// parse returns the flags of a command line, as they would be after main.
func parse(t *testing.T, args ...string) *flags {
	t.Helper()
	t.Setenv("POD_NAMESPACE", "mooring-system")
	var f flags
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.register(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &f
}

func TestFlags(t *testing.T) {
	for _, tc := range []struct {
		name  string
		args  []string
		wants []string // each a part of the error; none for flags that are fit
	}{
		{"the defaults", nil, nil},
		{"all of them", []string{
			"--kubeconfig=/nowhere", "--provisioner-name=mirror.example.com", "--instance=lab", "--namespace-selector=team in (a, b)",
			"--unknown-drivers=refuse", "--workers=1", "--kube-api-qps=5", "--kube-api-burst=10", "--metrics-bind-address=0",
			"--health-probe-bind-address=:9", "--leader-elect=false", "--leader-election-namespace=x", "--log-format=text", "--log-level=debug",
			"--adopt=Enforce", "--max-revocations=0", "--brake-configmap=lab-brake", "--pprof-bind-address=127.0.0.1:6060",
		}, nil},
		{"no lease needs no namespace", []string{"--leader-election-namespace=", "--leader-elect=false"}, nil},
		{"provisioner name with a slash", []string{"--provisioner-name=a/b"}, []string{"--provisioner-name", "DNS subdomain"}},
		{"Kubernetes' own name", []string{"--provisioner-name=kubernetes.io"}, []string{"--provisioner-name", "belong to Kubernetes"}},
		{"empty provisioner name", []string{"--provisioner-name="}, []string{"--provisioner-name"}},
		{"instance in capitals", []string{"--instance=Lab"}, []string{`--instance "Lab"`}},
		{"broken selector", []string{"--namespace-selector=(("}, []string{"--namespace-selector"}},
		{"unknown choice of unknown drivers", []string{"--unknown-drivers=maybe"}, []string{`--unknown-drivers "maybe": expected share or refuse`}},
		{"unknown log format", []string{"--log-format=xml"}, []string{"--log-format"}},
		{"unknown log level", []string{"--log-level=trace"}, []string{"--log-level"}},
		{"unknown way to adopt", []string{"--adopt=report"}, []string{`--adopt "report": expected Report or Enforce or Off`}},
		{"a limit of revocations that is none", []string{"--max-revocations=5 %"}, []string{`--max-revocations "5 %": expected a whole number`}},
		{"no limit of revocations", []string{"--max-revocations="}, []string{`--max-revocations ""`}},
		{"no ConfigMap for the brake", []string{"--brake-configmap="}, []string{`--brake-configmap ""`}},
		{"a ConfigMap in capitals", []string{"--brake-configmap=Brake"}, []string{`--brake-configmap "Brake"`}},
		{"profiles on IPv6's loopback", []string{"--pprof-bind-address=[::1]:6060"}, nil},
		{"profiles for everybody", []string{"--pprof-bind-address=:6060"}, []string{`--pprof-bind-address ":6060": expected a loopback address and a port such as 127.0.0.1:6060`}},
		{"profiles on an address of the Pod", []string{"--pprof-bind-address=10.0.0.1:6060"}, []string{`--pprof-bind-address "10.0.0.1:6060": expected a loopback address and a port such as 127.0.0.1:6060`}},
		{"profiles on every address", []string{"--pprof-bind-address=0.0.0.0:6060"}, []string{`--pprof-bind-address "0.0.0.0:6060": expected a loopback address and a port such as 127.0.0.1:6060`}},
		{"profiles on a name", []string{"--pprof-bind-address=localhost:6060"}, []string{`--pprof-bind-address "localhost:6060": expected a loopback address and a port such as 127.0.0.1:6060`}},
		{"profiles without a port", []string{"--pprof-bind-address=127.0.0.1"}, []string{`--pprof-bind-address "127.0.0.1": expected a loopback address and a port such as 127.0.0.1:6060`}},
		{"profiles nowhere", []string{"--pprof-bind-address="}, []string{`--pprof-bind-address "": expected a loopback address and a port such as 127.0.0.1:6060`}},
		{"no workers", []string{"--workers=0"}, []string{"--workers 0"}},
		{"negative rate", []string{"--kube-api-qps=-1"}, []string{"--kube-api-qps"}},
		{"negative burst", []string{"--kube-api-burst=-1"}, []string{"--kube-api-burst"}},
		{"a lease without namespace", []string{"--leader-election-namespace="}, []string{"POD_NAMESPACE"}},
		{"everything at once is told at once", []string{"--instance=_", "--workers=0", "--log-level=x"}, []string{"--instance", "--workers", "--log-level"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			chosen, err := parse(t, tc.args...).check()
			if len(tc.wants) == 0 {
				if err != nil || chosen.names.Provisioner() == "" {
					t.Fatalf("got %v, %v", chosen, err)
				}
				return
			}
			for _, want := range tc.wants {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
		})
	}
}

func TestNamespaceSelectorIsOptional(t *testing.T) {
	if chosen, err := parse(t).check(); err != nil || chosen.selector != nil {
		t.Errorf("without the flag: %v, %v", chosen.selector, err)
	}
	if chosen, err := parse(t, "--namespace-selector=team=lab").check(); err != nil || chosen.selector.String() != "team=lab" {
		t.Errorf("with the flag: %v, %v", chosen.selector, err)
	}
}

func TestRevocationChoices(t *testing.T) {
	if chosen, err := parse(t).check(); err != nil || chosen.maxRevocations != 20 || chosen.maxRevokedPercent != 5 {
		t.Errorf("by default: %+v, %v", chosen, err)
	}
	if chosen, err := parse(t, "--max-revocations=7").check(); err != nil || chosen.maxRevocations != 7 || chosen.maxRevokedPercent != 0 {
		t.Errorf("a number only: %+v, %v", chosen, err)
	}
}

// A flag that cannot be used ends the program before anything is done.
func TestUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"unknown flag": {"--no-such-flag"},
		"no number":    {"--workers=many"},
		"bad value":    {"--workers=0"},
		"no flag":      {"start"},
	} {
		command := newCommand()
		command.SetArgs(args)
		if err := command.Execute(); !errors.As(err, new(usageError)) {
			t.Errorf("%s: got %v, want a usage error", name, err)
		}
	}
	// Once only: a process handles signals once.
	if got := run([]string{"--no-such-flag"}); got != exitUsage {
		t.Errorf("exit code %d, want %d", got, exitUsage)
	}
}

func TestRates(t *testing.T) {
	kubeconfig := t.TempDir() + "/config"
	writeKubeconfig(t, kubeconfig)
	for _, tc := range []struct {
		name  string
		args  []string
		qps   float32
		burst int
	}{
		{"as the server allows", nil, -1, 0},
		{"a rate", []string{"--kube-api-qps=20"}, 20, 40},
		{"a rate and a burst", []string{"--kube-api-qps=20", "--kube-api-burst=25"}, 20, 25},
	} {
		config, err := restConfig(*parse(t, append(tc.args, "--kubeconfig="+kubeconfig)...))
		if err != nil {
			t.Fatal(err)
		}
		if config.QPS != tc.qps || config.Burst != tc.burst || !strings.HasPrefix(config.UserAgent, "mooring-controller/") {
			t.Errorf("%s: got %v, %v, %q", tc.name, config.QPS, config.Burst, config.UserAgent)
		}
	}
	if _, err := restConfig(*parse(t, "--kubeconfig=/nowhere")); err == nil || !strings.Contains(err.Error(), "--kubeconfig") {
		t.Errorf("a kubeconfig that is not there: %v", err)
	}
}

func TestLeaseName(t *testing.T) {
	long := strings.Repeat("a.", 126) + "a" // 253 characters
	names := map[string]bool{}
	for _, pair := range [][2]string{
		{"mooring", "pmp.crownlabs.polito.it"}, {"mooring", "mirror.example.com"}, {"lab", "mirror.example.com"},
		{long, long}, {long, "mirror.example.com"}, {"mooring", long},
	} {
		name := leaseName(pair[0], pair[1])
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 || names[name] {
			t.Errorf("instance %.20s, provisioner %.20s: %q (%v, taken: %v)", pair[0], pair[1], name, problems, names[name])
		}
		names[name] = true
	}
	if got := leaseName("mooring", "mirror.example.com"); got != "mooring.mirror.example.com" {
		t.Errorf("got %s", got)
	}
}

func TestLoggerLevels(t *testing.T) {
	for level, debug := range map[string]bool{"info": false, "debug": true} {
		for _, format := range []string{"json", "text"} {
			log := newLogger(*parse(t, "--log-level="+level, "--log-format="+format))
			if got := log.V(1).Enabled(); got != debug {
				t.Errorf("%s, %s: debug messages are on: %v", level, format, got)
			}
		}
	}
	if buildVersion() == "" {
		t.Error("no version")
	}
}
