# Targets for people carry a "## " text, which make help prints. SAM calls build-%Function.

.DEFAULT_GOAL := help

# As template.yaml has it, since SAM does not tell make. GOARCH_LAMBDA=amd64 gives binaries for an Intel machine.
GOARCH_LAMBDA ?= arm64
# Which benchmarks, as go test -bench takes it.
BENCH ?= .

FUNCTIONS := $(notdir $(wildcard functions/*))
VENV := .cache/venv
GOLANGCI_LINT := go tool -modfile=tools/lint.mod golangci-lint

# $(call compile,FUNCTION,DIRECTORY): the same bytes on every machine, and nothing in them that Lambda doesn't use.
compile = CGO_ENABLED=0 GOOS=linux GOARCH=$(GOARCH_LAMBDA) go build -trimpath -buildvcs=false -tags lambda.norpc \
	-ldflags="-s -w" -o "$(2)/bootstrap" ./functions/$(1)

.PHONY: help
help: ## This list
	@awk -F ': .*## |: ## ' '/^[a-z]+:.* ## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

.PHONY: check
check: lint test ## What to run before a commit: lint and test

.PHONY: test
test: ## All tests, on DynamoDB Local too, which is fetched and started where it can be
	@race=-race; \
	if [ "$$(go env CGO_ENABLED)" != 1 ]; then race=; echo "make test: no C compiler, so without the race detector" >&2; fi; \
	scripts/with-dynamodb go test $$race -shuffle=on ./...

.PHONY: lint
lint: ## Format, vet, fixes due, linters and the walls between packages, go.mod
	$(GOLANGCI_LINT) fmt --diff
	go vet ./...
	go fix -diff ./...
	$(GOLANGCI_LINT) run
	go mod tidy -diff

.PHONY: build
build: $(FUNCTIONS:%=dist/%/bootstrap) ## Each function as it is deployed, in dist/NAME/bootstrap
	@if command -v sha256sum >/dev/null; then sha256sum $^; else shasum -a 256 $^; fi

# Always made anew: go build knows best what is out of date.
dist/%/bootstrap: FORCE
	@$(call compile,$*,dist/$*)
FORCE:

# SAM's name for a function to its folder: PostsGuardFunction is functions/posts-guard.
build-%Function:
	$(call compile,$$(echo $* | sed 's/\([a-z0-9]\)\([A-Z]\)/\1-\2/g' | tr '[:upper:]' '[:lower:]'),$(ARTIFACTS_DIR))

.PHONY: cover
cover: ## Coverage by all tests of all packages: the total, and coverage/index.html
	@mkdir -p coverage
	scripts/with-dynamodb go test -covermode=atomic -coverpkg=./... -coverprofile=coverage/profile ./...
	@go tool cover -html=coverage/profile -o coverage/index.html
	@go tool cover -func=coverage/profile | tail -n 1

.PHONY: bench
bench: ## Benchmarks, on DynamoDB Local too; BENCH=Name for some of them
	scripts/with-dynamodb go test -run='^$$' -bench='$(BENCH)' -benchmem ./...

.PHONY: template
template: $(VENV)/installed ## template.yaml: cfn-lint, sam validate, sam build
	$(VENV)/bin/cfn-lint --include-checks I -- template.yaml
	SAM_CLI_TELEMETRY=0 $(VENV)/bin/sam validate --lint
	SAM_CLI_TELEMETRY=0 $(VENV)/bin/sam build

# Written last, so an install that was cut short is made anew.
$(VENV)/installed: tools/requirements.txt
	rm -rf $(VENV)
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

.PHONY: clean
clean: ## Delete all that was built and fetched
	rm -rf dist coverage .aws-sam .cache
