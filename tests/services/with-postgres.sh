#!/bin/sh
# Runs a command beside a throw-away PostgreSQL server: with-postgres.sh COMMAND [ARGUMENT...]
#
# The command finds the server in FIELDLINE_TEST_POSTGRES_URL. The server listens on the loopback address, keeps its data
# in a temporary directory, and is stopped and removed with it when the command ends. Nothing is installed.
set -eu

if [ $# -eq 0 ]; then
    echo "usage: $0 COMMAND [ARGUMENT...]" >&2
    exit 2
fi

# Debian keeps the server's programs out of PATH, one directory a version; the newest is taken.
bin=
if command -v initdb >/dev/null 2>&1 && command -v pg_ctl >/dev/null 2>&1; then
    bin=$(dirname "$(command -v initdb)")
fi
for candidate in $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V); do
    if [ -x "$candidate/initdb" ] && [ -x "$candidate/pg_ctl" ]; then
        bin=$candidate
    fi
done
if [ -z "$bin" ]; then
    echo "$0: no PostgreSQL server found; on Debian: apt-get install postgresql" >&2
    exit 127
fi

# PostgreSQL refuses to run as root.
as_server=
if [ "$(id -u)" -eq 0 ]; then
    if ! id postgres >/dev/null 2>&1 || ! command -v runuser >/dev/null 2>&1; then
        echo "$0: PostgreSQL refuses to run as root, and there is no user postgres to run it as" >&2
        exit 127
    fi
    as_server="runuser -u postgres --"
fi

directory=$(mktemp -d "${TMPDIR:-/tmp}/fieldline-postgres.XXXXXX")
chmod 711 "$directory"
mkdir "$directory/server"
if [ -n "$as_server" ]; then
    chown postgres "$directory/server"
fi
data=$directory/server/data
log=$directory/server/log
started=

# The server's programs insist on a working directory that their user may enter.
server() {
    (cd "$directory/server" && exec $as_server "$@")
}

clean_up() {
    status=$?
    trap - EXIT INT TERM
    if [ -n "$started" ]; then
        server "$bin/pg_ctl" -D "$data" -m immediate -w stop >/dev/null 2>&1 || true
    fi
    rm -rf "$directory"
    exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

server "$bin/initdb" -D "$data" -U postgres -A trust -E UTF8 --locale=C --no-sync >"$directory/initdb.log" 2>&1 || {
    cat "$directory/initdb.log" >&2
    exit 1
}

# Any port may be taken by the time the server binds it: another is tried.
attempt=0
while [ -z "$started" ]; do
    attempt=$((attempt + 1))
    port=$((20000 + ($$ * 7 + attempt * 1237) % 12000))
    settings="-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200"
    # What is thrown away need not survive a crash.
    settings="$settings -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c shared_buffers=64MB"
    if server "$bin/pg_ctl" -D "$data" -l "$log" -w -t 60 -o "$settings" start >/dev/null 2>&1; then
        started=yes
    elif [ "$attempt" -ge 10 ]; then
        cat "$log" >&2
        exit 1
    fi
done

FIELDLINE_TEST_POSTGRES_URL="postgres://postgres@127.0.0.1:$port/postgres?sslmode=disable"
export FIELDLINE_TEST_POSTGRES_URL
"$@"
