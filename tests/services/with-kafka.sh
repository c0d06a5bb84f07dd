#!/bin/sh
# Runs a command beside a throw-away Kafka broker: with-kafka.sh COMMAND [ARGUMENT...]
#
# The command finds the broker in FIELDLINE_TEST_KAFKA (host:port, in clear). At FIELDLINE_TEST_KAFKA_SASL it speaks TLS
# with a certificate of the authority in the file FIELDLINE_TEST_KAFKA_CA, and takes the user "alice" with the password
# "alice-secret" by PLAIN and SCRAM-SHA-256. FIELDLINE_TEST_KAFKA_CLASSPATH holds its Java tools.
#
# KAFKA_ADVERTISED=host:port is the address in clear at which it tells clients that it is, such as that of a relay.
#
# Its programs come from Maven the first time and are kept under target/services.
set -eu

service=kafka
. "$(dirname "$0")/common.sh"
needs "openjdk-17-jre-headless maven openssl" java mvn openssl

maven_jars kafka-pom.xml kafka-4.1.2

"$(dirname "$0")/make-certificates.sh" "$directory"
cat "$directory/server.key" "$directory/server.pem" "$directory/ca.pem" >"$directory/keystore.pem"

write_settings() {
    cat >"$directory/server.properties" <<SETTINGS
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
listeners=PLAINTEXT://127.0.0.1:$plain,SASL_SSL://127.0.0.1:$sasl,CONTROLLER://127.0.0.1:$controller
advertised.listeners=PLAINTEXT://${KAFKA_ADVERTISED:-127.0.0.1:$plain},SASL_SSL://127.0.0.1:$sasl
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret";
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
ssl.keystore.type=PEM
ssl.keystore.location=$directory/keystore.pem
log.dirs=$directory/data
num.partitions=4
auto.create.topics.enable=true
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.segment.bytes=134217728
log.cleaner.dedupe.buffer.size=4194304
SETTINGS
}

start() {
    plain=$port
    sasl=$((port + 1))
    controller=$((port + 2))
    rm -rf "$directory/data"
    write_settings
    # Any id will do; one made by chance may begin with a dash and be taken for an option.
    cluster=MkU3OEVBNTcwNTJENDM2Qg
    java -Djava.awt.headless=true -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp "$library/*" kafka.tools.StorageTool format \
        -c "$directory/server.properties" -t "$cluster" \
        --add-scram 'SCRAM-SHA-256=[name=alice,password=alice-secret]' >"$directory/format.log" 2>&1 || {
        cat "$directory/format.log" >&2
        exit 1
    }
    java -XX:ErrorFile="$directory/crash.log" -Djava.awt.headless=true -Xms256m -Xmx512m -XX:+UseSerialGC -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
        -Dorg.slf4j.simpleLogger.log.kafka.server=info -cp "$library/*" kafka.Kafka "$directory/server.properties" \
        >"$directory/log" 2>&1 &
    server_pid=$!
    comes_up "$directory/log" "Kafka Server started" 120
}
on_a_free_port start 5 "$directory/log"

FIELDLINE_TEST_KAFKA=127.0.0.1:$plain
FIELDLINE_TEST_KAFKA_SASL=127.0.0.1:$sasl
FIELDLINE_TEST_KAFKA_CA=$directory/ca.pem
FIELDLINE_TEST_KAFKA_CLASSPATH="$library/*"
FIELDLINE_TEST_KAFKA_PID=$server_pid
FIELDLINE_TEST_KAFKA_SETTINGS=$directory/server.properties
export FIELDLINE_TEST_KAFKA FIELDLINE_TEST_KAFKA_SASL FIELDLINE_TEST_KAFKA_CA FIELDLINE_TEST_KAFKA_CLASSPATH
export FIELDLINE_TEST_KAFKA_PID FIELDLINE_TEST_KAFKA_SETTINGS
"$@"
