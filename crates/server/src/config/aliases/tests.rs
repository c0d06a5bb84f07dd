//! The published compose files, and what is wrong in them.

use super::*;

fn aliased(pairs: &[(&str, &str)]) -> AliasedSettings {
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    read(&pairs.iter().map(owned).collect())
}

fn value(settings: &AliasedSettings, path: &str) -> Option<Value> {
    let found = settings.values.iter().find(|(one, ..)| *one == path);
    found.map(|(_, value, _)| value.clone())
}

#[test]
fn the_published_compose_files_name_the_database_and_the_ports() {
    let settings = aliased(&[
        ("ZOOKEEPER_ENABLED", "true"),
        ("ZOOKEEPER_URL", "zookeeper:2181"),
        ("JS_EVALUATOR", "remote"),
        ("TRANSPORT_TYPE", "remote"),
        ("METRICS_ENABLED", "true"),
        ("DATABASE_TS_TYPE", "sql"),
        ("SPRING_DRIVER_CLASS_NAME", "org.postgresql.Driver"),
        (
            "SPRING_DATASOURCE_URL",
            "jdbc:postgresql://postgres:5432/thingsboard",
        ),
        ("SPRING_DATASOURCE_USERNAME", "postgres"),
        ("SPRING_DATASOURCE_PASSWORD", "p@ss/w:rd"),
        ("HTTP_BIND_PORT", "9090"),
        ("COAP_BIND_ADDRESS", "::"),
        ("PATH", "/bin"),
    ]);
    assert_eq!(settings.problems, Vec::<String>::new());
    let texts = [
        (
            "sql.url",
            "postgres://postgres:p%40ss%2Fw%3Ard@postgres:5432/thingsboard",
        ),
        ("series.kind", "sql"),
        ("http.listen", "0.0.0.0:9090"),
        ("coap.listen", "[::]:5683"),
    ];
    for (path, expected) in texts {
        assert_eq!(value(&settings, path), Some(Value::from(expected)), "{path}");
    }
    assert_eq!(value(&settings, "mqtts.listen"), None);
    let without_effect = [
        "JS_EVALUATOR",
        "METRICS_ENABLED",
        "TRANSPORT_TYPE",
        "ZOOKEEPER_ENABLED",
        "ZOOKEEPER_URL",
    ];
    assert_eq!(settings.without_effect, without_effect);
}

#[test]
fn queues_on_kafka_are_the_journal_on_kafka_and_others_are_without_effect() {
    let settings = aliased(&[
        ("TB_QUEUE_TYPE", "kafka"),
        ("TB_KAFKA_SERVERS", "kafka:9092"),
        ("TB_QUEUE_PREFIX", "iot"),
        ("TB_QUEUE_KAFKA_REPLICATION_FACTOR", "3"),
        ("TB_KAFKA_BATCH_SIZE", "128"),
    ]);
    let values = [
        ("journal.kind", Value::from("kafka")),
        ("journal.kafka.servers", Value::from("kafka:9092")),
        ("journal.kafka.prefix", Value::from("iot")),
        ("journal.kafka.replication", Value::from(3)),
    ];
    for (path, expected) in values {
        assert_eq!(value(&settings, path), Some(expected), "{path}");
    }
    assert_eq!(settings.without_effect, ["TB_KAFKA_BATCH_SIZE"]);
    let settings = aliased(&[("TB_QUEUE_TYPE", "kafka")]);
    assert_eq!(
        value(&settings, "journal.kafka.servers"),
        Some(Value::from("localhost:9092"))
    );
    let settings = aliased(&[("TB_QUEUE_TYPE", "in-memory"), ("TB_KAFKA_SERVERS", "kafka:9092")]);
    assert_eq!(settings.values.len(), 0);
    assert_eq!(settings.without_effect, ["TB_KAFKA_SERVERS", "TB_QUEUE_TYPE"]);
}

#[test]
fn parameters_of_a_jdbc_address_are_kept_where_they_mean_something() {
    let url =
        "jdbc:postgresql://db/tb?ssl=true&reWriteBatchedInserts=true&currentSchema=iot&user=a%40b&password=x";
    assert_eq!(
        postgres_url(url, Some("other"), None).unwrap(),
        "postgres://a%40b:x@db/tb?sslmode=verify-full&options[search_path]=iot"
    );
    for wrong in [
        "jdbc:hsqldb:mem:tb",
        "jdbc:postgresql://db",
        "jdbc:postgresql:///tb",
        "jdbc:postgresql://a,b/tb",
    ] {
        assert!(postgres_url(wrong, None, None).is_err(), "{wrong}");
    }
}

#[test]
fn what_belongs_to_a_database_that_is_not_named_is_without_effect() {
    let settings = aliased(&[
        ("DATABASE_TS_TYPE", "cassandra"),
        ("SPRING_DATASOURCE_URL", ""),
        ("SPRING_DATASOURCE_USERNAME", "postgres"),
    ]);
    assert_eq!((settings.values.len(), settings.problems.len()), (0, 0));
    assert_eq!(
        settings.without_effect,
        ["DATABASE_TS_TYPE", "SPRING_DATASOURCE_USERNAME"]
    );
    let named = ("SPRING_DATASOURCE_URL", "jdbc:postgresql://db/tb");
    let refused = aliased(&[named, ("DATABASE_TS_TYPE", "influx")]);
    assert!(
        refused.problems[0].contains("expected sql, timescale or cassandra"),
        "{refused:?}"
    );
}

#[test]
fn time_series_in_cassandra_are_where_the_published_compose_files_have_them() {
    let settings = aliased(&[
        ("DATABASE_TS_TYPE", "cassandra"),
        ("SPRING_DATASOURCE_URL", "jdbc:postgresql://db/tb"),
        ("CASSANDRA_URL", "cassandra:9042"),
        ("CASSANDRA_HOST", "cassandra"),
        ("CASSANDRA_PASSWORD", "unused"),
    ]);
    assert_eq!(settings.problems, Vec::<String>::new());
    for (path, expected) in [
        ("series.kind", "cassandra"),
        ("cassandra.nodes", "cassandra:9042"),
        ("cassandra.keyspace", "thingsboard"),
        ("cassandra.replication", "SimpleStrategy:1"),
    ] {
        assert_eq!(value(&settings, path), Some(Value::from(expected)), "{path}");
    }
    assert_eq!(value(&settings, "cassandra.password"), None);
    assert_eq!(settings.without_effect, ["CASSANDRA_HOST", "CASSANDRA_PASSWORD"]);
    let with_user = aliased(&[
        ("DATABASE_TS_TYPE", "cassandra"),
        ("SPRING_DATASOURCE_URL", "jdbc:postgresql://db/tb"),
        ("CASSANDRA_USE_CREDENTIALS", "true"),
        ("CASSANDRA_USERNAME", "iot"),
        ("CASSANDRA_PASSWORD", "secret"),
        ("CASSANDRA_USE_SSL", "true"),
        ("CASSANDRA_SSL_HOSTNAME_VALIDATION", "false"),
        ("CASSANDRA_SSL_TRUST_STORE", "/tls/trusted.jks"),
    ]);
    assert_eq!(value(&with_user, "cassandra.user"), Some(Value::from("iot")));
    assert_eq!(
        value(&with_user, "cassandra.password"),
        Some(Value::from("secret"))
    );
    assert_eq!(value(&with_user, "cassandra.tls"), Some(Value::Boolean(true)));
    assert_eq!(
        value(&with_user, "cassandra.verify-hostname"),
        Some(Value::Boolean(false))
    );
    assert_eq!(with_user.without_effect, ["CASSANDRA_SSL_TRUST_STORE"]);
}

#[test]
fn a_server_runs_where_it_is_switched_on() {
    let off = aliased(&[("MQTT_SSL_ENABLED", "false"), ("MQTT_SSL_BIND_PORT", "8884")]);
    assert_eq!((off.values.len(), off.problems.len()), (0, 0));
    let on = aliased(&[
        ("MQTT_SSL_ENABLED", "TRUE"),
        ("MQTT_SSL_PEM_CERT", "/tls/server.pem"),
    ]);
    assert_eq!(value(&on, "mqtts.listen"), Some(Value::from("0.0.0.0:8883")));
    assert_eq!(
        value(&on, "mqtts.certificate"),
        Some(Value::from("/tls/server.pem"))
    );
}

#[test]
fn a_refusal_names_the_variable_and_repeats_no_secret() {
    for (name, text, expected) in [
        (
            "HTTP_BIND_PORT",
            "http",
            "HTTP_BIND_PORT (`http.listen`): expected a port",
        ),
        ("MQTT_BIND_ADDRESS", "localhost", "expected an IP address"),
        (
            "SPRING_DATASOURCE_URL",
            "postgresql://u:hunter2@db/tb",
            "expected jdbc:postgresql",
        ),
        ("JWT_TOKEN_EXPIRATION_TIME", "2h", "a whole number of seconds"),
    ] {
        let problems = aliased(&[(name, text)]).problems.join("\n");
        assert!(problems.contains(expected), "{name}: {problems}");
        assert!(!problems.contains("hunter2"), "{problems}");
    }
}
