# "make help" lists the targets. They need Go, make, git, bash and diff. "make
# test-all" also needs a C compiler, "make model" spin, and "make dist" GNU tar.
# Everything else is built from the Go module proxy into bin/.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GOLANGCI_LINT_VERSION  := v2.15.0
CONTROLLER_GEN_VERSION := v0.23.0

# The programs, the tests and the linters share one set of compiled packages, which is
# the same in each clone.
export CGO_ENABLED ?= 0
export GOFLAGS     := $(strip $(GOFLAGS) -trimpath)

BIN     := $(CURDIR)/bin
# go run keeps a program that it linked in Go's cache, for each clone.
LINT    := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
GEN     := go run sigs.k8s.io/controller-tools/cmd/controller-gen@$(CONTROLLER_GEN_VERSION)
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# Stamped explicitly, since Go leaves it out with -buildvcs=false. Empty without git.
REVISION ?= $(shell commit=$$(git rev-parse HEAD 2>/dev/null) && echo $$commit$$([ -z "$$(git status --porcelain)" ] || echo -dirty))
STAMPS  := overrule.dev/overrule/internal/build
LDFLAGS := -s -w -X $(STAMPS).version=$(VERSION) -X $(STAMPS).revision=$(REVISION)
# Leaves out gRPC's debug pages, which make the server 50 % larger.
TAGS    := grpcnotrace

RELEASE := $(BIN)/release
# The platforms of the image, and of the plugin's archives.
PLATFORMS        ?= linux/amd64 linux/arm64
PLUGIN_PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
# IMAGE is the reference that "make push" pushes to (REGISTRY/NAME:TAG). DIST_URL is
# the URL that the archives of "make dist" are published at.
IMAGE    ?=
DIST_URL ?=

# Set KUBEBUILDER_ASSETS to use existing control plane binaries.
ifdef KUBEBUILDER_ASSETS
controlplane_build := @echo "using the control plane in $(KUBEBUILDER_ASSETS)" && true
override KUBEBUILDER_ASSETS := $(abspath $(KUBEBUILDER_ASSETS))
else
controlplane_build := @test/controlplane/build.sh bin/controlplane
KUBEBUILDER_ASSETS := $(BIN)/controlplane
endif
export KUBEBUILDER_ASSETS

FUZZTIME  ?= 20s
# BENCH and BENCHTIME are -bench and -benchtime of go test. The default depends on
# the benchmark.
BENCH     ?=
BENCHTIME ?=
BENCHPKGS ?= ./...
# RACE=1 runs test-unit under the race detector, which needs a C compiler.
RACE ?=
# PART is a part of "make long".
PART ?=
# ROUTES selects one row of bench-footprint (100, 1000 or 10000).
ROUTES ?=
export RACE FUZZTIME BENCH BENCHTIME

##@ Demo

.PHONY: demo
demo: controlplane-core build ## Run a sequence of kubectl commands on a real API server (about 5 minutes the first time).
	@go build -o bin/demo ./test/demo
	@bin/demo

.PHONY: run
run: controlplane-core build ## Start the same servers and keep running; prints the KUBECONFIG to use.
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
generate: ## Run the code generators.
	go generate ./...
	$(GEN) object paths=./api/v1alpha1
	$(GEN) crd paths=./api/v1alpha1 output:crd:dir=deploy/crds
	hack/prometheusrule > deploy/components/monitoring/prometheusrule.yaml
	hack/chart

.PHONY: docs-images
docs-images: ## Write the images in docs/images (needs Chromium).
	go test ./internal/cli/commands -count=1 -run 'Graph' -update
	cd test/ui && go test -count=1 -run 'Image' . -update

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
sbom: build ## Write the SBOMs of both programs into bin/release, as CycloneDX.
	@mkdir -p $(RELEASE)
	@for program in overrule kubectl-overrule; do \
		go -C hack/release tool cyclonedx-gomod bin -json -std -noserial -notimestamp \
			-version $(VERSION) -output $(RELEASE)/$$program.cdx.json $(BIN)/$$program; \
		echo $(RELEASE)/$$program.cdx.json; \
	done

.PHONY: dist
dist: plugin-binaries ## Pack the plugin for PLUGIN_PLATFORMS into bin/release/dist; with DIST_URL, also a manifest for krew.
	@DIST_URL='$(DIST_URL)' SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) hack/dist $(RELEASE) $(VERSION) $(PLUGIN_PLATFORMS)

.PHONY: plugin-binaries
plugin-binaries:
	$(call build-for,$(PLUGIN_PLATFORMS),./cmd/kubectl-overrule)

##@ Test

.PHONY: test-unit
test-unit: ## Run the tests that need no API server; unchanged packages are cached.
	go test $(if $(RACE),-race) ./...

.PHONY: test
test: controlplane build ## Run the tests without an API server, and those of each entry through one.
	@hack/test core

.PHONY: test-all
test-all: controlplane build ## Run every test but the long parts, with the race detector, and those of the chart; CI runs this.
	@hack/test all

.PHONY: long
long: controlplane build ## Run one of the long parts in a bounded size: make long PART=handovers (hack/long list prints them).
	@hack/long run $(PART)

.PHONY: model
model: ## Run the model of several replicas with spin, which must be installed (1 to 3 minutes; test/model/README.md).
	@test/model/run

.PHONY: proof
proof: controlplane build ## Run all long parts at full size: 1,000 pairs of writes, 50 handovers, faults, fuzzing, the model, footprint and more (3 hours).
	@for part in $$(hack/long list); do echo "== $$part"; hack/long full $$part; done
	@$(MAKE) bench-footprint

.PHONY: fuzz
fuzz: ## Fuzz each target for FUZZTIME (20s).
	@hack/fuzz

.PHONY: bench
bench: controlplane-core build ## Measure the operations that have a limit, and print the table (about 10 minutes; BENCH narrows it).
	@hack/bench

.PHONY: bench-all
bench-all: ## Run every benchmark that needs no API server (BENCH, BENCHTIME and BENCHPKGS narrow them).
	go test -p 1 -short -run '^$$' -bench '$(or $(BENCH),.)' -benchmem -benchtime '$(or $(BENCHTIME),1s)' -timeout 60m $(BENCHPKGS)

# Measures as the regression test does: one CPU, no garbage collection, a fixed count.
operations = mkdir -p $(BIN)/bench && go test -exec 'env GOGC=off' -run '^$$' -bench '^BenchmarkOperation$$' -benchmem -benchtime 20x -count 6 -cpu 1 ./test/bench | tee $(BIN)/bench/operations.txt
ALLOCATED := .unit:(B/op OR allocs/op OR MiB)
BASELINE  := test/bench/testdata/operations.txt

.PHONY: bench-compare
bench-compare: ## Compare allocations per operation with the baseline of the regression test (half a minute).
	@$(operations)
	@go tool benchstat -ignore goos,goarch,cpu -filter '$(ALLOCATED)' $(BASELINE) $(BIN)/bench/operations.txt

.PHONY: bench-baseline
bench-baseline: ## Rewrite that baseline, for an intended change.
	@$(operations)
	@go tool benchfilter '$(ALLOCATED)' $(BIN)/bench/operations.txt >$(BASELINE)

.PHONY: bench-footprint
bench-footprint: controlplane-core build ## Measure CPU and memory of one server at 100 writes per second (10 minutes; ROUTES=1000 is one row).
	go test -tags e2e -run '^$$' -bench '^BenchmarkFootprint$$$(if $(ROUTES),/^routes=$(ROUTES)$$)' -benchtime 1x -timeout 60m ./test/bench

.PHONY: bench-growth
bench-growth: controlplane-core build ## Measure how costs grow with the number of routes, and print the table (about 15 minutes).
	@mkdir -p $(BIN)/bench
	go test -tags e2e -run '^$$' -bench '^BenchmarkGrowth$$' -benchmem -benchtime '$(or $(BENCHTIME),1s)' -timeout 60m ./test/bench | tee $(BIN)/bench/growth.txt
	@go tool benchstat -col /routes -filter '.unit:(sec/op OR MiB OR ms OR informer-ms)' $(BIN)/bench/growth.txt

##@ Check

# The modules to lint. That with the code of a gateway takes minutes: the long part peers
# lints it.
MODULES ?= $(filter-out ./test/peers/envoygateway,$(shell hack/modules))

.PHONY: lint
lint: ## Run the linters, on every module that has packages.
	@for module in $(MODULES); do \
		[ -n "$$(find "$$module" -name '*.go' -print -quit)" ] || continue; \
		(cd "$$module" && $(LINT) run ./...); \
	done

.PHONY: fmt
fmt: ## Format the code.
	$(LINT) fmt ./...

.PHONY: verify
verify: ## Regenerate, format and lint; fails on any difference from git.
	@hack/verify

##@ Other

.PHONY: clean
clean: ## Remove everything that was built.
	rm -rf bin

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
