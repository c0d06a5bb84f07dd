#!/bin/sh
# Runs a command beside a throw-away Mosquitto broker: with-mosquitto.sh COMMAND [ARGUMENT...]
#
# The command finds the broker in FIELDLINE_TEST_MQTT (host:port, in clear, the user "alice" with the password
# "alice-secret"), and in FIELDLINE_TEST_MQTT_TLS, where it takes the client certificate in the directory
# FIELDLINE_TEST_CERTIFICATES and no passwords.
set -eu

service=mosquitto
. "$(dirname "$0")/common.sh"
server=$(command -v mosquitto || true)
[ -n "$server" ] || server=/usr/sbin/mosquitto
needs "mosquitto openssl" "$server" mosquitto_passwd openssl

"$(dirname "$0")/make-certificates.sh" "$directory"
mosquitto_passwd -b -c "$directory/passwords" alice alice-secret >/dev/null 2>&1
# Run by root, the broker becomes another user.
chmod 755 "$directory"
chmod 644 "$directory/passwords"

start() {
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
    server_pid=$!
    comes_up "$directory/log" running 10
}
on_a_free_port start 10 "$directory/log"

FIELDLINE_TEST_MQTT=127.0.0.1:$port
FIELDLINE_TEST_MQTT_TLS=127.0.0.1:$((port + 1))
FIELDLINE_TEST_CERTIFICATES=$directory
export FIELDLINE_TEST_MQTT FIELDLINE_TEST_MQTT_TLS FIELDLINE_TEST_CERTIFICATES
"$@"
