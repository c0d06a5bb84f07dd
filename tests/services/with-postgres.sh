#!/bin/sh
# Runs a command beside a throw-away PostgreSQL server: with-postgres.sh COMMAND [ARGUMENT...]
#
# The command finds the server in FIELDLINE_TEST_POSTGRES_URL. The server listens on the loopback address, keeps its data
# in a temporary directory, and is stopped and removed with it when the command ends. Nothing is installed.
#
# POSTGRES_TLS=1 makes it refuse connections in clear; the URL then names the authority of its certificate.
# POSTGRES_DURABLE=1 lets it acknowledge only what it has written, so that kill -9 of its processes loses nothing.
set -eu

service=postgres
. "$(dirname "$0")/common.sh"

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

# The server is a child of a program that has ended.
stop() {
    if [ -n "$started" ]; then
        server "$bin/pg_ctl" -D "$data" -m immediate -w stop >/dev/null 2>&1 || true
    fi
}

server "$bin/initdb" -D "$data" -U postgres -A trust -E UTF8 --locale=C --no-sync >"$directory/initdb.log" 2>&1 || {
    cat "$directory/initdb.log" >&2
    exit 1
}

tls=
query=sslmode=disable
if [ -n "${POSTGRES_TLS:-}" ]; then
    needs openssl openssl
    certificates=$directory/tls
    mkdir "$certificates"
    "$(dirname "$0")/make-certificates.sh" "$certificates"
    # The server insists on a key that only its user reads.
    cp "$certificates/server.key" "$directory/server/server.key"
    chmod 600 "$directory/server/server.key"
    if [ -n "$as_server" ]; then
        chown postgres "$directory/server/server.key"
    fi
    echo "hostssl all all all trust" >"$data/pg_hba.conf"
    tls="-c ssl=on -c ssl_cert_file=$certificates/server.pem -c ssl_key_file=$directory/server/server.key"
    query="sslmode=verify-full&sslrootcert=$certificates/ca.pem"
fi

commit=off
if [ -n "${POSTGRES_DURABLE:-}" ]; then
    commit=on
fi

start() {
    settings="-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200"
    # What is thrown away need not survive a crash of the machine, nor one of the server unless somebody wants that.
    settings="$settings -c fsync=off -c synchronous_commit=$commit -c full_page_writes=off -c shared_buffers=64MB $tls"
    server "$bin/pg_ctl" -D "$data" -l "$log" -w -t 60 -o "$settings" start >/dev/null 2>&1 && started=yes
}
on_a_free_port start 10 "$log"

FIELDLINE_TEST_POSTGRES_URL="postgres://postgres@127.0.0.1:$port/postgres?$query"
export FIELDLINE_TEST_POSTGRES_URL
"$@"
