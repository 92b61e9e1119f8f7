#!/bin/bash
# SPDX-License-Identifier: MIT
# The checks of include arrows and tables find what they are there to find.
. "$(dirname "$0")/lib.sh"

copy()
{
	rm -rf tree
	mkdir tree
	(cd "$ROOT" && find shm config workers terminator tools tests \
		-name '*.[ch]' -o -name '*.def') |
		tar -C "$ROOT" -T - -cf - | tar -C tree -xf -
}

# check STATUS CHECK, of the copy
check()
{
	expect "$1" env ROOT="$T/tree" bash "$ROOT/tests/$2"
}

# wrong CHECK FILE LINE MESSAGE: with LINE added to FILE, the check refuses it.
wrong()
{
	copy
	[ -e "tree/$2" ] || fail "there is no $2"
	echo "$3" >>"tree/$2"
	check 1 "$1"
	has err "$4"
}

copy
check 0 includes.sh
check 0 tables.sh
wrong includes.sh shm/base.c '#include "config/cfg.h"' 'shm/ may not include'
wrong includes.sh config/cfg.h '#include "workers/wrk.h"' 'config/ may not'
wrong includes.sh workers/wrk.h '#include "terminator/mst.h"' 'workers/ may not'
wrong includes.sh tools/tdrive_addr.c '#include "workers/wrk.h"' 'tools/ may not'
wrong includes.sh terminator/main.c '#include "workers/conn.h"' 'only wrk.h'
wrong includes.sh terminator/main.c '#include "mst.h"' 'from the root'
wrong includes.sh terminator/main.c '#include <liburing.h>' 'liburing is for'
wrong includes.sh shm/base.c '#include <openssl/ssl.h>' 'OpenSSL is for'
wrong includes.sh config/cfg.h '#include <cyaml/cyaml.h>' 'cyaml/cyaml.h is for'
wrong tables.sh shm/counters.def 'COUNTER(late, SUM, COUNT, INFO, BOTH, "x")' \
	'before its last row'
wrong tables.sh shm/counters.def 'GAUGE(other, "x")' 'GAUGE is not undefined'
wrong tables.sh shm/histograms.def 'HISTOGRAM(h, NS, BOTH, nothing, "x")' \
	'names nothing'
wrong tables.sh shm/histograms.def \
	'HISTOGRAM(connect_time, NS, DRIVER, conn_connected, "x")' 'twice'
