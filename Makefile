# SPDX-License-Identifier: MIT
# tterm: see `make help`. One Makefile, no recursion; all that is built lies in
# $(BUILD_ROOT)/$(VARIANT).
VARIANT ?= release
BUILD_ROOT ?= build
PREFIX ?= /usr/local
SCENARIO ?= examples/quickstart.yaml
B := $(BUILD_ROOT)/$(VARIANT)

ifeq ($(filter $(VARIANT),release debug asan tsan),)
$(error VARIANT=$(VARIANT) is not known; it is release, debug, asan or tsan)
endif

# As many jobs as CPUs unless the caller says otherwise (the command line wins).
ifeq ($(filter -j%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif

# once(name, command): $(name) is the command's output, taken at its first use.
# Not while the Makefile is read: `make run` may have to install pkg-config first.
once = $(1) = $$(eval $(1) := $$$$(shell $(2)))$$($(1))

PKGS := openssl liburing libcyaml yaml-0.1 jansson
$(eval $(call once,PKG_CFLAGS,pkg-config --cflags $(PKGS)))
$(eval $(call once,PKG_LIBS,pkg-config --libs $(PKGS)))
$(eval $(call once,CHECK_CFLAGS,pkg-config --cflags check))
$(eval $(call once,CHECK_LIBS,pkg-config --libs check))
$(eval $(call once,CC_VERSION,$(CC) --version | head -n 1))
$(eval $(call once,PKG_VERSIONS,pkg-config --modversion $(PKGS)))
ifeq ($(COMMIT),)
COMMIT := $(shell git --no-optional-locks -c safe.directory='$(CURDIR)' \
	describe --always --dirty 2>/dev/null || echo unknown)
endif

WARN := -Wall -Wextra -Wconversion -Wshadow -Wpointer-arith -Wcast-align \
	-Wwrite-strings -Wstrict-prototypes -Wmissing-prototypes -Wundef \
	-Wredundant-decls -Wnested-externs -Wformat=2
CFLAGS_release := -O2 -g
CFLAGS_debug := -O0 -g3
CFLAGS_asan := -O1 -g -fsanitize=address,undefined -fno-omit-frame-pointer \
	-fno-sanitize-recover=undefined
CFLAGS_tsan := -O1 -g -fsanitize=thread
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -I. $(WARN) \
	$(if $(filter-out 0,$(WERROR)),-Werror) \
	$(CFLAGS_$(VARIANT)) $(PKG_CFLAGS) $(CPPFLAGS) $(CFLAGS)
ALL_LDFLAGS = $(CFLAGS_$(VARIANT)) $(LDFLAGS)
LIBS = $(PKG_LIBS) -lm

# Sanitizers end the program that they find fault with; leaks count.
ifeq ($(VARIANT),asan)
export ASAN_OPTIONS ?= detect_leaks=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS ?= print_stacktrace=1:halt_on_error=1
endif
ifeq ($(VARIANT),tsan)
export TSAN_OPTIONS ?= halt_on_error=1
endif

# V=1 shows whole commands; otherwise a word and the file.
quiet = $(if $(filter 1,$(V)),,@printf '  %-5s %s\n' '$(1)' '$(2)';)

src = $(wildcard $(1)/*.c)
obj = $(patsubst %.c,$(B)/%.o,$(1))

SHM_OBJ := $(call obj,$(call src,shm))
CONFIG_OBJ := $(call obj,$(call src,config))
WORKERS_OBJ := $(call obj,$(call src,workers))
TERMINATOR_OBJ := $(call obj,$(call src,terminator))
TOOLS_OBJ := $(call obj,$(call src,tools))
TDRIVE_OBJ := $(call obj,$(wildcard tools/tdrive*.c))
TSTAT_OBJ := $(call obj,$(wildcard tools/tstat*.c))
UNIT := $(patsubst %.c,$(B)/%,$(wildcard tests/unit/*/check_*.c))
PROGRAMS := tterm tdrive tstat
C_FILES := $(wildcard shm/*.[ch] config/*.[ch] workers/*.[ch] terminator/*.[ch] \
	tools/*.[ch] tests/unit/*/*.[ch])

all: $(PROGRAMS:%=$(B)/%)

# ---- what is missing on this system: only for those who ask for a result ----
DEPS := $(if $(filter run,$(MAKECMDGOALS)),deps-run) \
	$(if $(filter test check unit e2e,$(MAKECMDGOALS)),deps-test) \
	$(if $(filter lint,$(MAKECMDGOALS)),deps-lint)

deps: deps-run
deps-run deps-test deps-lint: deps-%:
	@CC='$(CC)' bash tools/deps.sh $*

# ---- build ----
# Stamps, written anew only when what they hold changes: the flags (every object
# depends on them), the commit (one object does) and the list of objects (the
# archives do: a file that is gone must leave them).
stamp = @mkdir -p $(@D) && printf '%s\n' '$(subst ','\'',$(1))' >$@.new && \
	if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
$(B)/flags: FORCE | $(DEPS)
	$(call stamp,$(CC) $(CC_VERSION) $(PKG_VERSIONS) $(ALL_CFLAGS) \
		$(ALL_LDFLAGS) $(LIBS))
$(B)/commit: FORCE
	$(call stamp,$(COMMIT))
$(B)/objects: FORCE
	$(call stamp,$(SHM_OBJ) $(CONFIG_OBJ) $(WORKERS_OBJ) \
		$(TERMINATOR_OBJ) $(TOOLS_OBJ))

$(B)/shm/base.o: $(B)/commit
CFLAGS_shm/base = -DTTERM_COMMIT='"$(COMMIT)"'
$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(ALL_CFLAGS) $(CFLAGS_$*) \
		$(if $(filter tests/%,$*),$(CHECK_CFLAGS)) -MMD -MP -c -o $@ $<

$(B)/libshm.a: $(SHM_OBJ)
$(B)/libconfig.a: $(CONFIG_OBJ)
$(B)/libworkers.a: $(WORKERS_OBJ)
$(B)/libterminator.a: $(TERMINATOR_OBJ)
$(B)/libtools.a: $(TOOLS_OBJ)
$(B)/lib%.a: $(B)/objects
	@rm -f $@
	$(call quiet,AR,$@)$(AR) rcs $@ $(filter %.o,$^)

$(B)/tterm: $(TERMINATOR_OBJ) $(B)/libworkers.a $(B)/libconfig.a $(B)/libshm.a
$(B)/tdrive: $(TDRIVE_OBJ) $(B)/libconfig.a $(B)/libshm.a
$(B)/tstat: $(TSTAT_OBJ) $(B)/libconfig.a $(B)/libshm.a
$(B)/tterm $(B)/tdrive $(B)/tstat: $(B)/flags
	$(call quiet,LINK,$@)$(CC) $(ALL_LDFLAGS) -o $@ \
		$(filter %.o %.a,$^) $(LIBS)

# Unit tests: tests/unit/FOLDER/check_X.c links what FOLDER may link.
unit_of = $(filter $(B)/tests/unit/$(1)/%,$(UNIT))
$(call unit_of,shm): $(B)/libshm.a
$(call unit_of,config): $(B)/libconfig.a $(B)/libshm.a
$(call unit_of,workers): $(B)/libworkers.a $(B)/libconfig.a $(B)/libshm.a
$(call unit_of,terminator): $(B)/libterminator.a $(B)/libworkers.a \
	$(B)/libconfig.a $(B)/libshm.a
$(call unit_of,tools): $(B)/libtools.a $(B)/libconfig.a $(B)/libshm.a
$(UNIT): $(B)/%: $(B)/%.o $(B)/flags
	$(call quiet,LINK,$@)$(CC) $(ALL_LDFLAGS) -o $@ \
		$(filter %.o,$^) $(filter %.a,$^) $(CHECK_LIBS) $(LIBS)

# ---- run and test ----
run: all
	@$(B)/tterm $(SCENARIO)

run_unit = bash tests/unit.sh $(UNIT)
# A test that calls make again gives it the same variables.
run_e2e = TTERM_BIN='$(abspath $(B))' TTERM_VARIANT=$(VARIANT) \
	TTERM_MAKEFLAGS='-- $(subst ','\'',$(MAKEOVERRIDES))' \
	bash tests/e2e/run.sh $(T)

build-tests: $(UNIT)

check unit: $(UNIT)
	@$(run_unit)

e2e: all
	@$(run_e2e)

# One after the other, for the end-to-end tests measure; all of them, though one
# part fails.
test: all $(UNIT)
	@rc=0; $(run_unit) || rc=1; \
	bash tests/includes.sh || rc=1; bash tests/tables.sh || rc=1; \
	$(run_e2e) || rc=1; exit $$rc

lint: all
	@CC='$(CC)' TTERM_BIN='$(abspath $(B))' BUILD_ROOT='$(BUILD_ROOT)' \
		bash tests/lint.sh

# Pages that the tables make: committed, and kept current by `make lint`.
docs: $(B)/tterm
	$(B)/tterm --describe options >config/REFERENCE.md
	$(B)/tterm --describe counters >shm/COUNTERS.md
	$(B)/tterm --describe states >workers/STATES.md

format:
	clang-format -i $(C_FILES)

bench:
	@echo "make bench: there is no benchmark yet; 'make run' measures this" \
		"machine, and SCENARIO=FILE.yaml says what" >&2; exit 2

# ---- install ----
BINDIR := $(DESTDIR)$(PREFIX)/bin
DOCDIR := $(DESTDIR)$(PREFIX)/share/doc/tterm
DATADIR := $(DESTDIR)$(PREFIX)/share/tterm
MANDIR := $(DESTDIR)$(PREFIX)/share/man
DOCS := $(wildcard README.md CHANGES.md LICENSE config/REFERENCE.md \
	shm/COUNTERS.md workers/STATES.md)
EXAMPLES := $(wildcard examples/*.yaml)
MAN1 := $(wildcard man/*.1)
MAN5 := $(wildcard man/*.5)

install: all
	install -d '$(BINDIR)' '$(DOCDIR)' '$(DATADIR)/examples'
	install -m 755 $(PROGRAMS:%=$(B)/%) '$(BINDIR)'
	install -m 644 $(DOCS) '$(DOCDIR)'
	install -m 644 $(EXAMPLES) '$(DATADIR)/examples'
	$(if $(MAN1),install -D -m 644 -t '$(MANDIR)/man1' $(MAN1))
	$(if $(MAN5),install -D -m 644 -t '$(MANDIR)/man5' $(MAN5))

# Removes what install lays down, and the folders only if nothing else is there.
uninstall:
	rm -f $(PROGRAMS:%='$(BINDIR)/%') \
		$(patsubst %,'$(DOCDIR)/%',$(notdir $(DOCS))) \
		$(patsubst %,'$(DATADIR)/%',$(EXAMPLES)) \
		$(patsubst man/%,'$(MANDIR)/man1/%',$(MAN1)) \
		$(patsubst man/%,'$(MANDIR)/man5/%',$(MAN5))
	for d in '$(DOCDIR)' '$(DATADIR)/examples' '$(DATADIR)'; do \
		[ ! -d "$$d" ] || rmdir --ignore-fail-on-non-empty "$$d"; done

clean:
	rm -rf $(foreach v,release debug asan tsan lint,'$(BUILD_ROOT)/$(v)')
	[ ! -d '$(BUILD_ROOT)' ] || \
		rmdir --ignore-fail-on-non-empty '$(BUILD_ROOT)'

define HELP
make run        install what is missing, build, and measure this machine
                  SCENARIO=FILE.yaml   another scenario than the quickstart
make test       install what is missing, build, run unit and end-to-end tests
make all        build tterm, tdrive and tstat (the default)
make check      unit tests only (also: make unit)
make e2e        end-to-end tests only; T="10 21" chooses some by number or name
make lint       formatting, static analysis, include arrows, generated pages
make docs       write the generated pages anew
make format     clang-format on all C files
make bench      not there yet: says what to use instead
make deps       install what is missing for building and running
make install    into PREFIX (/usr/local), below DESTDIR if that is set
make uninstall  remove what install put there
make clean      remove what was built
variables       VARIANT=release|debug|asan|tsan  CC=clang  WERROR=1  V=1 (show
                commands)  BUILD_ROOT=DIR (build)  CFLAGS, LDFLAGS (added)
endef
help:
	$(info $(HELP))@:

-include $(wildcard $(B)/*/*.d $(B)/tests/unit/*/*.d)
.PHONY: all run test build-tests check unit e2e lint docs format bench install uninstall \
	clean help deps deps-run deps-test deps-lint FORCE
.DELETE_ON_ERROR:
.SECONDARY:
