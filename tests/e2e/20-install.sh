#!/bin/bash
# SPDX-License-Identifier: MIT
# Installed below DESTDIR, the programs find each other; uninstall removes them.
. "$(dirname "$0")/lib.sh"

install=(make -C "$ROOT" DESTDIR="$T/root" PREFIX=/opt/tt
	VARIANT="$(basename "$TTERM_BIN")" BUILD_ROOT="$(dirname "$TTERM_BIN")")
export MAKEFLAGS=${TTERM_MAKEFLAGS:-}
mkdir -p root/opt/tt/bin
touch root/opt/tt/bin/other
expect 0 "${install[@]}" install
for file in bin/tterm bin/tdrive bin/tstat share/doc/tterm/LICENSE \
	share/doc/tterm/CHANGES.md share/tterm/examples/quickstart.yaml; do
	[ -s "root/opt/tt/$file" ] || fail "$file is not installed"
done

# Without the build's folder in PATH.
PATH=${PATH#"$TTERM_BIN:"}
cp root/opt/tt/share/tterm/examples/quickstart.yaml scenario.yaml
expect 0 root/opt/tt/bin/tterm --check scenario.yaml
short=(--set "scenario=$NAME")
for i in 0 1; do
	short+=(--set "phases.$i.warmup=100ms" --set "phases.$i.duration=300ms")
done
root/opt/tt/bin/tterm "${short[@]}" scenario.yaml >out 2>err
status=$?
# 3 is for doubts: so short a run may have some.
[ $status -eq 0 ] || [ $status -eq 3 ] || fail "the installed tterm: $status"
json results/*/result.json '[.phases[].workers_total | .full.count + .resumed.count > 0] | all'

expect 0 "${install[@]}" uninstall
left=$(cd root && find . -type f)
[ "$left" = ./opt/tt/bin/other ] || fail "uninstall left: $left"
[ ! -e root/opt/tt/share/tterm ] || fail "uninstall left a folder"
