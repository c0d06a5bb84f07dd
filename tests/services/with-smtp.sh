#!/bin/sh
# Runs a command beside a throw-away mail server: with-smtp.sh COMMAND [ARGUMENT...]
#
# The command finds the server's ports on 127.0.0.1 in FIELDLINE_TEST_SMTP_PORT, which offers STARTTLS, and
# FIELDLINE_TEST_SMTPS_PORT; see smtp_server.py for who may send. FIELDLINE_TEST_SMTP_MAILS is the directory where mails
# arrive. SSL_CERT_FILE makes the authority of the server's certificate the only one of the system.
set -eu

service=smtp
. "$(dirname "$0")/common.sh"
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
"$here/make-certificates.sh" "$directory"
"$python" "$here/smtp_server.py" "$directory" >"$directory/log" 2>&1 &
server_pid=$!
# It writes its ports when it listens.
if ! comes_up "$directory/ports" . 30; then
    cat "$directory/log" >&2
    exit 1
fi
read -r FIELDLINE_TEST_SMTP_PORT FIELDLINE_TEST_SMTPS_PORT <"$directory/ports"
FIELDLINE_TEST_SMTP_MAILS=$directory/mails
SSL_CERT_FILE=$directory/ca.pem
export FIELDLINE_TEST_SMTP_PORT FIELDLINE_TEST_SMTPS_PORT FIELDLINE_TEST_SMTP_MAILS SSL_CERT_FILE
"$@"
