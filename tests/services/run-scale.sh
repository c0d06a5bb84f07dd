#!/bin/sh
# Runs Fieldline with its demo tenant on the Kafka and the PostgreSQL that with-kafka.sh and with-postgres.sh have started:
# with-kafka.sh with-postgres.sh run-scale.sh BINARY. All that is stored goes with the servers.
set -eu

service=fieldline
. "$(dirname "$0")/common.sh"

export FIELDLINE_SQL_URL="$FIELDLINE_TEST_POSTGRES_URL" FIELDLINE_SERIES_KIND=sql
export FIELDLINE_JOURNAL_KIND=kafka FIELDLINE_JOURNAL_KAFKA_SERVERS="$FIELDLINE_TEST_KAFKA"
echo "Kafka at $FIELDLINE_TEST_KAFKA, PostgreSQL at $FIELDLINE_TEST_POSTGRES_URL; both end with Fieldline."
"$1" serve --demo --data-dir "$directory/data" &
server_pid=$!
# It has its own time to stop.
trap 'kill -TERM "$server_pid" 2>/dev/null || true' INT TERM
status=0
while kill -0 "$server_pid" 2>/dev/null; do
    status=0
    wait "$server_pid" || status=$?
done
exit "$status"
