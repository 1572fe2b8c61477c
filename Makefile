# Everything that is done to this project. `make help` lists it.

# The tools that are built here, never taken from the machine.
LINT_VERSION := v2.15.0
LINT := .bin/golangci-lint-$(LINT_VERSION)

# Where the tree is no repository that git can read, the build cannot be stamped.
VCS := $(shell git rev-parse HEAD >/dev/null 2>&1 || echo -buildvcs=false)

# The program, vet, the linters and the fuzz targets are built in one way, so that
# what they import is compiled once, and not for each of them: on a new machine that
# takes minutes.
PLAIN := CGO_ENABLED=0 GOFLAGS="$(strip $(shell go env GOFLAGS) -trimpath)"

# SQLite is C that was turned into Go, go/... reads this tree in test/arch, and many
# tests look for expressions in long texts. The race detector makes them many times
# slower and has nothing to say about them; it watches all that is around them.
WATCH := -race -gcflags=modernc.org/...=-race=false -gcflags=go/...=-race=false -gcflags=regexp/...=-race=false

# The race detector needs a C compiler. Asked when the tests begin, since prepare
# may have installed one.
RACE = $(shell command -v gcc >/dev/null 2>&1 && echo "$(WATCH)")

# How long all tests of one package may take.
TIMEOUT := 10m

# How long all fuzz targets together may take, in seconds.
FUZZ_SECONDS ?= 60

.DEFAULT_GOAL := help

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the static program into bin/
	$(PLAIN) go build $(VCS) -ldflags="-s -w" -o bin/portico ./cmd/portico

.PHONY: test
test: prepare ## run all tests, with the race detector where there is a C compiler
	@command -v gcc >/dev/null 2>&1 || echo "no C compiler: the tests run without the race detector"
	go test $(RACE) -timeout $(TIMEOUT) ./...

.PHONY: race
race: prepare ## run all tests with the race detector, or fail
	go test $(WATCH) -timeout $(TIMEOUT) ./...

.PHONY: prepare
prepare: ## install what the tests need and the machine lacks
	@.ci/prepare

.PHONY: lint
lint: format vet $(LINT) ## check form, vet and linters
	$(PLAIN) $(LINT) run --allow-parallel-runners ./...

.PHONY: fix
fix: $(LINT) ## format, and mend what the linters can mend themselves
	gofmt -w $$(go list -f '{{.Dir}}' ./...)
	$(LINT) run --fix ./...

.PHONY: format
format: ## check that every Go file is formatted
	@unformatted=$$(gofmt -l $$(go list -f '{{.Dir}}' ./...)); \
	if [ -n "$$unformatted" ]; then echo "not formatted, run gofmt -w on:"; echo "$$unformatted"; exit 1; fi

.PHONY: vet
vet: ## run go vet
	$(PLAIN) go vet ./...

$(LINT):
	@echo "building golangci-lint $(LINT_VERSION) into .bin (one to three minutes, once)"
	$(PLAIN) GOBIN=$(CURDIR)/.bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@mv .bin/golangci-lint $(LINT)

.PHONY: modules
modules: ## check that go.mod is tidy and the modules are what go.sum says
	go mod tidy -diff
	go mod verify

.PHONY: fuzz
fuzz: ## run every fuzz target for a few seconds
	@$(PLAIN) .ci/fuzz $(FUZZ_SECONDS)

# How many requests the long run of the fault suite makes, and from which seed (0 = any).
FAULT_REQUESTS ?= 100000
FAULT_SEED ?= 0

.PHONY: faults
faults: prepare ## run the fault suite at full length: some ten minutes
	go test ./test/faults -count=1 -v -timeout 60m -args -requests=$(FAULT_REQUESTS) -seed=$(FAULT_SEED)

# How many moves the long run of the migration makes with PostgreSQL and with SQLite, and from which seed (0 = any).
MIGRATION_SEEDS ?= 20
MIGRATION_SQLITE ?= 8
MIGRATION_SEED ?= 0

.PHONY: migration-long
migration-long: prepare ## move a product there and back under load and kills, with many seeds; some fifteen minutes
	go test ./test/migration -run TestAMoveLosesNothing -count=1 -v -timeout 60m -args -seeds=$(MIGRATION_SEEDS) -sqlite=$(MIGRATION_SQLITE) -seed=$(MIGRATION_SEED)

.PHONY: bench
bench: ## measure the program against nginx, HAProxy and a plain Go proxy; takes half an hour
	@.ci/bench $(BENCH)

# How long the long run lasts.
SOAK ?= 30m

.PHONY: soak
soak: ## load the program with everything at once for SOAK, and see that it does not grow
	@.ci/bench -soak $(SOAK)

.PHONY: bench-packages
bench-packages: ## run the benchmarks of every package
	go test -run '^$$' -bench . -benchmem -benchtime 1s ./...

.PHONY: run-demo
run-demo: ## run everything in one process, with seeded data
	go run ./cmd/portico demo

# Where manual pages go.
MAN ?= bin/man

.PHONY: man
man: ## write a manual page for each command into MAN
	@mkdir -p $(MAN)
	$(PLAIN) go test ./cmd/portico -count=1 -run '^TestManual$$' -args -man=$(abspath $(MAN))

.PHONY: release
release: ## build archives, Debian packages, an SBOM and checksums into dist/
	@.ci/release dist

.PHONY: release-check
release-check: ## check that releases are reproducible, and packages, units, chart and image; some ten minutes
	@.ci/release-check

.PHONY: clients-npm
clients-npm: build ## run the clients that npm has through Portico; needs Node with npm, and a network
	@.ci/npm-clients bin/portico

.PHONY: clean
clean: ## remove what was built
	rm -rf bin dist .bin .cache
