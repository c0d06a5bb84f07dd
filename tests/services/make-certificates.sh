#!/bin/sh
# Makes an authority and certificates that it signs: make-certificates.sh DIRECTORY
#
# ca.pem and ca.key; server.pem and server.key for 127.0.0.1 and localhost; client.pem and client.key for "fieldline".
set -eu

directory=$1
cd "$directory"

key() {
    openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1" 2>/dev/null
    chmod 644 "$1"
}

sign() {
    openssl req -new -key "$1.key" -subj "/CN=$2" -out "$1.csr" 2>/dev/null
    printf '%s\n' "$3" >"$1.ext"
    openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile "$1.ext" -out "$1.pem" \
        2>/dev/null
    rm -f "$1.csr" "$1.ext"
}

key ca.key
openssl req -x509 -new -key ca.key -subj "/CN=Fieldline tests" -days 2 \
    -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign" -out ca.pem 2>/dev/null
key server.key
sign server localhost "subjectAltName=DNS:localhost,IP:127.0.0.1
extendedKeyUsage=serverAuth"
key client.key
sign client fieldline "extendedKeyUsage=clientAuth"
