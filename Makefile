# make help lists the targets. Those that a project with limits of its own has too are in project.mk.
GUARDS := .
include project.mk

# The benchmarks to run, as a pattern for go test -bench.
BENCH ?= .

SCAN := .cache/scan
CLIENTS := .cache/clients
PEERS := .cache/peers
FORMER := .cache/former
PACKAGES := .cache/packages
CONSOLE := .cache/console
CDK := .cache/cdk
PUBLISH := .cache/publish
TOFU := .cache/tofu
PYTHON_TOOLS := $(PACKAGES)/python-tools
CLIENT_SOURCES := clients
SERVERS := scripts/with-dynamodb scripts/with-sqs
GOLANGCI_LINT := go tool -modfile=tools/lint.mod golangci-lint

# $(call sources,FOLDER) lists the files of a package, without what was installed or built.
sources = $(shell find $(1) \( -name 'node_modules' -o -name 'dist*' -o -name '.*' -o -name '__pycache__' \) -prune -o -type f -print)

.PHONY: check
check: lint test ## Run lint and test; do this before each commit

.PHONY: test
test: ## Run the tests that need only Go, DynamoDB Local and ElasticMQ; prints what it leaves out
	@$(SERVERS) scripts/test quick

.PHONY: test-clients
test-clients: ## Run the tests with AWS's clients, the clients in three languages, and a browser
	$(fetch-clients)
	@$(SERVERS) scripts/test clients

.PHONY: test-projects
test-projects: ## Run the tests that compile projects and a release, as the documents describe
	$(fetch-packages)
	@$(SERVERS) scripts/test projects

.PHONY: test-long
test-long: ## Run the proofs and the laws with the bounds that CI has
	@$(SERVERS) scripts/test long

.PHONY: race
race: ## Run the tests of make test with the race detector
	@$(SERVERS) scripts/test race

.PHONY: test-all
test-all: ## Run everything that the five targets above run, as CI does
	$(fetch-clients)
	@$(SERVERS) scripts/test all

# With CI=true, something that can't be fetched is an error. Otherwise its tests are skipped.
define fetch-clients
@$(MAKE) --no-print-directory clients || { [ "$$CI" != true ] && echo "make $@: AWS's clients are missing, so their tests are skipped" >&2; }
@$(MAKE) -s console || { [ "$$CI" != true ] && echo "make $@: axe-core is missing, so a test of the console is skipped" >&2; }
@$(MAKE) -s -j2 checked
$(fetch-packages)
endef
fetch-packages = @$(MAKE) -s packages || { [ "$$CI" != true ] && echo "make $@: the packages are missing, so the tests of the examples are skipped" >&2; }

.PHONY: lint
lint: ## Check format, vet, go fix, linters, import rules and go.mod
	$(GOLANGCI_LINT) fmt --diff
	go vet ./...
	go fix -diff ./...
	$(GOLANGCI_LINT) run
	go mod tidy -diff

# The programs of projects without Go: Lambda functions, and the agent for functions and containers. What their make deploy-local
# needs is in the folder local, with the functions for amd64, because an emulator runs them as processes of its machine.
GENERIC := guard jobs-guard cleanup delayed-jobs
GENERIC_VCS := false
compile_generic = CGO_ENABLED=0 GOOS=linux GOARCH=$(1) GOAMD64=v1 GOARM64=v8.0 go build -trimpath -buildvcs=$(GENERIC_VCS) \
	-tags=lambda.norpc,nethttpomithttp2 -ldflags="-s -w" -o "dist/generic/$(3)" ./cmd/generic/$(2)

.PHONY: generic
generic: $(GENERIC:%=generic-%) $(GENERIC:%=local-%) ## Build the programs of projects without Go, as dist/generic/NAME/bootstrap and .../agent-ARCH/extensions/guards-agent
	@$(call compile_generic,arm64,guards-agent,agent-arm64/extensions/guards-agent)
	@$(call compile_generic,amd64,guards-agent,agent-amd64/extensions/guards-agent)
	@cp scripts/with-aws scripts/deploy-local dist/generic/local
	@cp tools/emulator/requirements.txt dist/generic/local/emulator.txt
	@cp tools/requirements.txt dist/generic/local/venv.txt

generic-%: FORCE
	@$(call compile_generic,$(GOARCH_LAMBDA),$*,$*/bootstrap)
local-%: FORCE
	@$(call compile_generic,amd64,$*,local/amd64/$*/bootstrap)

.PHONY: release
release: GENERIC_VCS := true# so that go version -m and guards-agent version know the release
release: build agent generic ## Build the archives of a release into dist/release, with checksums and lists of modules; publishes nothing
	go run ./tools/release/run

# The packages come from the copies in which they were built and tested.
.PHONY: publish-check
publish-check: $(PACKAGES)/typescript/installed $(PACKAGES)/python/installed $(CDK)/installed $(PUBLISH)/installed ## Build the packages of a release into dist/packages, and check them and the workflows; TAG=v0.1.0: also what that tag needs. Publishes nothing
	@$(cdk-copy)
	@scripts/publish-check $(TAG)

$(PUBLISH)/installed: tools/publish/requirements.txt
	@echo "fetching twine and zizmor (90 MB when installed, only the first time)" >&2
	@rm -rf $(@D)
	@python3 -m venv $(@D)
	@$(@D)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

.PHONY: cover
cover: ## Measure the coverage by all tests: prints the total and writes coverage/index.html
	@mkdir -p coverage
	TESTS='clients projects long' $(SERVERS) go test -covermode=atomic -coverpkg=./... -coverprofile=coverage/profile ./...
	@go tool cover -html=coverage/profile -o coverage/index.html
	@go tool cover -func=coverage/profile | tail -n 1

.PHONY: prove
prove: ## Run the proofs with long bounds (hours) and write docs/reliability.md; PART=NAME runs one part
	go run ./internal/proofs/prove/run $(PART)

.PHONY: planted
planted: ## Plant each bug of internal/proofs/planted and check that a test finds it; NAME=x: one bug, BY=p: only proof p, LONG=1: long bounds; ALL=1: list each test that finds it
	@PLANTED_RUN=1 PLANTED_NAME='$(NAME)' PLANTED_BY='$(BY)' PLANTED_LONG='$(LONG)' PLANTED_ALL='$(ALL)' \
		$(SERVERS) go test -count=1 -timeout=20h -v -run='TestEachPlantedBugIsCaught|TestWhichTestsCatchEachBug' ./internal/proofs/planted

.PHONY: mutation
mutation: ## Mutate the policies with gremlins; each mutant that survives must be explained in a list; takes 40 minutes
	@scripts/mutation

# How long each fuzz target runs, as for go test -fuzztime.
FUZZTIME ?= 20s

.PHONY: fuzz
fuzz: ## Look for inputs that break a fuzz target; FUZZTIME (1m, 100000x) applies to each target
	@FUZZ_TIME='$(FUZZTIME)' go test -count=1 -timeout=6h -v -run=TestALongRunFindsNothing ./internal/proofs/fuzz

.PHONY: explore
explore: ## Try every order of events in small systems, with long bounds
	go run ./internal/proofs/prove/run explore

# One measurement of make bench, such as decision; empty: all.
PART ?=

# The part app measures the built clients, beside other projects and the clients as they were before.
.PHONY: bench
bench: $(if $(filter app,$(PART)),packages $(PEERS)/installed $(FORMER)/installed) ## Measure what a decision costs, each figure beside its goal, and write docs/performance.md; PART=NAME runs one part, such as app
	go run ./internal/proofs/bench/run $(PART)

.PHONY: bench-peers
bench-peers: $(PEERS)/installed ## Measure other limiters on DynamoDB beside this one, for docs/performance.md
	go run ./internal/proofs/bench/run peers

# What bench-check compares with: its merge base with this branch.
BASE ?= origin/main

.PHONY: bench-check
bench-check: ## Fail if a goal is missed, or if a figure is a tenth worse than at the merge base; BASE=BRANCH names another branch
	go run ./internal/proofs/bench/run -check $(BASE)

.PHONY: benchmarks
benchmarks: ## Run Go's benchmarks with DynamoDB Local; BENCH=NAME selects some of them
	scripts/with-dynamodb go test -run='^$$' -bench='$(BENCH)' -benchmem ./...

.PHONY: template
template: $(VENV)/installed $(SCAN)/installed ## Check template.yaml with cfn-lint, SAM and checkov, and build it with SAM
	$(VENV)/bin/cfn-lint --include-checks I -- template.yaml
	SAM_CLI_TELEMETRY=0 $(VENV)/bin/sam validate --lint
	TEMPLATE_TOOLS=1 go test -count=1 -run=Template ./internal/endtoend/deployment
	SAM_CLI_TELEMETRY=0 $(VENV)/bin/sam build

.PHONY: cdk
cdk: $(VENV)/installed $(CDK)/installed ## Test the CDK construct: synthesize the example of its README, and compare it with the SAM template
	@$(cdk-copy)
	@cd $(CDK) && npm test --silent

cdk-copy = rm -rf $(CDK)/src $(CDK)/test $(CDK)/dist $(CDK)/dist-test && \
	tar -C deploy/cdk --exclude=node_modules --exclude='dist*' -cf - . | tar -C $(CDK) -xf -

# The packages change only with their list. The sources are copied for each run.
$(CDK)/installed: deploy/cdk/package.json deploy/cdk/package-lock.json
	@command -v npm >/dev/null || { echo "make cdk: npm is not installed" >&2; exit 1; }
	@echo "fetching the AWS CDK (260 MB when installed, only the first time)" >&2
	@rm -rf $(CDK)
	@mkdir -p $(CDK)
	@cp deploy/cdk/package.json deploy/cdk/package-lock.json $(CDK)
	@npm ci --prefix $(CDK) --silent --no-audit --no-fund
	@touch $@

.PHONY: terraform
terraform: emulated $(TOFU)/tofu ## Test the Terraform module with OpenTofu and the emulator: its variables, outputs and example
	@TF_CLI_CONFIG_FILE=/dev/null $(TOFU)/tofu fmt -check -diff deploy/terraform
	@TOFU="$(CURDIR)/$(TOFU)/tofu" scripts/with-aws go test -count=1 ./internal/endtoend/terraform

$(TOFU)/tofu: tools/tofu.mod tools/tofu.sum
	@echo "building OpenTofu (only the first time)" >&2
	@go build -modfile=tools/tofu.mod -o $@ github.com/opentofu/opentofu/cmd/tofu

.PHONY: tour
tour: emulator packages ## Use each command in a fresh clone, as a newcomer would, and check what it prints
	@scripts/with-dynamodb scripts/tour

.PHONY: deployment
deployment: emulated $(PACKAGES)/typescript/installed $(PACKAGES)/python/installed ## Test the deployed stack and make aws-check on the emulator, with IAM enforced; takes some minutes
	RECORDER=1 scripts/with-aws go test -count=1 -timeout=20m ./internal/endtoend/deployment

# Where make aws-check also writes its result.
OUT ?=

# The AWS CLI is one of the emulator's programs. The emulator itself does not run.
.PHONY: aws-check
aws-check: emulator ## Measure docs/unmeasured.md in your AWS account, for less than a dollar; asks first; YES=1: does not, OUT=FILE: the result, LONG=1: alarms, KEEP=1: stacks stay
	@SAM_CLI_TELEMETRY=0 $(VENV)/bin/sam build >.cache/sam-build.log 2>&1 || { cat .cache/sam-build.log >&2; exit 1; }
	@go build -o .cache/aws-check ./tools/awscheck/run
	@PATH="$(CURDIR)/$(VENV)/bin:$(CURDIR)/$(EMULATOR)/bin:$$PATH" SAM_CLI_TELEMETRY=0 AWS_PAGER= \
		.cache/aws-check $(if $(YES),-yes) $(if $(LONG),-long) $(if $(KEEP),-keep) $(if $(OUT),-out '$(OUT)')

$(SCAN)/installed: tools/scan/requirements.txt
	$(install)

.PHONY: clients
clients: $(CLIENTS)/installed ## Fetch AWS's clients for the tests: AWS CLI, boto3, SDK for JavaScript, runtime emulator

.PHONY: console
console: $(CONSOLE)/installed ## Fetch axe-core, which checks the accessibility of the console of guards serve

$(CONSOLE)/installed: tools/console/package.json tools/console/package-lock.json
	@command -v npm >/dev/null || { echo "make console: npm is not installed" >&2; exit 1; }
	@rm -rf $(CONSOLE)
	@mkdir -p $(CONSOLE)
	@cp tools/console/package.json tools/console/package-lock.json $(CONSOLE)
	@npm ci --prefix $(CONSOLE) --silent --no-audit --no-fund
	@touch $@

$(PEERS)/installed: $(wildcard tools/peers/*)
	@command -v python3 >/dev/null && command -v npm >/dev/null || { echo "this needs Python 3 and Node.js 20" >&2; exit 1; }
	@rm -rf $(PEERS)
	@mkdir -p $(PEERS)
	@python3 -m venv $(PEERS)/venv
	@$(PEERS)/venv/bin/pip install --quiet --disable-pip-version-check --requirement tools/peers/requirements.txt
	@cp tools/peers/package.json tools/peers/package-lock.json tools/peers/flexible.mjs tools/peers/zae.py $(PEERS)
	@npm ci --prefix $(PEERS) --silent --no-audit --no-fund
	@touch $@

# The last commit at which both clients asked with AWS's SDK, for make bench. A shallow clone does not have it.
FORMER_COMMIT := 2a9d42482941b51d44973234700d3fe315a27ef0
$(FORMER)/installed:
	@rm -rf $(FORMER)
	@git cat-file -e $(FORMER_COMMIT) 2>/dev/null || \
		{ echo "make bench: this clone lacks commit $(FORMER_COMMIT), so its clients are not measured" >&2; exit 0; }; \
	mkdir -p $(FORMER)/node_modules/@cric-talk && ln -s ../../typescript $(FORMER)/node_modules/@cric-talk/guards && \
	git archive $(FORMER_COMMIT):clients typescript python | tar -C $(FORMER) -xf - && \
	npm ci --prefix $(FORMER)/typescript --silent --no-audit --no-fund && npm run --prefix $(FORMER)/typescript --silent build && \
	python3 -m venv $(FORMER)/venv && $(FORMER)/venv/bin/pip install --quiet --disable-pip-version-check \
		--constraint $(FORMER)/python/requirements-dev.txt $(FORMER)/python && \
	touch $@

# The runtime emulator is a file of the SAM CLI. The SAM CLI itself is not run here, so its dependencies are left out.
$(CLIENTS)/installed: tools/clients/requirements.txt tools/clients/package-lock.json tools/requirements.txt
	@command -v npm >/dev/null || { echo "make clients: npm is not installed" >&2; exit 1; }
	@echo "fetching AWS's clients with pip and npm (280 MB when installed, only the first time)" >&2
	@rm -rf $(CLIENTS)
	@python3 -m venv $(CLIENTS)/venv
	@$(CLIENTS)/venv/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@$(CLIENTS)/venv/bin/pip install --quiet --disable-pip-version-check --no-deps "$$(grep '^aws-sam-cli==' tools/requirements.txt)"
	@cp tools/clients/package.json tools/clients/package-lock.json $(CLIENTS)
	@npm ci --prefix $(CLIENTS) --silent --no-audit --no-fund
	@touch $@

# $(call checked,LANGUAGE,PROGRAM) installs the client of a language and runs its own checks. Without the program or its
# packages, it skips them; with CI=true, it fails.
checked = if command -v $(2) >/dev/null && $(MAKE) -s $(PACKAGES)/$(1)/installed; then \
		$(MAKE) -s $(PACKAGES)/$(1)/checked; \
	else \
		echo "make checked: $(2) or its packages are missing, so the $(1) client is not tested" >&2; \
		[ "$$CI" != true ]; \
	fi

.PHONY: checked checked-typescript checked-python
checked: checked-typescript checked-python ## Run the checks of the TypeScript and Python clients that have changed
checked-typescript: ## Run only the checks of the TypeScript client
	@+$(call checked,typescript,npm)
checked-python: ## Run only the checks of the Python client
	@+$(call checked,python,python3)

.PHONY: packages
packages: $(PACKAGES)/typescript/installed $(PACKAGES)/python/installed $(PACKAGES)/examples/installed ## Build the TypeScript and Python clients and install them into empty projects, for internal/endtoend/scenarios and the examples

# A package is built from a copy of its folder, so that nothing of the working copy gets into it. The TypeScript client needs
# no other package, but in some scenarios the SDK for JavaScript finds the credentials.
$(PACKAGES)/typescript/installed: $(call sources,$(CLIENT_SOURCES)/typescript)
	@command -v npm >/dev/null || { echo "make packages: npm is not installed" >&2; exit 1; }
	@echo "building and installing the TypeScript client" >&2
	@rm -rf $(@D)
	@mkdir -p $(@D)/source
	@tar -C $(CLIENT_SOURCES)/typescript --exclude=node_modules --exclude='dist*' -cf - . | tar -C $(@D)/source -xf -
	@cd $(@D)/source && npm ci --silent --no-audit --no-fund && { npm pack --silent --pack-destination .. >pack.log || { cat pack.log >&2; exit 1; }; }
	@echo '{"private": true, "type": "module"}' >$(@D)/package.json
	@cd $(@D) && npm install --silent --no-audit --no-fund ./*.tgz \
		"@aws-sdk/client-lambda@$$(node -p "require('./source/package.json').devDependencies['@aws-sdk/client-lambda']")"
	@touch $@

$(PACKAGES)/python/installed: $(call sources,$(CLIENT_SOURCES)/python) $(PYTHON_TOOLS)/installed
	@echo "building and installing the Python client" >&2
	@rm -rf $(@D)
	@mkdir -p $(@D)/source
	@tar -C $(CLIENT_SOURCES)/python --exclude='.*cache' --exclude=__pycache__ --exclude=.venv --exclude=dist -cf - . | tar -C $(@D)/source -xf -
	@$(PYTHON_TOOLS)/bin/python -m build --wheel --no-isolation --outdir $(@D) $(@D)/source >$(@D)/build.log 2>&1 || { cat $(@D)/build.log >&2; exit 1; }
	@python3 -m venv $(@D)/venv
	@$(@D)/venv/bin/pip install --quiet --disable-pip-version-check "$$(ls $(@D)/*.whl)[botocore]"
	@touch $@

# The examples have a project of their own: they also need web frameworks, which the empty projects must not have.
$(PACKAGES)/examples/installed: $(PACKAGES)/typescript/installed $(PACKAGES)/python/installed \
		tools/packages/examples.txt tools/packages/package.json tools/packages/package-lock.json
	@echo "installing what the examples need" >&2
	@rm -rf $(@D)
	@mkdir -p $(@D)
	@cp tools/packages/package.json tools/packages/package-lock.json $(@D)
	@npm ci --prefix $(@D) --silent --no-audit --no-fund
	@cd $(@D) && npm install --silent --no-audit --no-fund --no-save ../typescript/*.tgz
	@python3 -m venv $(@D)/venv
	@$(@D)/venv/bin/pip install --quiet --disable-pip-version-check --requirement tools/packages/examples.txt $(PACKAGES)/python/*.whl
	@touch $@

# The tools are in a folder of their own, because a change of the client does not change them.
$(PYTHON_TOOLS)/installed: $(CLIENT_SOURCES)/python/requirements-dev.txt
	@echo "fetching the tools for the Python client (200 MB when installed, only the first time)" >&2
	@rm -rf $(@D)
	@python3 -m venv $(@D)
	@$(@D)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

# A client's own checks run once for each change of its folder.
$(PACKAGES)/typescript/checked $(PACKAGES)/python/checked: $(PACKAGES)/%/checked: $(PACKAGES)/%/installed
	@echo "running the checks of the $* client" >&2
	@cd $(@D)/source && { $(checks-$*); } >../checks.log 2>&1 || { cat ../checks.log >&2; exit 1; }
	@touch $@

checks-typescript = npm test && npm run lint
checks-python = PATH="$(abspath $(PYTHON_TOOLS))/bin:$$PATH" && export PATH PYTHONPATH=src && ruff check && ruff format --check && mypy && pytest -n 8

.PHONY: clean
clean: ## Delete everything that was built or fetched
	rm -rf dist coverage .aws-sam .cache
