# SPDX-License-Identifier: MIT
# tterm: see `make help`. One Makefile, no recursion; objects in build/VARIANT/.
VARIANT ?= release
BUILD_ROOT ?= build
B := $(BUILD_ROOT)/$(VARIANT)
PREFIX ?= /usr/local
SCENARIO ?= examples/quickstart.yaml

PKGS := openssl liburing libcyaml yaml-0.1 jansson
COMMIT := $(shell git describe --always --dirty 2>/dev/null || echo unknown)

WARN := -Wall -Wextra -Wconversion -Wshadow -Wpointer-arith -Wcast-align \
	-Wwrite-strings -Wstrict-prototypes -Wmissing-prototypes -Wundef \
	-Wredundant-decls -Wnested-externs -Wformat=2
CFLAGS_release := -O2 -g
CFLAGS_debug := -O0 -g3
CFLAGS_asan := -O1 -g -fsanitize=address,undefined -fno-omit-frame-pointer \
	-fno-sanitize-recover=undefined
CFLAGS_tsan := -O1 -g -fsanitize=thread
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -I. $(WARN) $(WERROR) \
	$(CFLAGS_$(VARIANT)) $(shell pkg-config --cflags $(PKGS)) $(CFLAGS)
ALL_LDFLAGS = $(CFLAGS_$(VARIANT)) $(LDFLAGS)
LIBS = $(shell pkg-config --libs $(PKGS)) -lm

src = $(wildcard $(1)/*.c)
obj = $(patsubst %.c,$(B)/%.o,$(1))

SHM_OBJ := $(call obj,$(call src,shm))
CONFIG_OBJ := $(call obj,$(call src,config))
WORKERS_OBJ := $(call obj,$(call src,workers))
TERMINATOR_OBJ := $(call obj,$(call src,terminator))
TDRIVE_OBJ := $(call obj,$(wildcard tools/tdrive*.c))
TSTAT_OBJ := $(call obj,$(wildcard tools/tstat*.c))

all: $(B)/tterm $(B)/tdrive $(B)/tstat

$(B)/libshm.a: $(SHM_OBJ)
$(B)/libconfig.a: $(CONFIG_OBJ)
$(B)/libworkers.a: $(WORKERS_OBJ)
$(B)/lib%.a:
	@rm -f $@
	$(AR) rcs $@ $^

$(B)/tterm: $(TERMINATOR_OBJ) $(B)/libworkers.a $(B)/libconfig.a $(B)/libshm.a
$(B)/tdrive: $(TDRIVE_OBJ) $(B)/libconfig.a $(B)/libshm.a
$(B)/tstat: $(TSTAT_OBJ) $(B)/libconfig.a $(B)/libshm.a
$(B)/tterm $(B)/tdrive $(B)/tstat:
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -DTTERM_COMMIT='"$(COMMIT)"' -MMD -MP -c -o $@ $<

# Unit tests: tests/unit/FOLDER/check_X.c links what FOLDER may link.
CHECK_LIBS = $(shell pkg-config --libs check)
UNIT := $(patsubst %.c,$(B)/%,$(wildcard tests/unit/*/check_*.c))
$(filter $(B)/tests/unit/shm/%,$(UNIT)): $(B)/libshm.a
$(filter $(B)/tests/unit/config/%,$(UNIT)): $(B)/libconfig.a $(B)/libshm.a
$(filter $(B)/tests/unit/workers/%,$(UNIT)): $(B)/libworkers.a $(B)/libconfig.a $(B)/libshm.a
$(filter $(B)/tests/unit/tools/%,$(UNIT)): $(B)/libconfig.a $(B)/libshm.a
$(UNIT): $(B)/%: $(B)/%.o
	$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(CHECK_LIBS) $(LIBS)

unit: $(UNIT)
	@set -e; for t in $(UNIT); do $$t; done

-include $(wildcard $(B)/*/*.d $(B)/tests/unit/*/*.d)
.PHONY: all unit
.SECONDARY:
