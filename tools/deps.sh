#!/bin/bash
# SPDX-License-Identifier: MIT
# Finds what is missing for a purpose and installs it with apt-get, or says what
# to install. Quick when nothing is missing: one pkg-config call, no apt.
#
#   tools/deps.sh run     what building and running needs
#   tools/deps.sh test    and what the tests need
#   tools/deps.sh lint    what building and linting needs
#   tools/deps.sh ci      all of it, and what the Debian 13 root needs
#
# Two kinds: without what is *needed* the exit status is 2; what is only *wanted*
# may be absent (the tests that use it are then skipped), unless CI=true.
set -u

purpose=${1:-run}
CC=${CC:-cc}

# Rows: kind (lib: pkg-config name, cmd: a command, probe: a function below),
# name, least version or -, needed or wanted, packages of apt dnf pacman apk
# (- where that system has none of its own).
rows_run='
probe libc      -     needed  libc6-dev       glibc-devel      glibc    musl-dev
cmd   make      -     needed  make            make             make     make
cmd   pkg-config -    needed  pkg-config      pkgconf-pkg-config pkgconf pkgconf
lib   openssl   3.0.0 needed  libssl-dev      openssl-devel    openssl  openssl-dev
lib   liburing  2.3   needed  liburing-dev    liburing-devel   liburing liburing-dev
lib   libcyaml  1.3.1 needed  libcyaml-dev    -                libcyaml libcyaml-dev
lib   yaml-0.1  0.2.0 needed  libyaml-dev     libyaml-devel    libyaml  yaml-dev
lib   jansson   2.13  needed  libjansson-dev  jansson-devel    jansson  jansson-dev
'
rows_test='
lib   check     0.15.0 needed check           check-devel      check    check-dev
cmd   timeout   -     needed  coreutils       coreutils        coreutils coreutils
cmd   setsid    -     needed  util-linux      util-linux       util-linux util-linux
cmd   jq        -     needed  jq              jq               jq       jq
cmd   pgrep     -     needed  procps          procps-ng        procps-ng procps
cmd   curl      -     wanted  curl            curl             curl     curl
cmd   openssl   -     wanted  openssl         openssl          openssl  openssl
cmd   wrk       -     wanted  wrk             -                wrk      wrk
cmd   h2load    -     wanted  nghttp2-client  nghttp2          nghttp2  nghttp2
cmd   tmux      -     wanted  tmux            tmux             tmux     tmux
cmd   valgrind  -     wanted  valgrind        valgrind         valgrind valgrind
'
rows_lint='
lib   check     0.15.0 needed check           check-devel      check    check-dev
cmd   gcc       -     needed  gcc             gcc              gcc      gcc
cmd   clang     -     needed  clang           clang            clang    clang
cmd   clang-tidy -    needed  clang-tidy      clang-tools-extra clang   clang-extra-tools
cmd   clang-format -  needed  clang-format    clang-tools-extra clang   clang-extra-tools
cmd   shellcheck -    needed  shellcheck      ShellCheck       shellcheck shellcheck
cmd   git       -     needed  git             git              git      git
'
rows_ci='
cmd   debootstrap -   needed  debootstrap     debootstrap      debootstrap debootstrap
cmd   unshare   -     needed  util-linux      util-linux       util-linux util-linux
'

case $purpose in
run) rows=$rows_run ;;
test) rows=$rows_run$rows_test ;;
lint) rows=$rows_run$rows_lint ;;
ci) rows=$rows_run$rows_test$rows_lint$rows_ci ;;
*)
	echo "deps.sh: usage: deps.sh run|test|lint|ci" >&2
	exit 2
	;;
esac

say()
{
	echo "deps: $*" >&2
}

# The compiler that make will call, and the headers of the C library.
# shellcheck disable=SC2317 # have() calls it by name
have_libc()
{
	echo '#include <stdio.h>' | $CC -E - >/dev/null 2>&1
}

have()
{
	case $1 in
	lib)
		if [ "$3" = - ]; then
			pkg-config --exists "$2"
		else
			pkg-config --atleast-version "$3" "$2"
		fi
		;;
	cmd) command -v "$2" ;;
	probe) "have_$2" ;;
	esac >/dev/null 2>&1
}

# All libraries of the rows at once: the usual case, nothing missing.
have_all_libs()
{
	local list=() kind name least rest

	while read -r kind name least rest; do
		[ "$kind" = lib ] && list+=("$name >= $least")
	done <<<"$rows"
	pkg-config --exists "${list[@]}" 2>/dev/null
}

# Sets missing (rows) and missing_needed (how many of them are needed).
look()
{
	local row kind name least need rest libs=0

	missing=()
	missing_needed=0
	have_all_libs && libs=1
	while read -r row; do
		[ -n "$row" ] || continue
		read -r kind name least need rest <<<"$row"
		[ "$kind" = lib ] && [ $libs = 1 ] && continue
		have "$kind" "$name" "$least" && continue
		missing+=("$row")
		[ "$need" = needed ] && missing_needed=$((missing_needed + 1))
	done <<<"$rows"
	return 0
}

# The names of column $1 (5 apt, 6 dnf, 7 pacman, 8 apk) of what is missing.
packages()
{
	local row fields out=()

	for row in "${missing[@]}"; do
		read -ra fields <<<"$row"
		[ "${fields[1]}" = libc ] && out+=("$(compiler_package)")
		[ "${fields[$1 - 1]}" != - ] && out+=("${fields[$1 - 1]}")
	done
	printf '%s\n' "${out[@]}" | sort -u | tr '\n' ' '
}

compiler_package()
{
	case $CC in
	*clang*) echo clang ;;
	*) echo gcc ;;
	esac
}

# What else is to be known about a system's packages.
note()
{
	local row

	for row in "${missing[@]}"; do
		[[ $row == *libcyaml* ]] || continue
		case $1 in
		dnf)
			echo "  libcyaml is not in Fedora: build 1.3.1 or later from" \
				"github.com/tlsa/libcyaml (make install VARIANT=release)"
			;;
		apk) echo "  libcyaml-dev is in Alpine's edge/testing only" ;;
		esac
	done
}

by_hand()
{
	local row fields

	say "missing:"
	for row in "${missing[@]}"; do
		read -ra fields <<<"$row"
		echo "  $(describe "${fields[@]}")"
	done
	echo "Install with your system's packages, then run make again:"
	[ -n "${has_apt:-}" ] &&
		echo "  apt-get install --no-install-recommends $(packages 5)"
	if [ -z "${has_apt:-}" ]; then
		echo "  apt-get install $(packages 5)"
		echo "  dnf install $(packages 6)"
		note dnf
		echo "  pacman -S --needed $(packages 7)"
		echo "  apk add $(packages 8)"
		note apk
	fi
}

# "liburing 2.3 or newer (2.1 is installed)"
describe()
{
	local text=$2 found

	[ "$2" = libc ] && text="a C compiler ($CC) and the C library's headers"
	[ "$3" != - ] && text="$text $3 or newer"
	found=
	[ "$1" = lib ] && found=$(pkg-config --modversion "$2" 2>/dev/null)
	[ -n "$found" ] && text="$text ($found is installed)"
	[ "$4" = wanted ] && text="$text, for some tests only"
	echo "$text"
}

# apt-get as root, or through sudo; 1 if neither can be had.
find_apt()
{
	command -v apt-get >/dev/null || return 1
	has_apt=1
	if [ "$(id -u)" = 0 ]; then
		as_root=(env DEBIAN_FRONTEND=noninteractive)
	elif command -v sudo >/dev/null; then
		as_root=(sudo)
		# Nobody there to type a password: fail rather than hang.
		[ -t 0 ] || as_root+=(-n)
		as_root+=(env DEBIAN_FRONTEND=noninteractive)
	else
		say "apt-get needs root, and there is no sudo"
		return 1
	fi
}

apt_install()
{
	"${as_root[@]}" apt-get -q -y -o Dpkg::Use-Pty=0 \
		install --no-install-recommends "$@" </dev/null >&2
}

install_missing()
{
	local list one

	read -ra list <<<"$(packages 5)"
	say "installing ${list[*]}"
	"${as_root[@]}" apt-get -q update </dev/null >&2 ||
		say "apt-get update failed; trying with the lists there are"
	apt_install "${list[@]}" && return
	# One name that this release lacks must not keep the others out.
	for one in "${list[@]}"; do
		apt_install "$one" || say "$one could not be installed"
	done
}

too_old()
{
	local row fields

	for row in "${missing[@]}"; do
		read -ra fields <<<"$row"
		[ "${fields[0]}" = lib ] &&
			pkg-config --exists "${fields[1]}" 2>/dev/null && return 0
	done
	return 1
}

finish()
{
	local row

	if [ $missing_needed -gt 0 ] ||
		{ [ ${#missing[@]} -gt 0 ] && [ "${CI:-}" = true ]; }; then
		by_hand >&2
		too_old && say "a library of this system is too old; Debian 12" \
			"and Ubuntu 24.04 are the oldest that have all"
		exit 2
	fi
	[ ${#missing[@]} -eq 0 ] && exit 0
	for row in "${missing[@]}"; do
		read -r _ row _ <<<"$row"
		say "$row is missing: the tests that use it will be skipped"
	done
	exit 0
}

look
[ ${#missing[@]} -eq 0 ] && exit 0
if find_apt; then
	install_missing
	look
fi
finish
