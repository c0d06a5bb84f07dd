#!/bin/sh
# Runs Fieldline with its demo tenant on the servers that the other scripts have started:
# with-kafka.sh with-postgres.sh with-cassandra.sh run-scale.sh BINARY. All that is stored goes with the servers.
set -eu

service=fieldline
. "$(dirname "$0")/common.sh"

export FIELDLINE_SQL_URL="$FIELDLINE_TEST_POSTGRES_URL" FIELDLINE_SERIES_KIND=cassandra
export FIELDLINE_CASSANDRA_NODES="$FIELDLINE_TEST_CASSANDRA_NODES" FIELDLINE_CASSANDRA_REPLICATION=SimpleStrategy:1
export FIELDLINE_JOURNAL_KIND=kafka FIELDLINE_JOURNAL_KAFKA_SERVERS="$FIELDLINE_TEST_KAFKA"
echo "Kafka at $FIELDLINE_TEST_KAFKA, PostgreSQL at $FIELDLINE_TEST_POSTGRES_URL,"
echo "Cassandra at $FIELDLINE_TEST_CASSANDRA_NODES; all end with Fieldline."
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
