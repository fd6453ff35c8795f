# The commands of this project. `make demo` and `make test` do all the set-up
# they need, inside the checkout as far as possible; see tools/setup.sh.
.DEFAULT_GOAL := help
.PHONY: help build quick lab sim install uninstall install-nfd uninstall-nfd package-files deb test-deb rpm test-rpm container test-container test-kubernetes arm64 dist test-dist lint-workflows deny sbom test-crates book test-install dpdk bench records records-check papers demo demo-tags test lint tidy unit dpdk-libraries test-prometheus test-mininet test-faults budget loom fuzz fuzz-long interop sanitize system clean distclean

# The checkout's own Rust comes first, if tools/setup.sh has installed one. The last entry finds what rustup has just
# installed into the home directory, without a new login.
export PATH := $(CURDIR)/.toolchain/bin:$(PATH):$(HOME)/.cargo/bin

# Seconds for each fuzz target; `make test` uses the smaller number.
SECONDS := 20
TEST_FUZZ_SECONDS := 5

# Where cargo puts its output, even if CARGO_TARGET_DIR moved it.
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
NAMEWIRE := $(TARGET)/release/namewire

# Every step prints what it is before it runs.
say = @printf '\n== %s\n' "$(1)"

help:
	@echo 'make demo      a network of four routers: a fetch, the same from a cache, a dying router, a python-ndn application'
	@echo 'make demo-tags seven routers, a concert found by its tags (TagNet)'
	@echo 'make test      all checks, as CI runs them, with a router of the tests (some 25 minutes the first time, on 2 cores)'
	@echo 'make build     the router, target/release/namewire'
	@echo 'make install   the router with manual pages, completions and a service, under PREFIX=/usr/local and DESTDIR'
	@echo 'make install-nfd  the same, with links nfd, nfdc, ndnsec and others, nfd-start, nfd-stop and nfd.conf.sample'
	@echo 'make deb       a package for Debian and Ubuntu, in target/debian (installs cargo-deb into the checkout)'
	@echo 'make rpm       a package for Fedora, RHEL and openSUSE, in target/rpm'
	@echo 'make dist      what people download, in target/dist: static programs for x86-64 and 64-bit ARM, packages, images, sums'
	@echo 'make container an image with nothing but a static program, target/container/namewire.tar'
	@echo 'make arm64     the static program for 64-bit ARM, and its lowest crates tested under qemu'
	@echo 'make sbom      the crates in the program, target/sbom/namewire.cdx.json; make deny checks their licences and sources'
	@echo 'make test-crates  the library for programs: packages, documentation, changes that break programs; part of make system'
	@echo 'make book      the guide as a book with a search, target/book/index.html (installs mdbook into the checkout)'
	@echo 'make lab       the experiments, target/release/namewire-lab: see lab/README.md'
	@echo 'make sim       the simulator, target/release/namewire-sim: see docs/simulator.md'
	@echo 'make dpdk      the same with DPDK, target/dpdk/release/namewire (needs libdpdk-dev)'
	@echo 'make bench     the main benchmark: CPU per packet and latency of a router on sockets, beside a relay (2 minutes)'
	@echo 'make records   renews the records of lab/record whose code has changed, and the table of the papers (hours)'
	@echo 'make records-check  fails if the code of a record has changed since; part of make system'
	@echo 'make papers    checks the numbers of the papers and writes their table into lab/README.md'
	@echo 'make unit      unit, property and simulation tests; those of DPDK ports say so where DPDK cannot be had'
	@echo 'make lint      rustfmt and clippy'
	@echo 'make tidy      house rules: documents, unsafe allow-list, crate arrows, shape of files and functions'
	@echo 'make test-prometheus  a real Prometheus reads two routers; the dashboard for Grafana and the alerts; part of make system'
	@echo 'make test-mininet  an emulated network with Debian'"'"'s Mininet, as scripts for NFD drive it; part of make system'
	@echo 'make test-faults  traceroute and doctor name twenty faults on a path of ten routers; part of make system'
	@echo 'make test-install, make test-deb, make test-rpm, make test-container  what each brings, in a folder or a bare root,'
	@echo '               make test-kubernetes: the manifests, make test-dist: dist twice, make lint-workflows: .github; part of'
	@echo '               make system'
	@echo 'make budget    instructions of each stage of a packet, compared with lab/budget.json'
	@echo 'make loom      every thread interleaving: rings between workers, FIB readers and writer'
	@echo 'make fuzz      libFuzzer targets, SECONDS=20 each'
	@echo 'make fuzz-long EXECUTIONS=100000000 inputs of parsers in one night (HOURS=10); the corpus is kept, and small'
	@echo 'make sanitize  address sanitizer, thread sanitizer and Miri, with a nightly compiler'
	@echo 'make interop   python-ndn and NDNts through a running router'
	@echo 'make system    tests too long for make test: dying links, full disks (need root), 1000 kills, 10^7 Interests through core'
	@echo '               routers and among hostile hosts, a day of churn in simulation and five minutes on sockets'
	@echo 'make clean     removes everything built'
	@echo 'make distclean also removes what was installed into the checkout'

build:
	@[ -x $(NAMEWIRE) ] || tools/setup.sh estimate
	@tools/setup.sh rust
	cargo build --release --locked --package namewire-cli

lab:
	@tools/setup.sh rust
	cargo build --release --locked --package namewire-lab

sim:
	@tools/setup.sh rust
	cargo build --release --locked --package namewire-scenario

# What a package has beside the program, as the program itself says it.
PACKAGE_FILES := $(TARGET)/package
define package_files
@rm -rf $(PACKAGE_FILES)
@mkdir -p $(PACKAGE_FILES)/completions
@$(1) manual $(PACKAGE_FILES)/man
@for shell in bash zsh fish; do $(1) completions $$shell > $(PACKAGE_FILES)/completions/$$shell || exit 1; done
@$(1) links $(PACKAGE_FILES)/links --program namewire
@rm $(PACKAGE_FILES)/links/nfdc # an alternative, by the scripts of the package namewire
@mkdir $(PACKAGE_FILES)/nfd
@for name in start stop status; do \
	sed 's|@SYSCONFDIR@|/etc|' packaging/nfd/nfd-$$name > $(PACKAGE_FILES)/nfd/nfd-$$name || exit 1; \
done
endef
package-files: build
	$(call package_files,$(NAMEWIRE))

PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
UNITS ?= $(if $(filter /usr,$(PREFIX)),/lib/systemd/system,/etc/systemd/system)
INSTALLED := $(DESTDIR)$(PREFIX)

install: package-files
	install -D --strip -m 755 $(NAMEWIRE) $(INSTALLED)/bin/namewire
	install -D -m 644 -t $(INSTALLED)/share/man/man1 $(PACKAGE_FILES)/man/*.1
	install -D -m 644 $(PACKAGE_FILES)/completions/bash $(INSTALLED)/share/bash-completion/completions/namewire
	install -D -m 644 $(PACKAGE_FILES)/completions/zsh $(INSTALLED)/share/zsh/site-functions/_namewire
	install -D -m 644 $(PACKAGE_FILES)/completions/fish $(INSTALLED)/share/fish/vendor_completions.d/namewire.fish
	install -d $(DESTDIR)$(UNITS)
	sed 's|/usr/bin/namewire|$(PREFIX)/bin/namewire|; s|/etc/namewire|$(SYSCONFDIR)/namewire|' \
		packaging/systemd/namewire.service > $(DESTDIR)$(UNITS)/namewire.service
	install -m 644 packaging/socket/namewire.socket $(DESTDIR)$(UNITS)/namewire.socket
	[ -e $(DESTDIR)$(SYSCONFDIR)/namewire/namewire.toml ] || \
		install -D -m 644 packaging/namewire.toml $(DESTDIR)$(SYSCONFDIR)/namewire/namewire.toml
	@echo 'The service runs as user ndn: useradd --system ndn; systemctl enable --now namewire'

# The names that scripts written for NFD type. What other packages have under one of them stays.
install-nfd: install
	$(NAMEWIRE) links $(INSTALLED)/bin --program namewire
	@for name in start stop status; do \
		to=$(INSTALLED)/bin/nfd-$$name; \
		if [ -e $$to ] && ! grep -q "NFD's script of this name" $$to; then echo "$$to belongs to another package, and stays"; \
		else sed 's|@SYSCONFDIR@|$(SYSCONFDIR)|' packaging/nfd/nfd-$$name > $$to && chmod 755 $$to; fi; \
	done
	[ -e $(DESTDIR)$(SYSCONFDIR)/ndn/nfd.conf.sample ] || \
		install -D -m 644 packaging/nfd/nfd.conf.sample $(DESTDIR)$(SYSCONFDIR)/ndn/nfd.conf.sample

uninstall-nfd:
	[ ! -e $(NAMEWIRE) ] || $(NAMEWIRE) links $(INSTALLED)/bin --program namewire --remove
	@for name in start stop status; do \
		to=$(INSTALLED)/bin/nfd-$$name; \
		if grep -qs "NFD's script of this name" $$to; then rm -f $$to; fi; \
	done

# The configuration stays.
uninstall:
	rm -f $(INSTALLED)/bin/namewire $(INSTALLED)/share/man/man1/namewire.1 $(INSTALLED)/share/man/man1/namewire-*.1 \
		$(INSTALLED)/share/bash-completion/completions/namewire $(INSTALLED)/share/zsh/site-functions/_namewire \
		$(INSTALLED)/share/fish/vendor_completions.d/namewire.fish $(DESTDIR)$(UNITS)/namewire.service $(DESTDIR)$(UNITS)/namewire.socket

# It removes packages of other versions in target/debian. The debug symbols go into a second package, namewire-dbgsym.
CARGO_DEB := --package namewire-cli --no-build --quiet
deb: package-files
	@tools/setup.sh deb
	.tools/bin/cargo-deb $(CARGO_DEB) --dbgsym --output $(TARGET)/debian/
	.tools/bin/cargo-deb $(CARGO_DEB) --variant nfd --output $(TARGET)/debian/

# Part of `make system`.
TRIED := $(TARGET)/installed
test-install:
	$(call say,test-install: installed into a folder and removed again, only the configuration stays)
	@rm -rf $(TRIED)
	@$(MAKE) --no-print-directory install DESTDIR=$(TRIED)
	@$(TRIED)/usr/local/bin/namewire config check $(TRIED)/etc/namewire/namewire.toml
	@grep -q '^ExecStart=/usr/local/bin/namewire ' $(TRIED)/etc/systemd/system/namewire.service
	@test -s $(TRIED)/usr/local/share/man/man1/namewire-run.1
	@$(MAKE) --no-print-directory uninstall DESTDIR=$(TRIED)
	@test "$$(find $(TRIED) -type f)" = $(TRIED)/etc/namewire/namewire.toml
	@mkdir -p $(TRIED)/usr/local/bin && echo 'of another package' > $(TRIED)/usr/local/bin/nfd-stop
	@$(MAKE) --no-print-directory install-nfd DESTDIR=$(TRIED)
	@HOME=$(TRIED) $(TRIED)/usr/local/bin/ndnsec-key-gen /localhost/operator | HOME=$(TRIED) $(TRIED)/usr/local/bin/ndnsec-cert-install -
	@HOME=$(TRIED) $(TRIED)/usr/local/bin/ndnsec list -k | grep -q /localhost/operator/KEY
	@$(TRIED)/usr/local/bin/nfdc -V && sh -n $(TRIED)/usr/local/bin/nfd-start
	@$(NAMEWIRE) config check --nfd-conf $(TRIED)/etc/ndn/nfd.conf.sample
	@$(MAKE) --no-print-directory uninstall-nfd uninstall DESTDIR=$(TRIED)
	@test "$$(ls $(TRIED)/usr/local/bin)" = nfd-stop
	@grep -q 'of another package' $(TRIED)/usr/local/bin/nfd-stop

# Part of `make system`. Status 3: what it needs cannot be had here, as it has said.
test-deb: package-files
	$(call say,test-deb: the packages in a bare root: install, forward, upgrade, remove; the names of NFD)
	@tools/setup.sh deb
	.tools/bin/cargo-deb $(CARGO_DEB) --strip --fast --deb-version 0.0.9 --output $(TARGET)/debian-older/
	@$(MAKE) --no-print-directory deb
	@tools/setup.sh bare-root
	@packaging/test_deb.py $(TARGET)/debian-older/*.deb $(TARGET)/debian/namewire_*.deb $(TARGET)/debian/*.ddeb \
		$(TARGET)/debian/namewire-nfd_*.deb $(TARGET)/bare-root || [ $$? = 3 ]

# The version of the package and of the image.
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)

CARGO_RPM := --package crates/cli
rpm: package-files
	@tools/setup.sh rpm
	@install --strip $(NAMEWIRE) $(PACKAGE_FILES)/namewire
	@mkdir -p $(TARGET)/rpm
	.tools/bin/cargo-generate-rpm $(CARGO_RPM) --output $(TARGET)/rpm/
	.tools/bin/cargo-generate-rpm $(CARGO_RPM) --variant nfd --output $(TARGET)/rpm/

# Part of `make system`. Status 3: what it needs cannot be had here, as it has said.
test-rpm: deb rpm
	$(call say,test-rpm: the rpm package: the files of the Debian package; in a bare root: install forward upgrade remove)
	@mkdir -p $(TARGET)/rpm-older
	.tools/bin/cargo-generate-rpm $(CARGO_RPM) --set-metadata 'version = "0.0.9"' --output $(TARGET)/rpm-older/
	@tools/setup.sh bare-root
	@packaging/test_rpm.py $(TARGET)/rpm-older/*.rpm $(TARGET)/rpm/namewire-$(VERSION)-*.rpm \
		$(TARGET)/debian/namewire_*.deb $(TARGET)/rpm/namewire-nfd-$(VERSION)-*.rpm $(TARGET)/bare-root || [ $$? = 3 ]

# Programs that need no library, in a folder of their own, because their target is another.
STATIC := $(TARGET)/static
static_program = $(STATIC)/$(1)-unknown-linux-musl/release/namewire
MACHINE := $(shell uname -m)
static-%:
	@tools/setup.sh static-$*
	packaging/static.sh $* $(STATIC) build --release --package namewire-cli

# Every time in what people download is that of the last commit.
AT_COMMIT = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null || echo 0))

container: export SOURCE_DATE_EPOCH := $(AT_COMMIT)
container: static-$(MACHINE)
	packaging/write_image.py $(call static_program,$(MACHINE)) $(MACHINE) $(VERSION) $(TARGET)/container/namewire.tar

# What people download. Two builds of a commit are equal. Another machine's processor is left out where its program cannot
# be built (status 3 of the set-up, which says why); manual pages and completions come from this machine's program.
DIST := $(TARGET)/dist
OTHER_MACHINES := $(filter-out $(MACHINE),x86_64 aarch64)
dist: export SOURCE_DATE_EPOCH := $(AT_COMMIT)
dist: static-$(MACHINE)
	@tools/setup.sh deb rpm python sbom
	@rm -rf $(DIST)
	$(call package_files,$(call static_program,$(MACHINE)))
	packaging/dist.sh $(call static_program,$(MACHINE)) $(MACHINE) $(VERSION) $(TARGET)
	@for machine in $(OTHER_MACHINES); do \
		if tools/setup.sh static-$$machine; then \
			$(MAKE) --no-print-directory static-$$machine && \
			packaging/dist.sh $(call static_program,$$machine) $$machine $(VERSION) $(TARGET) || exit 1; \
		else [ $$? = 3 ] || exit 1; fi; \
	done
	@cd $(DIST) && sha256sum namewire* > SHA256SUMS && cat SHA256SUMS

# Part of `make system`. Status 3: what it needs cannot be had here, as it has said.
test-dist: dist
	$(call say,test-dist: the same again in another folder is equal; installed into a bare root: it runs; the workflow attaches it)
	@SOURCE_DATE_EPOCH=$(AT_COMMIT) packaging/test_reproducible.sh $(DIST) $(TARGET)/dist-again
	@tools/setup.sh bare-root
	@tools/setup.sh arm64 || [ $$? = 3 ]
	@packaging/test_dist.py $(DIST) $(TARGET)/bare-root
	@packaging/test_workflows.py $(DIST)

# Part of `make system`. Status 3: what it needs cannot be had here, as it has said.
lint-workflows:
	$(call say,lint-workflows: workflow files and the scripts of packaging)
	@if tools/setup.sh workflows; then \
		shellcheck packaging/*.sh && .tools/actionlint/bin/actionlint; \
	else [ $$? = 3 ]; fi

# Part of `make system`. Status 3: what it needs cannot be had here, as it has said.
test-container:
	$(call say,test-container: the image: its size; a container of it is healthy forwards and ends)
	@if tools/setup.sh static-$(MACHINE); then \
		$(MAKE) --no-print-directory container && \
		packaging/test_container.py $(TARGET)/container/namewire.tar $(TARGET)/container/tried || [ $$? = 3 ]; \
	else [ $$? = 3 ]; fi

# Part of `make system`, after test-container: the pod's container is of that image.
test-kubernetes:
	$(call say,test-kubernetes: the manifests keep to the schemas of Kubernetes; the router runs as its pod says)
	@if tools/setup.sh kubernetes; then \
		.tools/kubernetes/bin/python packaging/test_kubernetes.py $(TARGET)/container/namewire.tar $(TARGET)/kubernetes; \
	else [ $$? = 3 ]; fi

# A cross build, and unit tests of the crates below everything else, by an emulator. The test left out needs huge
# pages by MAP_HUGETLB, which qemu-aarch64 refuses (EINVAL, qemu 7.2).
arm64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER := qemu-aarch64
arm64:
	@tools/setup.sh arm64
	@$(MAKE) --no-print-directory static-aarch64
	packaging/static.sh aarch64 $(STATIC) test --lib \
		--package namewire-packet --package namewire-tables --package namewire-shares -- --skip explicit_huge_pages_grows
	packaging/test_arm64.py $(call static_program,aarch64)

# Licences, duplicates and sources need only crates; advisories need a database that cargo-deny fetches by git.
deny:
	$(call say,deny: licences duplicates and sources of the crates; advisories)
	@tools/setup.sh deny
	@cargo fetch --locked --quiet
	.tools/bin/cargo-deny --offline check --hide-inclusion-graph licenses bans sources
	@if .tools/bin/cargo-deny fetch db; then .tools/bin/cargo-deny check advisories; \
	else echo 'deny: advisories are not checked here: the database of RustSec cannot be fetched'; fi

# The crates for other people's programs.
LIBRARIES := --package namewire-packet --package namewire-security --package namewire-client --package namewire-ndncert \
	--package namewire-certificates
test-crates:
	$(call say,test-crates: packages for crates.io; documentation; changes that break programs)
	@tools/setup.sh rust semver
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps $(LIBRARIES)
	cargo package --locked --quiet $(LIBRARIES)
	.tools/bin/cargo-semver-checks semver-checks --baseline-rev $$(cat tools/semver-baseline) $(LIBRARIES)

book:
	@tools/setup.sh book
	.tools/bin/mdbook build docs --dest-dir $(TARGET)/book
	@echo 'open $(TARGET)/book/index.html'

sbom:
	$(call say,sbom: the crates in the program)
	@tools/setup.sh python sbom
	@packaging/sbom.py $(TARGET)/sbom/namewire.cdx.json $(TARGET)/sbom/sources

# A router with DPDK, and the bare forwarder beside which the lab measures it.
dpdk:
	@tools/setup.sh rust
	@tools/setup.sh dpdk
	cargo build --release --locked --features dpdk --target-dir $(TARGET)/dpdk --package namewire-cli
	cargo build --release --locked --features dpdk --target-dir $(TARGET)/dpdk --package namewire-dpdk --example forward

# The record goes to out/router-sockets.json; `namewire-lab list` names all experiments.
bench: build lab
	$(call say,bench: router-sockets)
	$(TARGET)/release/namewire-lab run router-sockets --out $(CURDIR)/out

# Experiments whose code has changed since their record run again: hours, on a quiet machine. INPUTS is the folder with the
# names, traces and graphs that the records name.
records: build lab
	$(call say,records: the stale records of lab/record again)
	$(TARGET)/release/namewire-lab records --renew $(if $(INPUTS),--inputs $(INPUTS))
	$(TARGET)/release/namewire-lab papers --write lab/README.md

# Each commit to code that a record measured makes that record stale: part of `make system`, not of `make test`.
records-check: lab
	$(call say,records-check: no record is older than the code that it measured)
	$(TARGET)/release/namewire-lab records --check lab/README.md

papers: lab
	$(call say,papers: every number against the papers where they are; the table of lab/README.md from the records)
	$(TARGET)/release/namewire-lab papers --check
	$(TARGET)/release/namewire-lab papers --write lab/README.md

# The program of the demos: built in a fraction of the time (profile `quick` in Cargo.toml), a little slower.
QUICK := $(TARGET)/quick/namewire
quick:
	@[ -x $(QUICK) ] || tools/setup.sh estimate-quick
	@tools/setup.sh rust
	cargo build --profile quick --locked --package namewire-cli

demo: quick
	@tools/setup.sh demo
	@tools/setup.sh python-ndn || true # the demo says what it leaves out
	@NAMEWIRE=$(QUICK) tools/demo.sh

demo-tags: quick
	@tools/setup.sh demo
	@NAMEWIRE=$(QUICK) tools/demo_tags.sh

# Cheap checks come first. The steps run one after the other, also under `make -j`: they share the build directory, and
# one step alone keeps the cores busy.
test:
	@for step in tidy lint unit budget loom 'fuzz SECONDS=$(TEST_FUZZ_SECONDS)' interop; do \
		began=$$(date +%s); \
		$(MAKE) --no-print-directory $$step || exit 1; \
		echo "== $${step%% *} took $$(($$(date +%s) - began)) s"; \
	done
	$(call say,all checks passed)

tidy:
	$(call say,tidy: documents and house rules)
	@tools/setup.sh python
	@tools/tidy.py --self-test
	@tools/tidy.py
	@tools/setup_test.py
	@fuzz/run_test.py
	@packaging/test_installer.py

# Status 3: DPDK cannot be had here, as the set-up has said.
dpdk-libraries:
	@tools/setup.sh rust
	@tools/setup.sh dpdk || [ $$? = 3 ]

# DPDK ports are a feature of one build of everything: a second build of the workspace would take minutes.
WITH_DPDK = $(shell pkg-config --exists 'libdpdk >= 22.11' 2>/dev/null && echo --features namewire-router/dpdk)

lint: dpdk-libraries
	$(call say,lint: rustfmt and clippy; a warning is an error)
	cargo fmt --all --check
	cargo fmt --check --manifest-path fuzz/Cargo.toml
	cargo clippy --locked --workspace $(WITH_DPDK) --all-targets -- -D warnings

# The routers of `make test` are of the tests' own build; `make system` runs the release build.
unit: dpdk-libraries
	$(call say,unit: unit property simulation and whole-router tests)
	@tools/setup.sh python redis
	@tools/setup.sh python-ndn || true # the demo, which a test runs, says what it leaves out
	tools/run_tests.py --jobs 2 --locked --workspace $(WITH_DPDK)

# Part of `make system`. Status 3 of the set-up: what it needs cannot be had here, as it has said.
test-prometheus: build
	$(call say,test-prometheus: a real Prometheus reads two routers; the dashboard for Grafana; the alerts)
	@tools/setup.sh prometheus && NAMEWIRE=$(NAMEWIRE) interop/.venv-prometheus/bin/python interop/prometheus.py || [ $$? = 3 ]

# Debian's Python: Mininet is one of Debian's packages, not one of a virtual environment.
test-mininet: build
	$(call say,test-mininet: routers in the hosts of an emulated network as scripts for NFD drive them)
	@tools/setup.sh mininet && NAMEWIRE=$(NAMEWIRE) /usr/bin/python3 interop/emulation.py || [ $$? = 3 ]

# NFD and ndnd are not in Debian: NFD=/path/to/nfd NDND=/path/to/ndnd puts them on the path.
test-faults: build
	$(call say,test-faults: traceroute and doctor name twenty faults on a path of ten routers)
	@tools/setup.sh python
	@tools/setup.sh faketime && python3 interop/faults.py --program $(NAMEWIRE) || [ $$? = 3 ]

budget:
	$(call say,budget: no stage of a packet takes more instructions than lab/budget.json allows)
	@tools/setup.sh rust
	cargo run --release --locked --package namewire-lab --no-default-features --bin namewire-budget -- lab/budget.json

loom:
	$(call say,loom: every thread interleaving of the rings between workers and of FIB readers and writer)
	@tools/setup.sh rust
	cargo test --release --locked --manifest-path crates/worker/loom/Cargo.toml --target-dir $(TARGET)/loom
	cargo test --release --locked --manifest-path crates/tables/loom/Cargo.toml --target-dir $(TARGET)/loom

fuzz:
	$(call say,fuzz: each target for $(SECONDS) s)
	@tools/setup.sh rust cxx python
	@fuzz/run.py --seconds $(SECONDS)

interop: dpdk-libraries
	$(call say,interop: python-ndn, NDNts, ndn-python-repo through a running router)
	@tools/setup.sh interop
	cargo build --locked --workspace $(WITH_DPDK) --bins --examples
	@NAMEWIRE=$(TARGET)/debug/namewire interop/run.py

# Not part of `make test`: takes a night.
EXECUTIONS := 100000000
HOURS := 10
fuzz-long:
	$(call say,fuzz-long: $(EXECUTIONS) inputs of parsers within $(HOURS) hours)
	@tools/setup.sh rust cxx python
	@fuzz/run.py --executions $(EXECUTIONS) --hours $(HOURS)

# Over the crates whose files may contain `unsafe` (docs/unsafe.md).
sanitize:
	$(call say,sanitize: address sanitizer)
	@tools/sanitize.sh address
	$(call say,sanitize: thread sanitizer)
	@tools/sanitize.sh thread
	$(call say,sanitize: Miri)
	@tools/sanitize.sh miri

# Not part of `make test`: it needs root, and takes some twenty minutes.
SOAK_SECONDS := 300
system: build
	$(call say,system: links and routers that die in the middle of a fetch)
	@tools/setup.sh system
	NAMEWIRE_UNDER_TEST=$(NAMEWIRE) cargo test --locked --package namewire-cli --test failover -- --include-ignored --nocapture --test-threads 1
	$(call say,system: the live page in a browser)
	@tools/setup.sh browser
	@crates/observe/browser/run.sh $(TARGET)/browser $(TARGET)/browser/pictures || [ $$? = 3 ]
	$(call say,system: the report of the kept records in a browser)
	cargo run --release --locked --package namewire-lab -- report lab/record --out $(TARGET)/report
	@REPORT=$(TARGET)/report/report.html crates/observe/browser/run.sh $(TARGET)/browser $(TARGET)/browser/pictures \
		lab/browser/report_test.mjs || [ $$? = 3 ]
	@$(MAKE) --no-print-directory test-prometheus
	@$(MAKE) --no-print-directory test-mininet
	@$(MAKE) --no-print-directory test-faults
	@$(MAKE) --no-print-directory test-install
	@$(MAKE) --no-print-directory test-deb
	@$(MAKE) --no-print-directory test-rpm
	@$(MAKE) --no-print-directory test-dist
	@$(MAKE) --no-print-directory lint-workflows
	@$(MAKE) --no-print-directory test-container
	@$(MAKE) --no-print-directory test-kubernetes
	@$(MAKE) --no-print-directory deny
	@$(MAKE) --no-print-directory sbom
	@$(MAKE) --no-print-directory test-crates
	$(call say,system: the lines of the guide that turn DPDK on)
	@if tools/setup.sh dpdk; then \
		$(MAKE) --no-print-directory dpdk && \
		NAMEWIRE_DPDK=$(TARGET)/dpdk/release cargo test --locked --package namewire-cli --test commands transports_guide::; \
	fi
	$(call say,system: a repository on a full disk, killed 1000 times, and with 10000 damaged files)
	cargo test --locked --package namewire-cli --test commands -- --ignored repo::
	NAMEWIRE_KILL_ROUNDS=1000 cargo test --locked --package namewire-repo --test kill
	NAMEWIRE_DAMAGED_STORES=10000 cargo test --locked --package namewire-repo --test damage
	$(call say,system: mixed core routers, hostile hosts, 10^7 Interests each)
	NAMEWIRE_SIM_INTERESTS=10000000 cargo test --release --locked --package namewire-sim --test networks \
		-- --nocapture mixed_cores:: hostile::
	$(call say,system: every FIB design beside the default, 10^6 Interests)
	NAMEWIRE_FIB_INTERESTS=1000000 cargo test --release --locked --package namewire-sim --test networks \
		-- --nocapture fib_forwarding::
	$(call say,system: two hundred routers of TagNet)
	NAMEWIRE_SIM_ROUTERS=200 cargo test --release --locked --package namewire-sim --test networks -- --nocapture tagnet::many_routers
	$(call say,system: a simulated day of churn; then SOAK_SECONDS of it on sockets)
	NAMEWIRE_SIM_HOURS=24 cargo test --release --locked --package namewire-sim --test soak -- --nocapture
	NAMEWIRE_UNDER_TEST=$(NAMEWIRE) NAMEWIRE_SOAK_SECONDS=$(SOAK_SECONDS) cargo test --locked --package namewire-cli --test soak \
		-- --nocapture
	$(call say,system: 20 upgrades in a row at full load)
	NAMEWIRE_UNDER_TEST=$(NAMEWIRE) NAMEWIRE_UPGRADES=20 cargo test --locked --package namewire-cli --test soak \
		-- --nocapture upgrades::
	@$(MAKE) --no-print-directory records-check

clean:
	@if command -v cargo >/dev/null; then cargo clean; fi
	rm -rf fuzz/target fuzz/artifacts fuzz/corpus-grown

distclean: clean
	rm -rf .toolchain interop/.venv interop/.venv-prometheus interop/node_modules
