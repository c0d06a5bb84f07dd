#!/usr/bin/env bash
# Installs what the tests need beyond Rust and Python, and does nothing where it is there already.
set -euo pipefail
cd "$(dirname "$0")/e2e"

packages=()
need() {
    command -v "$1" >/dev/null || packages+=("$2")
}
need mosquitto_rr mosquitto-clients
need mosquitto mosquitto
need coap-client-openssl libcoap3-bin
need siege siege
need rabbitmq-server rabbitmq-server
need mvn maven
need java openjdk-17-jre-headless
need openssl openssl
/usr/bin/python3 -c "import aiosmtpd" 2>/dev/null || packages+=(python3-aiosmtpd)
need curl curl
need chromium chromium
need c++ g++
need unshare util-linux
need mount mount
compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null || packages+=(postgresql)
python3 -c "import ensurepip, venv" 2>/dev/null || packages+=(python3-venv)

if [ ${#packages[@]} -gt 0 ]; then
    echo "installing ${packages[*]}"
    as_root=()
    [ "$(id -u)" = 0 ] || as_root=(sudo --non-interactive)
    export DEBIAN_FRONTEND=noninteractive
    # Servers that come with a package are started by the tests alone.
    if [ ! -e /usr/sbin/policy-rc.d ]; then
        printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee /usr/sbin/policy-rc.d >/dev/null
        "${as_root[@]}" chmod +x /usr/sbin/policy-rc.d
        trap '"${as_root[@]}" rm -f /usr/sbin/policy-rc.d' EXIT
    fi
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${packages[@]}" </dev/null >/dev/null
fi

if ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
    rustup component add rustfmt clippy
fi

# An environment is made anew when its requirements have changed, all at the same time. Programs and libraries of others have
# environments of their own: they bring versions that are not those of the tests.
make_environment() {
    echo "making the Python environment of the end-to-end tests in $1"
    rm -rf "$1/.venv"
    python3 -m venv "$1/.venv"
    "$1/.venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$1/requirements.txt"
    cp "$1/requirements.txt" "$1/.venv/requirements.txt"
}
making=()
for folder in . sdk rest_client gateway schemathesis; do
    if ! cmp -s $folder/requirements.txt $folder/.venv/requirements.txt; then
        make_environment $folder &
        making+=($!)
    fi
done
if ! cmp -s mqttjs/package-lock.json mqttjs/node_modules/.installed; then
    echo "installing MQTT.js for the end-to-end tests"
    (cd mqttjs && npm ci --no-audit --no-fund --loglevel=error >/dev/null && cp package-lock.json node_modules/.installed) &
    making+=($!)
fi
for process in "${making[@]}"; do
    wait "$process"
done
