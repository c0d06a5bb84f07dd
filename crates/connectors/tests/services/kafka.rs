use std::time::Instant;

use fieldline_connectors::ConnectorConfig;
use fieldline_connectors::egress::Egress;
use fieldline_connectors::kafka::{KafkaClient, KafkaConfig};
use fieldline_testkit::fakes::pairs;
use fieldline_testkit::services::{consume_with_kafka, service_variable, unique};
use serde_json::{Value, json};

fn client(configuration: &Value) -> KafkaClient {
    let config = KafkaConfig::from_json(configuration).unwrap();
    KafkaClient::new(&config, "producer-fieldline-test", &Egress::open()).unwrap()
}

#[tokio::test]
#[ignore = "needs Kafka: tests/services/with-kafka.sh"]
async fn kafka_has_what_was_acknowledged() {
    let topic = unique("messages");
    let client = client(&json!({
        "bootstrapServers": service_variable("FIELDLINE_TEST_KAFKA"),
        "addMetadataKeyValuesAsKafkaHeaders": true,
        "otherProperties": {"unknown.property": "x"},
    }));
    let metadata = pairs(&[("deviceName", "Büro")]);
    let mut expected = Vec::new();
    for (key, body) in [("a", r#"{"t":1}"#), ("b", r#"{"t":2}"#), ("a", r#"{"t":3}"#)] {
        let outcome = client.send(&topic, Some(key), body, &metadata).await.unwrap();
        assert_eq!(outcome.body, None);
        let [(_, offset), (_, partition), (_, named)] = outcome.metadata.as_slice() else {
            panic!("{:?}", outcome.metadata)
        };
        let names: Vec<_> = outcome.metadata.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["offset", "partition", "topic"]);
        assert_eq!(*named, topic);
        expected.push(format!(
            "Partition:{partition}\tOffset:{offset}\ttb_msg_md_deviceName:Büro\t{key}\t{body}"
        ));
    }
    expected.sort();
    assert_eq!(consume_with_kafka(&topic, 3), expected);
}

#[tokio::test]
#[ignore = "needs Kafka: tests/services/with-kafka.sh"]
async fn kafka_takes_batches_in_each_compression() {
    for compression in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let topic = unique(compression);
        let client = client(&json!({
            "bootstrapServers": service_variable("FIELDLINE_TEST_KAFKA"),
            "linger": 20,
            "acks": "all",
            "otherProperties": {"compression.type": compression},
        }));
        let bodies: Vec<String> = (0..50)
            .map(|number| format!("{number:03} {}", "x".repeat(200)))
            .collect();
        let sent = bodies
            .iter()
            .map(|body| client.send(&topic, Some("same"), body, &[]));
        let outcomes = all(sent.collect()).await;
        let offsets: Vec<&str> = outcomes
            .iter()
            .map(|outcome| outcome.metadata[0].1.as_str())
            .collect();
        let expected: Vec<String> = (0..50).map(|offset| offset.to_string()).collect();
        assert_eq!(offsets, expected, "{compression}");
        let found = consume_with_kafka(&topic, 50);
        assert!(
            bodies
                .iter()
                .all(|body| found.iter().any(|line| line.ends_with(body))),
            "{compression}"
        );
    }
}

/// Runs all at once, in their order.
async fn all<F: Future<Output = Result<T, E>>, T, E: std::fmt::Debug>(futures: Vec<F>) -> Vec<T> {
    let mut pinned: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<T>> = pinned.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, done) in pinned.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(result) = future.as_mut().poll(cx)
            {
                *done = Some(result.unwrap());
            }
        }
        if done.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

fn authenticated(mechanism: &str, password: &str) -> Value {
    let authority = std::fs::read_to_string(service_variable("FIELDLINE_TEST_KAFKA_CA")).unwrap();
    let module = if mechanism == "PLAIN" {
        "plain.PlainLoginModule"
    } else {
        "scram.ScramLoginModule"
    };
    json!({
        "bootstrapServers": service_variable("FIELDLINE_TEST_KAFKA_SASL"),
        "otherProperties": {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": format!(
                "org.apache.kafka.common.security.{module} required username=\"alice\" password=\"{password}\";"
            ),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": authority.replace('\n', "\\n"),
            "request.timeout.ms": "5000",
        },
    })
}

#[tokio::test]
#[ignore = "needs Kafka: tests/services/with-kafka.sh"]
async fn kafka_knows_who_sends_over_tls() {
    for mechanism in ["PLAIN", "SCRAM-SHA-256"] {
        let topic = unique("tls");
        let known = client(&authenticated(mechanism, "alice-secret"));
        known.send(&topic, None, "hello", &[]).await.unwrap();
        assert!(consume_with_kafka(&topic, 1)[0].ends_with("null\thello"));

        let unknown = client(&authenticated(mechanism, "guessed-secret"));
        let error = unknown.send(&topic, None, "hello", &[]).await.unwrap_err();
        assert_eq!(error.metadata, [("error".to_owned(), error.message.clone())]);
        assert!(!error.message.contains("guessed-secret"), "{}", error.message);
    }
}

#[tokio::test]
async fn a_kafka_that_is_not_there_fails_messages_soon() {
    // Taken and given back: nobody listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let client = client(&json!({
        "bootstrapServers": format!("127.0.0.1:{port}"),
        "otherProperties": {"request.timeout.ms": "500"},
    }));
    let error = client.send("t", None, "x", &[]).await.unwrap_err();
    assert!(error.message.starts_with("not connected"), "{error}");
    let start = Instant::now();
    client.send("t", None, "x", &[]).await.unwrap_err();
    assert!(
        start.elapsed().as_millis() < 400,
        "the pause between attempts was not kept"
    );
}
