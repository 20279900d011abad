# Targets for people carry a "## " text, which make help prints. SAM calls build-%Function.

.DEFAULT_GOAL := help

# As template.yaml has it, since SAM does not tell make. GOARCH_LAMBDA=amd64 gives binaries for an Intel machine.
GOARCH_LAMBDA ?= arm64
# Which benchmarks, as go test -bench takes it.
BENCH ?= .

FUNCTIONS := $(notdir $(wildcard functions/*))
VENV := .cache/venv
EMULATOR := .cache/emulator
SCAN := .cache/scan
CLIENTS := .cache/clients
SERVERS := scripts/with-dynamodb scripts/with-sqs
GOLANGCI_LINT := go tool -modfile=tools/lint.mod golangci-lint

# $(call compile,FUNCTION,DIRECTORY): the same bytes on every machine, and nothing in them that Lambda doesn't use.
compile = CGO_ENABLED=0 GOOS=linux GOARCH=$(GOARCH_LAMBDA) go build -trimpath -buildvcs=false -tags lambda.norpc \
	-ldflags="-s -w" -o "$(2)/bootstrap" ./functions/$(1)

.PHONY: help
help: ## This list
	@awk -F ': .*## |: ## ' '/^[a-z-]+:.* ## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: check
check: lint test ## What to run before a commit: lint and test

.PHONY: test
test: ## All tests, on DynamoDB Local, ElasticMQ and by AWS's own clients too, which are fetched where they can be
	@$(MAKE) --no-print-directory clients || { [ "$$CI" != true ] && echo "make test: without AWS's clients" >&2; }
	@race=-race; \
	if [ "$$(go env CGO_ENABLED)" != 1 ]; then race=; echo "make test: no C compiler, so without the race detector" >&2; fi; \
	$(SERVERS) go test $$race -shuffle=on ./...

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
	$(SERVERS) go test -covermode=atomic -coverpkg=./... -coverprofile=coverage/profile ./...
	@go tool cover -html=coverage/profile -o coverage/index.html
	@go tool cover -func=coverage/profile | tail -n 1

.PHONY: bench
bench: ## Benchmarks, on DynamoDB Local too; BENCH=Name for some of them
	scripts/with-dynamodb go test -run='^$$' -bench='$(BENCH)' -benchmem ./...

.PHONY: template
template: $(VENV)/installed $(SCAN)/installed ## template.yaml: cfn-lint, sam validate, what SAM makes of it, checkov, sam build
	$(VENV)/bin/cfn-lint --include-checks I -- template.yaml
	SAM_CLI_TELEMETRY=0 $(VENV)/bin/sam validate --lint
	TEMPLATE_TOOLS=1 go test -count=1 -run=Template ./internal/deployment
	SAM_CLI_TELEMETRY=0 $(VENV)/bin/sam build

.PHONY: deploy
deploy: $(VENV)/installed ## To AWS: builds for Lambda, asks what a stack needs to be told, shows the changes, deploys
	SAM_CLI_TELEMETRY=0 $(VENV)/bin/sam build
	SAM_CLI_TELEMETRY=0 $(VENV)/bin/sam deploy --guided

.PHONY: deploy-local
deploy-local: emulated ## To an emulator, without AWS, and one refused call; KEEP=1 keeps it running until Ctrl-C
	@scripts/with-aws scripts/deploy-local

.PHONY: deployment
deployment: emulated ## The proof that the stack works as deployed: on the emulator, with IAM enforced, 2 minutes
	RECORDER=1 scripts/with-aws go test -count=1 -timeout=8m ./internal/deployment

.PHONY: emulator
emulator: $(VENV)/installed $(EMULATOR)/installed ## What emulates AWS, and SAM

# In a directory of its own: these binaries are for this machine, whatever template.yaml says.
.PHONY: emulated
emulated: emulator ## The stack built for the emulator
	@GOARCH_LAMBDA=$$(go env GOARCH) SAM_CLI_TELEMETRY=0 $(VENV)/bin/sam build --config-env local >.cache/sam-build.log 2>&1 || \
		{ cat .cache/sam-build.log >&2; exit 1; }

# Written last, so an install that was cut short is made anew.
$(EMULATOR)/installed $(SCAN)/installed: .cache/%/installed: tools/%/requirements.txt
	@echo "fetching what tools/$*/requirements.txt names (350 MB installed, only the first time)" >&2
	@rm -rf .cache/$*
	@python3 -m venv .cache/$*
	@.cache/$*/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

$(VENV)/installed: tools/requirements.txt
	rm -rf $(VENV)
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

.PHONY: clients
clients: $(CLIENTS)/installed ## AWS's own clients for the tests: AWS CLI, boto3, SDK for JavaScript, runtime emulator

# The emulator is a file of the SAM CLI, which is not run here: it comes without what that requires.
$(CLIENTS)/installed: tools/clients/requirements.txt tools/clients/package-lock.json tools/requirements.txt
	@command -v npm >/dev/null || { echo "make clients: npm is not there" >&2; exit 1; }
	@echo "fetching AWS's clients by pip and npm (280 MB installed, only the first time)" >&2
	@rm -rf $(CLIENTS)
	@python3 -m venv $(CLIENTS)/venv
	@$(CLIENTS)/venv/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@$(CLIENTS)/venv/bin/pip install --quiet --disable-pip-version-check --no-deps "$$(grep '^aws-sam-cli==' tools/requirements.txt)"
	@cp tools/clients/package.json tools/clients/package-lock.json $(CLIENTS)
	@npm ci --prefix $(CLIENTS) --silent --no-audit --no-fund
	@touch $@

.PHONY: clean
clean: ## Delete all that was built and fetched
	rm -rf dist coverage .aws-sam .cache
