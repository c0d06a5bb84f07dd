#!/bin/sh
# Runs a command beside a throw-away RabbitMQ broker: with-rabbitmq.sh COMMAND [ARGUMENT...]
#
# The command finds the broker in FIELDLINE_TEST_RABBITMQ (host:port); the user is "guest" with the password "guest".
# Everything it keeps is in a temporary directory, and is removed when the command ends.
set -eu

service=rabbitmq
. "$(dirname "$0")/common.sh"
# Debian's program in PATH insists on the user rabbitmq; what it starts does not.
server=
for candidate in /usr/lib/rabbitmq/bin/rabbitmq-server "$(command -v rabbitmq-server || true)"; do
    if [ -n "$candidate" ] && [ -x "$candidate" ]; then
        server=$candidate
        break
    fi
done
if [ -z "$server" ]; then
    echo "$0: no RabbitMQ found; on Debian: apt-get install rabbitmq-server" >&2
    exit 127
fi

stop() {
    if [ -n "$server_pid" ]; then
        # The broker is a child of a script, and has children itself: they are one group.
        kill -s KILL -- "-$server_pid" 2>/dev/null || kill -s KILL "$server_pid" 2>/dev/null || true
        wait "$server_pid" 2>/dev/null || true
        server_pid=
    fi
    # The name server of Erlang stays on its own, and goes only when it has noticed that the broker is gone.
    waited=0
    while [ -n "${ERL_EPMD_PORT:-}" ] && [ "$waited" -lt 50 ]; do
        if epmd -port "$ERL_EPMD_PORT" -kill 2>&1 | grep -qv "not allowed"; then
            break
        fi
        sleep 0.1
        waited=$((waited + 1))
    done
}

: >"$directory/rabbitmq.conf"
echo '[].' >"$directory/enabled_plugins"

start() {
    ERL_EPMD_PORT=$((port + 2))
    export ERL_EPMD_PORT
    rm -rf "$directory/data"
    env HOME="$directory" ERL_EPMD_ADDRESS=127.0.0.1 \
        RABBITMQ_NODENAME="fieldline$$@localhost" RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 RABBITMQ_NODE_PORT="$port" \
        RABBITMQ_DIST_PORT=$((port + 1)) RABBITMQ_MNESIA_BASE="$directory/data" RABBITMQ_LOG_BASE="$directory/log" \
        RABBITMQ_LOGS=- RABBITMQ_CONF_ENV_FILE="$directory/none" RABBITMQ_CONFIG_FILE="$directory/rabbitmq" \
        RABBITMQ_ENABLED_PLUGINS_FILE="$directory/enabled_plugins" \
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+S 2:2 +sbwt none" \
        setsid "$server" >"$directory/output" 2>&1 &
    server_pid=$!
    comes_up "$directory/output" "completed with" 90
}
on_a_free_port start 5 "$directory/output"

FIELDLINE_TEST_RABBITMQ=127.0.0.1:$port
export FIELDLINE_TEST_RABBITMQ
"$@"
