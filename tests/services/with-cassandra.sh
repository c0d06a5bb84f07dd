#!/bin/sh
# Runs a command beside a throw-away Cassandra node: with-cassandra.sh COMMAND [ARGUMENT...]
#
# The command finds the node in FIELDLINE_TEST_CASSANDRA_NODES (host:port, without users or TLS), and its process in
# FIELDLINE_TEST_CASSANDRA_PID. CASSANDRA_VERSION=4.1.10 chooses another release.
#
# FIELDLINE_TEST_CASSANDRA_HOME/start HOME TOKEN JMX-PORT starts the node of that directory, whose settings are in HOME/conf: the
# same one once more, or another one with a copy of its settings.
#
# CASSANDRA_SYNC=group makes it acknowledge only what its commit log has, so that kill -9 of it loses nothing; it may lose the
# last 100 ms otherwise. CASSANDRA_BROADCAST=127.0.0.2 is the address at which it tells clients that it is.
#
# CASSANDRA_HEAP=1g gives it more memory than 512m: clusters that people run have gigabytes.
#
# CASSANDRA_TLS=1 makes it ask for TLS with a client's certificate and for the user cassandra with that password; the
# certificates (make-certificates.sh) are then in FIELDLINE_TEST_CASSANDRA_TLS.
#
# Its programs come from Maven the first time and are kept under target/services.
set -eu

service=cassandra
. "$(dirname "$0")/common.sh"
needs "openjdk-17-jre-headless maven" java mvn

version=${CASSANDRA_VERSION:-5.0.7}
heap=${CASSANDRA_HEAP:-512m}
maven_jars cassandra-pom.xml "cassandra-$version" "-Dcassandra.version=$version"
agent=$(ls "$library"/jamm-*.jar)

# What Cassandra reaches into, of the modules that Java keeps closed.
opened=""
for package in java.base/jdk.internal.misc java.base/jdk.internal.ref java.base/sun.nio.ch java.base/java.lang.ref \
    java.management.rmi/com.sun.jmx.remote.internal.rmi java.rmi/sun.rmi.registry java.rmi/sun.rmi.server \
    java.sql/java.sql jdk.unsupported/sun.misc; do
    opened="$opened --add-exports $package=ALL-UNNAMED"
done
for package in java.base/java.io java.base/java.lang java.base/java.lang.module java.base/java.lang.reflect \
    java.base/java.math java.base/java.net java.base/java.nio java.base/java.nio.charset java.base/java.nio.file.spi \
    java.base/java.util java.base/java.util.concurrent java.base/java.util.concurrent.atomic \
    java.base/java.util.concurrent.locks java.base/jdk.internal.loader java.base/jdk.internal.math \
    java.base/jdk.internal.misc java.base/jdk.internal.module java.base/jdk.internal.ref \
    java.base/jdk.internal.reflect java.base/jdk.internal.util java.base/jdk.internal.util.jar \
    java.base/jdk.internal.vm java.base/sun.nio.ch java.rmi/sun.rmi.transport.tcp java.management/javax.management \
    jdk.management/com.sun.management.internal; do
    opened="$opened --add-opens $package=ALL-UNNAMED"
done

authenticator=AllowAllAuthenticator
ready="Startup complete"
certificates=
if [ -n "${CASSANDRA_TLS:-}" ]; then
    needs "openssl openjdk-17-jre-headless" openssl keytool
    authenticator=PasswordAuthenticator
    ready="Created default superuser role"
    certificates=$directory/tls
    mkdir "$certificates"
    "$(dirname "$0")/make-certificates.sh" "$certificates"
    openssl pkcs12 -export -in "$certificates/server.pem" -inkey "$certificates/server.key" -name server \
        -passout pass:fieldline -out "$certificates/server.p12"
    keytool -importcert -noprompt -alias ca -file "$certificates/ca.pem" -storetype PKCS12 -storepass fieldline \
        -keystore "$certificates/trusted.p12" 2>/dev/null
fi

write_tls_settings() {
    cat >>"$directory/conf/cassandra.yaml" <<SETTINGS
client_encryption_options:
  enabled: true
  optional: false
  keystore: $certificates/server.p12
  keystore_password: fieldline
  require_client_auth: true
  truststore: $certificates/trusted.p12
  truststore_password: fieldline
  store_type: PKCS12
SETTINGS
}

sync="commitlog_sync: periodic
commitlog_sync_period: 10000ms"
if [ "${CASSANDRA_SYNC:-}" = group ]; then
    sync="commitlog_sync: group
commitlog_sync_group_window: 10ms"
fi

write_settings() {
    mkdir -p "$directory/conf" "$directory/data" "$directory/tmp"
    cat >"$directory/conf/cassandra.yaml" <<SETTINGS
cluster_name: test
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "127.0.0.1:$gossip"
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
broadcast_rpc_address: ${CASSANDRA_BROADCAST:-127.0.0.1}
storage_port: $gossip
native_transport_port: $native
start_native_transport: true
authenticator: $authenticator
authorizer: AllowAllAuthorizer
role_manager: CassandraRoleManager
data_file_directories: [ $directory/data/data ]
commitlog_directory: $directory/data/commitlog
saved_caches_directory: $directory/data/saved_caches
hints_directory: $directory/data/hints
cdc_raw_directory: $directory/data/cdc_raw
$sync
commitlog_segment_size: 32MiB
commitlog_total_space: 256MiB
concurrent_reads: 16
concurrent_writes: 16
auto_snapshot: false
SETTINGS
    cat >"$directory/conf/logback.xml" <<SETTINGS
<configuration>
  <appender name="STDOUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %date{ISO8601} %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="STDOUT"/></root>
</configuration>
SETTINGS
}

cat >"$directory/start" <<START
#!/bin/sh
# start HOME TOKEN JMX-PORT
home=\$1
mkdir -p "\$home/tmp"
# A crash of Java leaves its report here.
cd "\$home"
exec java -javaagent:"$agent" -Xss256k -Xms$heap -Xmx$heap -XX:+UseSerialGC -XX:MaxDirectMemorySize=256m \
    -Djava.io.tmpdir="\$home/tmp" -Djna.tmpdir="\$home/tmp" \
    -Djna.nosys=true -Djdk.attach.allowAttachSelf=true -Dcassandra-foreground=yes \
    -Dcassandra.config="file://\$home/conf/cassandra.yaml" -Dcassandra.storagedir="\$home/data" \
    -Dcassandra.logdir="\$home" -Dlogback.configurationFile="\$home/conf/logback.xml" \
    -Dcassandra.jmx.local.port="\$3" -Dcassandra.skip_wait_for_gossip_to_settle=0 \
    -Dcassandra.ring_delay_ms=1 -Dcassandra.superuser_setup_delay_ms=0 -Dcassandra.initial_token="\$2" \
    $opened -cp "$library/*" org.apache.cassandra.service.CassandraDaemon
START
chmod +x "$directory/start"

start() {
    native=$port
    gossip=$((port + 1))
    management=$((port + 2))
    rm -rf "$directory/data"
    write_settings
    if [ -n "$certificates" ]; then
        write_tls_settings
    fi
    "$directory/start" "$directory" 0 "$management" >"$directory/log" 2>&1 &
    server_pid=$!
    # It says that it listens for clients before it does, and also when the port is taken.
    comes_up "$directory/log" "$ready" 180
}
on_a_free_port start 5 "$directory/log"

FIELDLINE_TEST_CASSANDRA_NODES=127.0.0.1:$native
FIELDLINE_TEST_CASSANDRA_PID=$server_pid
FIELDLINE_TEST_CASSANDRA_HOME=$directory
FIELDLINE_TEST_CASSANDRA_TLS=$certificates
export FIELDLINE_TEST_CASSANDRA_NODES FIELDLINE_TEST_CASSANDRA_PID FIELDLINE_TEST_CASSANDRA_HOME FIELDLINE_TEST_CASSANDRA_TLS
"$@"
