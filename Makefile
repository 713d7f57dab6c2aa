# "make help" lists the targets. They need Go, make, git, bash and diff ("make
# test-all" a C compiler, "make dist" GNU tar, too); everything else is built from the Go module proxy into bin/.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GOLANGCI_LINT_VERSION  := v2.15.0
CONTROLLER_GEN_VERSION := v0.23.0

BIN     := $(CURDIR)/bin
TOOLS   := $(BIN)/tools
LINT    := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)
GEN     := $(TOOLS)/controller-gen-$(CONTROLLER_GEN_VERSION)
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# Stamped, since Go leaves it out with -buildvcs=false. Empty where there is no git.
REVISION ?= $(shell commit=$$(git rev-parse HEAD 2>/dev/null) && echo $$commit$$([ -z "$$(git status --porcelain)" ] || echo -dirty))
STAMPS  := overrule.dev/overrule/internal/build
LDFLAGS := -s -w -X $(STAMPS).version=$(VERSION) -X $(STAMPS).revision=$(REVISION)
# Without the pages of gRPC for debugging, which make the server half as large again.
TAGS    := grpcnotrace

RELEASE := $(BIN)/release
# What an image is built for, and what the plugin's archives are.
PLATFORMS        ?= linux/amd64 linux/arm64
PLUGIN_PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
# IMAGE is where "make push" pushes to (REGISTRY/NAME:TAG); DIST_URL is where the
# archives of "make dist" will be downloaded from.
IMAGE    ?=
DIST_URL ?=

# Give KUBEBUILDER_ASSETS to use control plane binaries that are already there.
ifdef KUBEBUILDER_ASSETS
controlplane_build := @echo "using the control plane in $(KUBEBUILDER_ASSETS)" && true
override KUBEBUILDER_ASSETS := $(abspath $(KUBEBUILDER_ASSETS))
else
controlplane_build := @test/controlplane/build.sh bin/controlplane
KUBEBUILDER_ASSETS := $(BIN)/controlplane
endif
export KUBEBUILDER_ASSETS

FUZZTIME  ?= 20s
# BENCH and BENCHTIME are those of go test; without them, each benchmark has what
# is right for it.
BENCH     ?=
BENCHTIME ?=
BENCHPKGS ?= ./...
# RACE=1 runs test-unit under the race detector, which needs a C compiler.
RACE ?=
# SOAK is how long the faults of test-soak start over; each happens once at least.
SOAK ?=
# ROUTES is the one row that bench-footprint measures, 100, 1000 or 10000, or bench-refresh, 1000 or 10000.
ROUTES ?=
export RACE FUZZTIME BENCH BENCHTIME SOAK

##@ See it

.PHONY: demo
demo: controlplane-core build ## Play the story on a real API server (about 5 minutes the first time).
	@go build -o bin/demo ./test/demo
	@bin/demo

.PHONY: run
run: controlplane-core build ## Boot the same and stay up; prints the KUBECONFIG to use.
	@go build -o bin/demo ./test/demo
	@bin/demo -stay

##@ Build

.PHONY: build
build: ## Build bin/overrule and bin/kubectl-overrule.
	@CGO_ENABLED=0 go build -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/overrule ./cmd/kubectl-overrule

.PHONY: controlplane
controlplane: controlplane-core ## Build etcd, kube-apiserver, kubectl and kube-controller-manager (about 6 minutes cold).
	$(controlplane_build) kube-controller-manager

.PHONY: controlplane-core
controlplane-core:
	$(controlplane_build) etcd kube-apiserver kubectl

.PHONY: generate
generate: $(GEN) ## Run the code generators.
	go generate ./...
	$(GEN) object paths=./api/v1alpha1
	$(GEN) crd paths=./api/v1alpha1 output:crd:dir=deploy/crds
	hack/prometheusrule > deploy/components/monitoring/prometheusrule.yaml
	hack/chart

##@ Release

# The timestamp of everything in the image and the archives.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
# $(call build-for,PLATFORMS,PACKAGE) builds into a folder for each platform.
build-for = @for platform in $(1); do \
		echo "building $(2) for $$platform"; \
		GOOS=$${platform%/*} GOARCH=$${platform\#*/} CGO_ENABLED=0 go build -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)' -o "$(RELEASE)/$${platform/\//_}/" $(2); \
	done

.PHONY: image
image: server-binaries ## Write an image of the server for PLATFORMS into bin/release/image, without a container engine.
	@rm -rf $(RELEASE)/image
	@REVISION=$(REVISION) SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) go -C hack/release run . $(RELEASE)/image $(VERSION) \
		$(foreach p,$(PLATFORMS),$(p)=$(RELEASE)/$(subst /,_,$(p))/overrule)

.PHONY: server-binaries
server-binaries:
	$(call build-for,$(PLATFORMS),./cmd/overrule)

.PHONY: push
push: ## Push that image to IMAGE (REGISTRY/NAME:TAG).
	@[[ "$(IMAGE)" == */*:* ]] || { echo "push: IMAGE must be REGISTRY/NAME:TAG: make push IMAGE=REGISTRY/overrule:$(VERSION)" >&2; exit 1; }
	@go -C hack/release tool crane push $(RELEASE)/image $(IMAGE)

.PHONY: sbom
sbom: build ## Write what both programs are made of into bin/release, as CycloneDX.
	@mkdir -p $(RELEASE)
	@for program in overrule kubectl-overrule; do \
		go -C hack/release tool cyclonedx-gomod bin -json -std -noserial -notimestamp \
			-version $(VERSION) -output $(RELEASE)/$$program.cdx.json $(BIN)/$$program; \
		echo $(RELEASE)/$$program.cdx.json; \
	done

.PHONY: dist
dist: plugin-binaries ## Pack the plugin for PLUGIN_PLATFORMS into bin/release/dist; with DIST_URL, a manifest for krew too.
	@DIST_URL='$(DIST_URL)' SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) hack/dist $(RELEASE) $(VERSION) $(PLUGIN_PLATFORMS)

.PHONY: plugin-binaries
plugin-binaries:
	$(call build-for,$(PLUGIN_PLATFORMS),./cmd/kubectl-overrule)

##@ Test

.PHONY: test-unit
test-unit: ## Run the tests that need no API server; Go's test cache answers for what did not change.
	go test $(if $(RACE),-race) ./...

.PHONY: test
test: controlplane build ## Run unit tests, integration tests and the core of end-to-end (under 5 minutes).
	@hack/test core

.PHONY: test-all
test-all: controlplane build ## Run every test of every module, and the soak (under 20 minutes); CI runs this.
	@hack/test all

.PHONY: test-soak
test-soak: controlplane-core build ## Let servers fail one after another under a stream of writes (some 2 minutes; SOAK=30m starts over).
	go test -count=1 -v -timeout 2h -tags soak ./test/soak

.PHONY: proof
proof: controlplane build ## Run at full size what test-all bounds: 300 pairs of writes, the soak for 30 minutes, fuzzing, a server's footprint (2 hours).
	OVERRULE_PAIRS=300 go test -count=1 -v -timeout 30m -tags e2e -run 'TestConflictingWritesOneServer|TestConflictingWritesTwoServersAreReported' ./test/e2e
	@$(MAKE) test-soak SOAK=$(or $(SOAK),30m)
	@$(MAKE) fuzz
	@$(MAKE) bench-footprint

.PHONY: fuzz
fuzz: ## Fuzz each target for FUZZTIME (20s).
	@hack/fuzz

.PHONY: bench
bench: controlplane-core build ## Measure what has a limit, and print the table (some 10 minutes; BENCH narrows it).
	@hack/bench

.PHONY: bench-all
bench-all: ## Run every benchmark that needs no API server (BENCH, BENCHTIME and BENCHPKGS narrow them).
	go test -p 1 -short -run '^$$' -bench '$(or $(BENCH),.)' -benchmem -benchtime '$(or $(BENCHTIME),1s)' -timeout 60m $(BENCHPKGS)

# What the regression gate measures, as it does that: one CPU, no garbage collection, a fixed count.
operations = mkdir -p $(BIN)/bench && go test -exec 'env GOGC=off' -run '^$$' -bench '^BenchmarkOperation$$' -benchmem -benchtime 20x -count 6 -cpu 1 ./test/bench | tee $(BIN)/bench/operations.txt
ALLOCATED := .unit:(B/op OR allocs/op OR MiB)
BASELINE  := test/bench/testdata/operations.txt

.PHONY: bench-compare
bench-compare: ## Compare what operations allocate with the baseline of the regression gate (half a minute).
	@$(operations)
	@go tool benchstat -ignore goos,goarch,cpu -filter '$(ALLOCATED)' $(BASELINE) $(BIN)/bench/operations.txt

.PHONY: bench-baseline
bench-baseline: ## Rewrite that baseline, for a change that is intended.
	@$(operations)
	@go tool benchfilter '$(ALLOCATED)' $(BIN)/bench/operations.txt >$(BASELINE)

.PHONY: bench-footprint
bench-footprint: controlplane-core build ## Measure CPU and memory of one server at 100 writes a second (10 minutes; ROUTES=1000 is one row).
	go test -tags e2e -run '^$$' -bench '^BenchmarkFootprint$$$(if $(ROUTES),/^routes=$(ROUTES)$$)' -benchtime 1x -timeout 60m ./test/bench

.PHONY: bench-refresh
bench-refresh: controlplane-core build ## Measure how long annotations are stale after a gateway policy's write (10 minutes; ROUTES=1000 is one row).
	go test -tags e2e -run '^$$' -bench '^BenchmarkRefresh$$$(if $(ROUTES),/^routes=$(ROUTES)$$)' -benchtime 1x -timeout 60m ./test/bench

.PHONY: bench-growth
bench-growth: controlplane-core build ## Measure how costs grow with the routes, and print the table (some 15 minutes).
	@mkdir -p $(BIN)/bench
	go test -tags e2e -run '^$$' -bench '^BenchmarkGrowth$$' -benchmem -benchtime '$(or $(BENCHTIME),1s)' -timeout 60m ./test/bench | tee $(BIN)/bench/growth.txt
	@go tool benchstat -col /routes -filter '.unit:(sec/op OR MiB OR ms OR informer-ms)' $(BIN)/bench/growth.txt

##@ Check

.PHONY: lint
lint: $(LINT) ## Run the linters, on every module that has packages.
	@for module in $$(hack/modules); do \
		[ -n "$$(find "$$module" -name '*.go' -print -quit)" ] || continue; \
		(cd "$$module" && $(LINT) run ./...); \
	done

.PHONY: fmt
fmt: $(LINT) ## Format the code.
	$(LINT) fmt ./...

.PHONY: verify
verify: ## Regenerate, format and lint; fails on any difference from what git has.
	@hack/verify

$(LINT):
	@echo "installing golangci-lint $(GOLANGCI_LINT_VERSION) (about 2 minutes on two cores)"
	@GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	@mv $(TOOLS)/golangci-lint $@

$(GEN):
	@echo "installing controller-gen $(CONTROLLER_GEN_VERSION) (about 20 seconds)"
	@GOBIN=$(TOOLS) go install sigs.k8s.io/controller-tools/cmd/controller-gen@$(CONTROLLER_GEN_VERSION)
	@mv $(TOOLS)/controller-gen $@

##@ Other

.PHONY: clean
clean: ## Remove all that was built.
	rm -rf bin

.PHONY: help
help: ## Show this.
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
