#!/bin/sh
# Runs a command beside a throw-away Mosquitto broker: with-mosquitto.sh COMMAND [ARGUMENT...]
#
# The command finds the broker in FIELDLINE_TEST_MQTT (host:port, in clear, the user "alice" with the password
# "alice-secret"), and in FIELDLINE_TEST_MQTT_TLS, where it takes the client certificate in the directory
# FIELDLINE_TEST_CERTIFICATES and no passwords.
set -eu

if [ $# -eq 0 ]; then
    echo "usage: $0 COMMAND [ARGUMENT...]" >&2
    exit 2
fi
server=$(command -v mosquitto || true)
[ -n "$server" ] || server=/usr/sbin/mosquitto
for program in "$server" mosquitto_passwd openssl; do
    if ! command -v "$program" >/dev/null 2>&1; then
        echo "$0: $program not found; on Debian: apt-get install mosquitto openssl" >&2
        exit 127
    fi
done

directory=$(mktemp -d "${TMPDIR:-/tmp}/fieldline-mosquitto.XXXXXX")
broker=

clean_up() {
    status=$?
    trap - EXIT INT TERM
    if [ -n "$broker" ]; then
        kill -9 "$broker" 2>/dev/null || true
        wait "$broker" 2>/dev/null || true
    fi
    rm -rf "$directory"
    exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

"$(dirname "$0")/make-certificates.sh" "$directory"
mosquitto_passwd -b -c "$directory/passwords" alice alice-secret >/dev/null 2>&1
# Run by root, the broker becomes another user.
chmod 755 "$directory"
chmod 644 "$directory/passwords"

# Any port may be taken by the time the broker binds it: others are tried.
attempt=0
started=
while [ -z "$started" ]; do
    attempt=$((attempt + 1))
    port=$((20000 + ($$ * 7 + attempt * 1237) % 12000))
    cat >"$directory/mosquitto.conf" <<SETTINGS
per_listener_settings true
listener $port 127.0.0.1
password_file $directory/passwords
listener $((port + 1)) 127.0.0.1
allow_anonymous true
cafile $directory/ca.pem
certfile $directory/server.pem
keyfile $directory/server.key
require_certificate true
use_identity_as_username true
SETTINGS
    "$server" -c "$directory/mosquitto.conf" >"$directory/log" 2>&1 &
    broker=$!
    waited=0
    while kill -0 "$broker" 2>/dev/null && [ "$waited" -lt 200 ]; do
        if grep -q "running" "$directory/log"; then
            started=yes
            break
        fi
        sleep 0.05
        waited=$((waited + 1))
    done
    if [ -z "$started" ]; then
        kill -9 "$broker" 2>/dev/null || true
        wait "$broker" 2>/dev/null || true
        broker=
        if [ "$attempt" -ge 10 ]; then
            cat "$directory/log" >&2
            exit 1
        fi
    fi
done

FIELDLINE_TEST_MQTT=127.0.0.1:$port
FIELDLINE_TEST_MQTT_TLS=127.0.0.1:$((port + 1))
FIELDLINE_TEST_CERTIFICATES=$directory
export FIELDLINE_TEST_MQTT FIELDLINE_TEST_MQTT_TLS FIELDLINE_TEST_CERTIFICATES
"$@"
