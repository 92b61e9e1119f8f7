#!/bin/bash
# SPDX-License-Identifier: MIT
# Starts a server with the configuration beside this script, runs a command, and
# ends the server.
#
#   with.sh nginx|haproxy|hitch COMMAND...
#
# As any user. Environment: RUN is the folder for certificate, configuration, pid
# file and log (run); PORT and BACKEND_PORT replace the configuration's. Programs
# are taken from PATH, else from where systems keep servers, else from the build.
# Exit status: that of the command, or 1 if the server does not start.
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
run=${RUN:-run}
server=${1:-}
case $server in
nginx) usual=8443 conf=nginx.conf ;;
haproxy) usual=8444 conf=haproxy.cfg ;;
hitch) usual=8445 conf=hitch.conf ;;
*) server= ;;
esac
if [ -z "$server" ] || [ $# -lt 2 ]; then
	echo "usage: with.sh nginx|haproxy|hitch COMMAND..." >&2
	exit 2
fi
shift
port=${PORT:-$usual}
backend_port=${BACKEND_PORT:-8446}
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:$here/../../build/release
pids=()

die()
{
	echo "with.sh: $*" >&2
	exit 1
}

# Workers may outlive their master by a moment.
finish()
{
	local pid end=$((SECONDS + 5))

	for pid in "${pids[@]}"; do
		kill "$pid" && wait "$pid"
	done 2>/dev/null
	while [ ${#pids[@]} -gt 0 ] && accepts "$port" && [ $SECONDS -lt $end ]; do
		sleep 0.05
	done
}
trap finish EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# accepts PORT
accepts()
{
	(exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# begun WORD PORT FILE: returns once the last process started accepts there and the
# file is written.
begun()
{
	local pid=${pids[-1]} end=$((SECONDS + 10))

	until accepts "$2" && [ -s "$3" ]; do
		if ! kill -0 "$pid" 2>/dev/null || [ $SECONDS -gt $end ]; then
			cat "$run/$1.log" >&2
			die "$1 does not serve port $2: its words are above"
		fi
		sleep 0.05
	done
}

# hitch speaks no HTTP: tterm serves what it decrypts, on a port without TLS.
start_backend()
{
	command -v tterm >/dev/null || die "tterm is not installed"
	tterm --set "scenario=backend-$$" --set "result.dir=$run" \
		--set "terminator.listen_plain=127.0.0.1:$backend_port" \
		"$here/backend.yaml" >"$run/backend.log" 2>&1 &
	pids+=($!)
	begun backend "$backend_port" "$run/backend.log"
}

# In the folder, for the configurations' paths are relative.
server_command()
{
	cd "$run" || exit 1
	case $server in
	nginx) exec nginx -p . -c nginx.conf -e stderr -g 'daemon off;' ;;
	haproxy) exec haproxy -W -db -f haproxy.cfg -p haproxy.pid ;;
	hitch)
		# It does not run its workers as root.
		user=()
		[ "$(id -u)" != 0 ] || user=(--user=nobody)
		exec hitch --config=hitch.conf --pidfile=hitch.pid "${user[@]}"
		;;
	esac
}

command -v "$server" >/dev/null || die "$server is not installed"
accepts "$port" && die "port $port is in use; PORT=... takes another"
bash "$here/make-certificate.sh" "$run" || exit 1
sed -e "s/\<$usual\>/$port/; s/\<8446\>/$backend_port/" "$here/$conf" \
	>"$run/$conf"
rm -f "$run/$server.pid"
[ "$server" != hitch ] || start_backend
(server_command >"$run/$server.log" 2>&1) &
pids+=($!)
begun "$server" "$port" "$run/$server.pid"
"$@"
