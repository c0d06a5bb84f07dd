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
need rabbitmq-server rabbitmq-server
need mvn maven
need java openjdk-17-jre-headless
need openssl openssl
/usr/bin/python3 -c "import aiosmtpd" 2>/dev/null || packages+=(python3-aiosmtpd)
need curl curl
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

# An environment is made anew when its requirements have changed. The SDK of devices has one of its own: it brings a paho that
# is not the one which most devices use.
for folder in . sdk; do
    if ! cmp -s $folder/requirements.txt $folder/.venv/requirements.txt; then
        echo "making the Python environment of the end-to-end tests in $folder"
        rm -rf $folder/.venv
        python3 -m venv $folder/.venv
        $folder/.venv/bin/pip install --quiet --disable-pip-version-check --requirement $folder/requirements.txt
        cp $folder/requirements.txt $folder/.venv/requirements.txt
    fi
done
