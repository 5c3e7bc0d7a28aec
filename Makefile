# Needs Go, git and make; with a C compiler `make test` looks for data races too.
# Everything that is built or downloaded goes to bin/, .cache/ and Go's own
# caches. `make` alone lists the targets.

# The Kubernetes release of the test control plane.
K8S_VERSION ?= v1.37.2
export K8S_VERSION

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# How long each fuzz target runs in `make test`.
# A number of executions (1000x) or a time (10m).
FUZZTIME ?= 1000x
# What `make bench` measures: small, default or full.
BENCH ?= default
OPERATIONS ?= 2000
SEED ?= 0
# Which faults `make chaos` makes (all that there are, see docs/reliability.md), and how much.
SCHEDULE ?=
LENGTH ?= short
# The Kubernetes releases of `make test-versions`, and what `make test-upgrade`
# upgrades from.
VERSIONS ?= v1.34.4 v1.35.4 v1.36.3 v1.37.2
PREVIOUS ?= $(shell git describe --tags --abbrev=0 2>/dev/null)
# What further flags `go test` gets, such as TESTFLAGS='-run TestGrant'.
TESTFLAGS ?=
# How many minutes the integration suites may take altogether.
INTEGRATION_TIMEOUT ?= 30m

# Go's race detector needs a C compiler. Without one the tests run without it,
# and say so; CI installs one.
RACE := $(shell command -v "$$(go env CC)" >/dev/null 2>&1 && echo -race)

GOLANGCI_LINT := .cache/tools/golangci-lint
SBOM_TOOL := .cache/tools/cyclonedx-gomod
HELM_UNITTEST := .cache/tools/helm-unittest
ETCDUTL := .cache/tools/etcdutl
PROMTOOL := .cache/tools/promtool
# When the last commit was made: what is built depends on no clock.
COMMIT_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null)
COMMIT_DATE ?= $(shell TZ=UTC0 git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commitDate=$(COMMIT_DATE)
# Without -buildvcs=false a build fails where git distrusts the owner of the
# checkout; the version is stamped by LDFLAGS anyway.
GOBUILD := go build -buildvcs=false -trimpath -ldflags '$(LDFLAGS)'
COMMANDS := $(notdir $(patsubst %/,%,$(dir $(wildcard cmd/*/main.go))))

MAKEFLAGS += --no-print-directory

.DEFAULT_GOAL := help
.NOTPARALLEL:

##@ Use

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo

.PHONY: demo
demo: controlplane build ## Share volumes on a real control plane and tell each step. KEEP=1 leaves it running.
	@cd test && KEEP=$(KEEP) go run -buildvcs=false ./demo

.PHONY: build
build: ## Build the commands into bin/.
	@$(if $(COMMANDS),,echo "build: cmd/ holds no command yet")
	@set -e; for command in $(COMMANDS); do \
		echo "build: bin/$$command $(VERSION)"; \
		CGO_ENABLED=0 $(GOBUILD) -o bin/$$command ./cmd/$$command; \
	done

.PHONY: image
image: ## Build the controller's image: IMAGE=<registry>/<repository>:<tag>, ARCH=amd64|arm64.
	@IMAGE='$(IMAGE)' ARCH='$(ARCH)' CONTAINER_TOOL='$(CONTAINER_TOOL)' tools/image.sh \
		"CGO_ENABLED=0 GOOS=linux GOARCH=\$$ARCH $(GOBUILD) -o bin/image/mooring-controller ./cmd/mooring-controller"

.PHONY: release
release: $(SBOM_TOOL) ## Build archives for Linux and macOS, lists of parts, chart and checksums into dist/.
	@cd tools/release && go build -buildvcs=false -o ../../.cache/tools/release .
	@.cache/tools/release --sbom $(SBOM_TOOL) --version '$(VERSION)' --epoch '$(COMMIT_EPOCH)'

$(SBOM_TOOL): tools/release/go.mod tools/release/go.sum
	@echo "release: building cyclonedx-gomod, once"
	@cd tools/release && CGO_ENABLED=0 go build -buildvcs=false -trimpath -o ../../$@ github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod

##@ Test

.PHONY: test
test: test-unit test-fuzz test-integration try-csinode try-nfs ## Run all tests that this machine can run, and say which it cannot.

.PHONY: test-all
test-all: lint verify-generated test-unit test-fuzz test-integration test-csinode test-nfs test-chart test-rules test-roles demo test-node test-model chaos test-bench test-forge test-release ## All that is checked before a change is taken; fails where something cannot be run.

.PHONY: test-unit
test-unit: tell-race ## Run the unit tests, without any server.
	@echo "test: units"
	@go test $(RACE) $(TESTFLAGS) ./...

.PHONY: test-fuzz
test-fuzz: ## Run each fuzz target for FUZZTIME beyond its seeds.
	@echo "test: fuzz targets, $(FUZZTIME) each beyond their seeds"
	@tools/fuzz.sh $(FUZZTIME)

# The suites are never taken from Go's test cache: what they depend on (the chart,
# the examples, the control plane's binaries) lies outside their module, where it
# looks for no changes.
.PHONY: test-integration
test-integration: tell-race controlplane build ## Run the chart's tests and the suites on a real control plane.
	@echo "test: suites on Kubernetes $(K8S_VERSION)"
	@tools/suites.sh $(INTEGRATION_TIMEOUT) $(RACE) -artifacts -outputdir=$(CURDIR)/.cache/test $(TESTFLAGS)

.PHONY: test-chart
test-chart: tell-race controlplane $(HELM_UNITTEST) ## Run the chart's suites; do what its policies and fences forbid, and what they allow, on a real API server; find in a scrape what alerts and dashboard ask for.
	@echo "test: what the chart renders, with and without each value"
	@cd tools/chart && go test -count=1 ./...
	@$(HELM_UNITTEST) --strict charts/mooring
	@echo "test: policies and fences on Kubernetes $(K8S_VERSION)"
	@cd test && go test $(RACE) -count=1 -v -parallel 4 $(TESTFLAGS) ./policies/...
	@echo "test: what alerts and dashboard ask for, in a scrape on Kubernetes $(K8S_VERSION)"
	@cd test/observe && go test -count=1 -v $(TESTFLAGS) ./...

# Not part of `make test`: it builds promtool.
.PHONY: test-rules
test-rules: $(PROMTOOL) ## Test the chart's alerts with promtool, each firing and not firing, and that each has its section of docs/alerts.md.
	@echo "test: alerts"
	@$(PROMTOOL) check rules --lint=all --lint-fatal charts/mooring/alerts/alerts.yaml
	@$(PROMTOOL) test rules tools/prometheus/alerts_test.yaml
	@cd tools/prometheus && go test -count=1 ./...

$(PROMTOOL): tools/prometheus/go.mod tools/prometheus/go.sum
	@echo "test: building promtool, once (minutes on empty caches)"
	@cd tools/prometheus && CGO_ENABLED=0 go build -buildvcs=false -trimpath -tags remove_all_sd -o ../../$@ github.com/prometheus/prometheus/cmd/promtool

# Not part of `make test`: it runs the main cases of the integration suite once for
# each shape of the roles.
.PHONY: test-roles
test-roles: controlplane ## See by the API server's audit log that Mooring lacks no right, and has none that it does not use.
	@echo "test: roles on Kubernetes $(K8S_VERSION)"
	@cd test && go test -count=1 -v -timeout 1h $(TESTFLAGS) ./permissions/...

$(HELM_UNITTEST): tools/chart/go.mod tools/chart/go.sum
	@echo "test: building helm-unittest, once"
	@cd tools/chart && go build -buildvcs=false -trimpath -o ../../$@ github.com/helm-unittest/helm-unittest/cmd/helm-unittest

.PHONY: test-csinode
test-csinode: tell-race ## Carry CSI traffic of origins and mirrors over a socket (may need root: it mounts).
	@echo "test: CSI traffic of a node"
	@cd test/csinode && go test $(RACE) -count=1 $(TESTFLAGS) ./...

.PHONY: test-nfs
test-nfs: need-nfs tell-race controlplane build ## Read and write NFS data where origins and mirrors point (needs root, and Debian's nfs-ganesha and libnfs-utils).
	@echo "test: NFS data on Kubernetes $(K8S_VERSION)"
	@cd test && go test $(RACE) -count=1 -v $(TESTFLAGS) ./nfs/...

# What needs more than Go, git, make and gcc is run by `make test` where it can
# be, and is never passed over in silence.
.PHONY: try-csinode
try-csinode:
	@if unshare --mount true 2>/dev/null || unshare --map-root-user --mount true 2>/dev/null; then $(MAKE) test-csinode; \
	else echo "test: NOT RUN: CSI traffic of a node (this user may make no mount namespace; run \`make test-csinode\` as root)"; fi

.PHONY: try-nfs
try-nfs:
	@if lack=$$(test/nfs/need.sh); then $(MAKE) test-nfs; else echo "test: NOT RUN: NFS data ($$lack)"; fi

.PHONY: controlplane
controlplane: ## Build etcd, kube-apiserver, kube-controller-manager of K8S_VERSION (long, once).
	@cd test && go run -buildvcs=false ./controlplane/build

# In `make test` the operations are always the same ones; here they are others
# each time, and the seed that finds something repeats it.
.PHONY: test-model
test-model: tell-race controlplane build ## Apply random operations, other ones each time: OPERATIONS=2000 SEED=0 (the clock).
	@cd test && go test $(RACE) -count=1 -v -timeout 4h -run '^TestModel$$' ./integration -operations=$(OPERATIONS) -seed=$(SEED)

# Not part of `make test`: minutes, and with LENGTH=long more than an hour.
.PHONY: chaos
chaos: tell-race controlplane $(ETCDUTL) ## Make faults, crashes, lost leases, a data base that goes back: LENGTH=short|long SEED=0 (the clock) SCHEDULE=.
	@echo "chaos: $(LENGTH), on Kubernetes $(K8S_VERSION)"
	@cd test && go test $(RACE) -count=1 -v -parallel 8 -timeout 5h -skip '^TestUpgrade$$' $(TESTFLAGS) ./chaos -seed=$(SEED) -schedule=$(SCHEDULE) -length=$(LENGTH)

$(ETCDUTL): tools/etcdutl/go.mod tools/etcdutl/go.sum
	@echo "chaos: building etcdutl, once"
	@cd tools/etcdutl && CGO_ENABLED=0 go build -buildvcs=false -trimpath -o ../../$@ go.etcd.io/etcd/etcdutl/v3

# Not part of `make test`: each further release is built once, about ten minutes.
.PHONY: test-versions
test-versions: tell-race ## Run the integration suite on several Kubernetes releases: VERSIONS='v1.34.4 v1.37.2'.
	@set -e; for version in $(VERSIONS); do \
		$(MAKE) controlplane K8S_VERSION=$$version; \
		echo "test: integration on Kubernetes $$version"; \
		(cd test && K8S_VERSION=$$version go test $(RACE) -count=1 -v -p 1 -parallel 16 -timeout $(INTEGRATION_TIMEOUT) $(TESTFLAGS) ./integration/...); \
	done

# Not part of `make test`: before the first release there is nothing to upgrade from.
.PHONY: test-upgrade
test-upgrade: tell-race controlplane ## Upgrade from another version, with live mirrors, and go back: PREVIOUS=<tag or any git ref>.
	@[ -n "$(PREVIOUS)" ] || { echo "test-upgrade: there is no tag yet; name what to upgrade from: make test-upgrade PREVIOUS=<git ref>" >&2; exit 1; }
	@echo "test: upgrade from $(PREVIOUS), and back"
	@cd test && go test $(RACE) -count=1 -v -timeout 30m -run '^TestUpgrade$$' $(TESTFLAGS) ./chaos -previous=$(PREVIOUS)

# Not part of `make test`: it needs root, and namespaces that a container may deny.
.PHONY: test-node
test-node: ## See Pods share data through mirrors, on real kubelets (root; builds long, once).
	@test/node/run.sh $(TESTFLAGS)

# Not part of `make test`: it builds Gitea.
.PHONY: test-forge
test-forge: ## Ask a real Gitea, run the GitHub workflow with act, scan a corpus of secrets (builds long, once).
	@test/forge/run.sh $(TESTFLAGS)

# Figures are for a machine that does nothing else. -resume goes on with a run
# that was interrupted, -run REGEXP measures some cases again, -page only writes
# the page again: BENCHFLAGS.
.PHONY: bench
bench: controlplane ## Measure speed and size, and write docs/benchmarks.md: BENCH=small (to .cache), default (20 min), full (hours).
	@cd test/bench && go run -buildvcs=false . -mode=$(BENCH) $(BENCHFLAGS)

# What the chart's resources are chosen by.
.PHONY: footprint
footprint: controlplane ## Measure the memory and CPU of a controller, idle and with 2,000 mirrors (five minutes).
	@cd test/bench && go run -buildvcs=false . -footprint

# Its statistics and verdicts, and that it runs.
.PHONY: test-bench
test-bench: tell-race ## Test the benchmarks: their arithmetic, and a run of BENCH=small.
	@cd test/bench && go test $(RACE) -count=1 ./...
	@$(MAKE) bench BENCH=small BENCHFLAGS=

# Not part of `make test`: it compiles for four platforms.
.PHONY: test-release
test-release: ## Build a release twice, from two checkouts of HEAD, and see equal digests, a chart that loads, programs that run.
	@tools/release/test.sh

##@ Check

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters over every module, and check that the import rules bite.
	@tools/check-dependencies.sh
	@$(GOLANGCI_LINT) config verify
	@tools/lint-bites.sh $(GOLANGCI_LINT)
	@echo "lint: root module"
	@$(GOLANGCI_LINT) run --allow-parallel-runners ./...
	@echo "lint: test module"
	@cd test && ../$(GOLANGCI_LINT) run --allow-parallel-runners --config ../.golangci.yml ./...
	@echo "lint: test/csinode module"
	@cd test/csinode && ../../$(GOLANGCI_LINT) run --allow-parallel-runners --config ../../.golangci.yml ./...
	@echo "lint: test/node module"
	@cd test/node && ../../$(GOLANGCI_LINT) run --allow-parallel-runners --config ../../.golangci.yml ./...
	@echo "lint: test/forge module"
	@cd test/forge && ../../$(GOLANGCI_LINT) run --allow-parallel-runners --config ../../.golangci.yml ./...
	@echo "lint: test/bench module"
	@cd test/bench && ../../$(GOLANGCI_LINT) run --allow-parallel-runners --config ../../.golangci.yml ./...
	@echo "lint: test/observe module"
	@cd test/observe && ../../$(GOLANGCI_LINT) run --allow-parallel-runners --config ../../.golangci.yml ./...
	@echo "lint: tools/prometheus module"
	@cd tools/prometheus && ../../$(GOLANGCI_LINT) run --allow-parallel-runners --config ../../.golangci.yml ./...
	@echo "lint: tools/release module"
	@cd tools/release && ../../$(GOLANGCI_LINT) run --allow-parallel-runners --config ../../.golangci.yml ./...
	@echo "lint: tools/chart module"
	@cd tools/chart && ../../$(GOLANGCI_LINT) run --allow-parallel-runners --config ../../.golangci.yml ./...

.PHONY: generate
generate: ## Write what is generated again, such as docs/reasons.md and the chart's schema.
	@go generate ./...
	@cd tools/chart && go run -buildvcs=false ./values ../../charts/mooring

# Compared with what was there before, not with the last commit: a change that
# is not committed yet can be verified too.
.PHONY: verify-generated
verify-generated: ## Fail if something generated is out of date.
	@tools/verify-generated.sh $(MAKE) generate

$(GOLANGCI_LINT): tools/go.mod tools/go.sum
	@echo "lint: building golangci-lint, once (minutes on empty caches)"
	@cd tools && go build -buildvcs=false -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: tell-race
tell-race:
	@$(if $(RACE),:,echo "test: without the race detector, which needs a C compiler (on Debian: apt-get install gcc libc6-dev)")

.PHONY: need-nfs
need-nfs:
	@lack=$$(test/nfs/need.sh) || { echo "The tests of NFS data cannot run: $$lack" >&2; exit 1; }

##@ Clean

.PHONY: clean
clean: ## Remove bin/; keep the control plane and the tools.
	@rm -rf bin dist

.PHONY: clean-all
clean-all: clean ## Remove .cache/ too: the next `make test` builds the control plane again.
	@rm -rf .cache
