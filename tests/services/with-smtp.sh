#!/bin/sh
# Runs a command beside a throw-away mail server: with-smtp.sh COMMAND [ARGUMENT...]
#
# The command finds the server's ports on 127.0.0.1 in FIELDLINE_TEST_SMTP_PORT, which offers STARTTLS, and
# FIELDLINE_TEST_SMTPS_PORT; see smtp_server.py for who may send. FIELDLINE_TEST_SMTP_MAILS is the directory where mails
# arrive. SSL_CERT_FILE makes the authority of the server's certificate the only one of the system.
set -eu

if [ $# -eq 0 ]; then
    echo "usage: $0 COMMAND [ARGUMENT...]" >&2
    exit 2
fi
# Debian's own Python has the package, where another one stands before it in PATH.
python=
for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c "import aiosmtpd" >/dev/null 2>&1; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ] || ! command -v openssl >/dev/null 2>&1; then
    echo "$0: no mail server found; on Debian: apt-get install python3-aiosmtpd openssl" >&2
    exit 127
fi

here=$(cd "$(dirname "$0")" && pwd)
directory=$(mktemp -d "${TMPDIR:-/tmp}/fieldline-smtp.XXXXXX")
server=

clean_up() {
    status=$?
    trap - EXIT INT TERM
    if [ -n "$server" ]; then
        kill -9 "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$directory"
    exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

"$here/make-certificates.sh" "$directory"
"$python" "$here/smtp_server.py" "$directory" >"$directory/log" 2>&1 &
server=$!
waited=0
while [ ! -f "$directory/ports" ]; do
    if ! kill -0 "$server" 2>/dev/null || [ "$waited" -ge 600 ]; then
        cat "$directory/log" >&2
        exit 1
    fi
    sleep 0.05
    waited=$((waited + 1))
done
read -r FIELDLINE_TEST_SMTP_PORT FIELDLINE_TEST_SMTPS_PORT <"$directory/ports"
FIELDLINE_TEST_SMTP_MAILS=$directory/mails
SSL_CERT_FILE=$directory/ca.pem
export FIELDLINE_TEST_SMTP_PORT FIELDLINE_TEST_SMTPS_PORT FIELDLINE_TEST_SMTP_MAILS SSL_CERT_FILE
"$@"
