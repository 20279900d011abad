# The targets that build and deploy a project. The Makefile of a project includes this file and sets GUARDS, the folder of
# Guards. make help prints the text after "## " of each target. SAM calls build-%Function.

.DEFAULT_GOAL := help

# SAM does not tell make the architecture, so this repeats the one in template.yaml.
GOARCH_LAMBDA ?= arm64

FUNCTIONS := $(notdir $(patsubst %/,%,$(dir $(wildcard functions/*/main.go))))
VENV := .cache/venv
EMULATOR := .cache/emulator

# $(call compile,FUNCTION,DIRECTORY) builds one function. The result is the same on every machine, and it contains only what
# Lambda uses. HTTP/2 is left out, because an instance sends one request at a time. With it, the zip would be 145 KB larger.
compile = CGO_ENABLED=0 GOOS=linux GOARCH=$(GOARCH_LAMBDA) GOAMD64=v1 GOARM64=v8.0 go build -trimpath -buildvcs=false \
	-tags=lambda.norpc,nethttpomithttp2 -ldflags="-s -w" -o "$(2)/bootstrap" ./functions/$(1)

.PHONY: help
help: ## List the targets
	@awk -F ': .*## |: ## ' '/^[a-z-]+:.* ## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: $(FUNCTIONS:%=dist/%/bootstrap) ## Build each function for deployment, as dist/NAME/bootstrap
	@if command -v sha256sum >/dev/null; then sha256sum $^; else shasum -a 256 $^; fi

# Always run go build: it knows best what is out of date.
dist/%/bootstrap: FORCE
	@$(call compile,$*,dist/$*)
FORCE:

# This maps the name in template.yaml to the folder: PostsGuardFunction is functions/posts-guard.
build-%Function:
	$(call compile,$$(echo $* | sed 's/\([a-z0-9]\)\([A-Z]\)/\1-\2/g' | tr '[:upper:]' '[:lower:]'),$(ARTIFACTS_DIR))

# $(call compile_agent,GOARCH,DIRECTORY) builds the agent. In a layer, extensions has no other file, because Lambda starts each.
compile_agent = CGO_ENABLED=0 GOOS=linux GOARCH=$(1) GOAMD64=v1 GOARM64=v8.0 go build -trimpath -buildvcs=false \
	-tags=lambda.norpc,nethttpomithttp2 -ldflags="-s -w" -o "$(2)/extensions/guards-agent" ./cmd/guards-agent

.PHONY: agent
agent: ## Build the agent for containers and layers, as dist/agent-arm64/extensions/guards-agent and dist/agent-amd64/...
	@$(call compile_agent,arm64,dist/agent-arm64)
	@$(call compile_agent,amd64,dist/agent-amd64)

# SAM builds the layers with these.
build-AgentLayerArm64:
	$(call compile_agent,arm64,$(ARTIFACTS_DIR))
build-AgentLayerX86:
	$(call compile_agent,amd64,$(ARTIFACTS_DIR))

.PHONY: deploy
deploy: $(VENV)/installed ## Deploy to AWS: asks for the parameters and shows the changes first
	SAM_CLI_TELEMETRY=0 $(VENV)/bin/sam build
	SAM_CLI_TELEMETRY=0 $(VENV)/bin/sam deploy --guided

.PHONY: deploy-local
deploy-local: emulated ## Deploy to an emulator without AWS, and show a refused call; KEEP=1 keeps it running, CALL="GUARD ACTIVITY LIMIT" selects it
	@CACHE="$(CURDIR)/.cache" exec bash $(GUARDS)/scripts/with-aws bash $(GUARDS)/scripts/deploy-local $(CALL)

.PHONY: emulator
emulator: $(VENV)/installed $(EMULATOR)/installed ## Fetch the AWS emulator and SAM

# This builds into its own directory, because these binaries are for this machine and not for Lambda.
.PHONY: emulated
emulated: emulator ## Build the stack for the emulator
	@GOARCH_LAMBDA=$$(go env GOARCH) SAM_CLI_TELEMETRY=0 $(VENV)/bin/sam build --config-env local >.cache/sam-build.log 2>&1 || \
		{ cat .cache/sam-build.log >&2; exit 1; }

# The file "installed" is written last, so an interrupted install starts again.
define install
@echo "fetching the packages of $< (350 MB when installed, only the first time)" >&2
@rm -rf $(@D)
@python3 -m venv $(@D)
@$(@D)/bin/pip install --quiet --disable-pip-version-check --requirement $<
@touch $@
endef

$(EMULATOR)/installed: $(GUARDS)/tools/emulator/requirements.txt
	$(install)

$(VENV)/installed: $(GUARDS)/tools/requirements.txt
	$(install)
