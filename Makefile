# Shale: operating-system images built on the Kubernetes cluster that runs them.
#
#   make demo            a cluster on this machine and a tour of the main job; KEEP=1 leaves it up, NODES=directory has it on directories
#   make test            lint, types, generated files, import directions, every test and a sample of the soak tests
.DEFAULT_GOAL := help
SHELL := /bin/sh
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)
SUDO := $(if $(filter 0,$(shell id -u)),,sudo -E env PATH="$(PATH)")

.PHONY: release release-from-forge help install install-cli install-machines install-tests demo down test lint types check unit tests soak campaign lab lab-bootc lab-rpm-ostree cluster-lab capi-lab versions mutants image image-packages manifests pictures chart format bench bench-daemon bench-images bench-rollout clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

install: ## install the npm and Debian packages that are missing
	@bin/bootstrap

install-cli: ## install what the commands of bin/shale need, on any Linux or macOS with Node.js 20 or newer and npm
	@bin/bootstrap npm

install-tests: install ## also install what only tests need
	@bin/bootstrap debian-tests

.PHONY: page
page: ## build the live page, which shale ui and shale page serve
	@bin/bootstrap npm page

.PHONY: programs
programs: ## bundle Shale's programs, which the image runs
	@bin/bootstrap npm programs

# Where these can't be had, the nodes are directories, and the tour says so.
install-machines: install
	@bin/bootstrap debian-machines || true

demo: $(if $(filter directory,$(NODES)),install,install-machines) ## run a cluster on this machine and a tour of the main features (KEEP=1 keeps it running; NODES=directory is three times as fast)
	@$(SUDO) bin/shale sandbox tour $(if $(KEEP),--keep) --nodes $(or $(NODES),auto)

down: ## stop the cluster that make demo KEEP=1 kept running
	@$(SUDO) bin/shale sandbox down

clean: ## remove what was installed and made here
	@$(SUDO) bin/shale sandbox down 2>/dev/null || true
	$(SUDO) rm -rf .shale node_modules page/dist cli/dist charts/dist dist

test: install-tests ## decide whether a change lands: every check and test, and a sample of the soak tests (SHALE_SEED=N repeats it)
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint types check
	@$(MAKE) --no-print-directory tests

lint:
	biome ci --error-on-warnings .
	knip --no-progress

types:
	tsc -p .
	tsc -p page/app

check:
	node manifests/generate.ts --check
	node test/checks/import-directions.ts
	node test/checks/house.ts

VITEST := node node_modules/vitest/vitest.mjs run

unit: ## run the tests that need neither root nor packages
	$(VITEST) --project unit

tests:
	$(SUDO) $(VITEST)

CAMPAIGN = SHALE_SOAK_MINUTES=$(or $(MINUTES),10) SHALE_SOAK_NODES=$(or $(NODES),directory)

soak: install-tests ## run every case of every test: each point at which a process can be killed, machines that a boot loader boots, MINUTES=10 of faults
	SHALE_SOAK=all $(CAMPAIGN) $(SUDO) $(VITEST)

campaign: install-tests ## run faults on a cluster for MINUTES=10 and check what Shale promises (NODES=systemd or scripted, SHALE_SEED=N)
	$(CAMPAIGN) $(SUDO) $(VITEST) --project soak test/soak

lab: install-tests ## run every case of the tests on machines with systemd (test/node-lab), one of them virtual
	SHALE_SOAK=all $(SUDO) $(VITEST) test/node-lab

lab-bootc: install-tests ## run the contract of a backend and the daemon on a machine of the given bootc (BOOTC=/path/to/bootc, built for Debian forky, or the directory that its make install wrote to; or BASE=quay.io/fedora/fedora-bootc:NN)
	SHALE_BOOTC=$(abspath $(BOOTC)) SHALE_BOOTC_BASE=$(BASE) SHALE_SOAK=all $(SUDO) $(VITEST) --project soak test/node-lab/bootc

lab-rpm-ostree: install-tests ## run the contract of a backend on a machine of the given rpm-ostree (RPM_OSTREE=/path/to/files, what its make install wrote, built for Debian forky)
	SHALE_RPM_OSTREE=$(abspath $(RPM_OSTREE)) SHALE_SOAK=all $(SUDO) $(VITEST) --project soak test/node-lab/rpm-ostree

# In a network of its own, which has no way out: what needs one is fetched before.
cluster-lab: install-tests image-packages ## run Shale as pods on a real cluster of two machines with kubelets (KUBEBUILDER_ASSETS=directory with its programs)
	@$(SUDO) env $(CLUSTER) node test/cluster-lab/prepare.ts
	@$(SUDO) env $(CLUSTER) SHALE_CLUSTER_LAB=1 unshare --net -- $(VITEST) --project soak test/cluster-lab

capi-lab: install-tests ## run Cluster API's own controllers against Shale's extension, with a sandbox as the cluster they manage (CAPI=directory with their programs)
	SHALE_CAPI=$(abspath $(CAPI)) $(SUDO) $(VITEST) --project soak test/capi-lab

CLUSTER = $(if $(KUBEBUILDER_ASSETS),KUBEBUILDER_ASSETS=$(abspath $(KUBEBUILDER_ASSETS)))

versions: install-tests ## upgrade a cluster from the version at FROM=REF (a tag, branch or commit) to this one, and downgrade it
	@checkout=$$(bin/other-version "$(FROM)") && $(SUDO) env SHALE_OTHER_VERSION="$$checkout" $(VITEST) --project soak test/install/versions.soak.test.ts

ROOM ?= disruption
SAMPLE ?= 100

mutants: ## change ROOM's code in SAMPLE places, one at a time, and report what no test notices (SEED=1, PROJECT=unit: no integration tests)
	node test/checks/mutation/run.ts --room $(ROOM) --sample $(SAMPLE) --seed $(or $(SEED),1) $(if $(PROJECT),--project $(PROJECT))

ENGINE ?= podman
IMAGE ?= shale:latest

image: page programs ## build Shale's image (ENGINE=podman or docker, IMAGE=name:tag, BASE=image to build on)
	$(ENGINE) build --file Containerfile --tag $(IMAGE) $(if $(BASE),--build-arg BASE=$(BASE)) \
	  --build-arg VERSION=$$(node -p 'require("./package.json").version') \
	  --build-arg REVISION=$$(git rev-parse HEAD 2>/dev/null || echo unknown) .

image-packages: ## install the image's npm packages beforehand, for an engine without access to an npm registry
	@bin/image-packages

manifests: ## generate manifests/crds and the reference from the code
	node manifests/generate.ts

pictures: install-machines install-tests ## draw the pictures of the README from the live page and a tour (NODES=directory is faster)
	@mkdir -p .shale && $(SUDO) bin/shale sandbox tour --nodes $(or $(NODES),auto) > .shale/tour.log 2>&1 || { tail -20 .shale/tour.log; exit 1; }
	node docs/generate/pictures.ts .shale/tour.log

chart: ## generate the Helm chart from manifests/, in charts/dist/shale
	@bin/bootstrap npm
	node charts/make.ts

release: page programs image-packages ## make a release in dist/release/VERSION (VERSION=x; OUT=directory, REGISTRY=host/path to push to, KEY=file to sign with, BASE=image, DOWNLOADS=URL of its files)
	@node release/make.ts --version "$(VERSION)" --out "$(OUT)" --registry "$(REGISTRY)" --key "$(KEY)" \
	  $(if $(BASE),--base $(BASE)) $(if $(DOWNLOADS),--downloads $(DOWNLOADS)) $(foreach host,$(INSECURE_REGISTRY),--insecure-registry $(host))

# What a forge has in variables becomes files that nobody else can read, and goes again.
release-from-forge:
	@mkdir -p .shale && umask 077 && trap 'rm -f .shale/release.key .shale/registry-auth.json' EXIT INT TERM && \
	  if [ -n "$$REGISTRY_AUTH" ]; then printf '%s' "$$REGISTRY_AUTH" > .shale/registry-auth.json; fi && \
	  if [ -n "$$SIGNING_KEY" ]; then printf '%s' "$$SIGNING_KEY" > .shale/release.key; fi && \
	  REGISTRY_AUTH_FILE="$(CURDIR)/.shale/registry-auth.json" $(MAKE) release VERSION="$(TAG:v%=%)" REGISTRY="$(REGISTRY)" DOWNLOADS="$(DOWNLOADS)" \
	    KEY="$${SIGNING_KEY:+.shale/release.key}"

format: ## format, and fix what can be fixed automatically
	biome check --write .

bench: ## print those figures of bench/ that need no registry
	@for file in bench/render.ts bench/diff.ts bench/status.ts bench/start-up.ts; do echo "== $$file"; node $$file || exit 1; done

bench-daemon: install ## print what updates cost a node, and for how long a service of it is away (needs root, some minutes)
	@for file in bench/live-apply.ts bench/out-of-service.ts; do echo "== $$file"; $(SUDO) node $$file || exit 1; done

bench-images: install ## print the figures of the builder beside docker build and buildah (needs root, some minutes)
	@bin/bootstrap debian-peers
	@for file in bench/append.ts bench/image-contents.ts bench/pools.ts bench/commands.ts; do echo "== $$file"; $(SUDO) node $$file || exit 1; done

bench-rollout: ## print what rollouts to 100 to 5,000 nodes cost the operator (NODES=10000 POOLS=20; FAULTS=1, KILL=1; some minutes)
	@node bench/rollout.ts $(if $(FAULTS),--faults) $(if $(KILL),--kill) $(if $(NODES),$(NODES)x$(or $(POOLS),5))
