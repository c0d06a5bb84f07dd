//! What real services have got, which the scripts in `tests/services` of the repository start.

#![expect(clippy::unwrap_used, reason = "a test fails this way")]

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use lapin::message::BasicGetMessage;
use lapin::options::{BasicGetOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Connection, ConnectionProperties};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdout};
use tokio::sync::Notify;

/// What a script has told about its server.
pub fn service_variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set; run the test by its script"))
}

/// The port of an address that a script has told.
pub fn port(variable: &str) -> u16 {
    service_variable(variable)
        .rsplit_once(':')
        .unwrap()
        .1
        .parse()
        .unwrap()
}

/// A name that no other test uses.
pub fn unique(prefix: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}-{}-{number}", std::process::id())
}

/// Forwards connections until it is told to cut them; new ones are taken on.
#[derive(Debug)]
pub struct TcpProxy {
    /// Its port on 127.0.0.1.
    pub port: u16,
    cut: Arc<Notify>,
}

impl TcpProxy {
    /// Starts a proxy to an address.
    pub async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let cut = Arc::new(Notify::new());
        let cuts = Arc::clone(&cut);
        tokio::spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                let mut server = TcpStream::connect(&server).await.unwrap();
                let cuts = Arc::clone(&cuts);
                tokio::spawn(async move {
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        () = cuts.notified() => {}
                    }
                });
            }
        });
        Self { port, cut }
    }

    /// Ends all connections that there are.
    pub fn cut(&self) {
        self.cut.notify_waiters();
    }
}

/// A subscriber of Mosquitto's.
#[derive(Debug)]
pub struct MosquittoSubscriber {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl MosquittoSubscriber {
    /// Subscribes to a topic.
    pub async fn to(topic: &str) -> Self {
        // Its output is wanted line by line.
        let mut child = tokio::process::Command::new("stdbuf")
            .args([
                "-oL",
                "mosquitto_sub",
                "-h",
                "127.0.0.1",
                "-p",
                &port("FIELDLINE_TEST_MQTT").to_string(),
            ])
            .args(["-u", "alice", "-P", "alice-secret", "-q", "1", "-t", topic, "-d"])
            .args(["-F", "got %t %q %r %p"])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut subscriber = Self { _child: child, lines };
        subscriber.line_with("Subscribed (mid").await;
        subscriber
    }

    /// Waits for a line with a text: `got`, topic, quality of service, retain flag and body of a message.
    pub async fn line_with(&mut self, text: &str) -> String {
        loop {
            let line = self
                .lines
                .next_line()
                .await
                .unwrap()
                .expect("subscriber has ended");
            if line.contains(text) {
                return line;
            }
        }
    }
}

/// What Kafka's own consumer finds in a topic, so many messages, sorted: partition, offset, headers, key and body.
pub fn consume_with_kafka(topic: &str, count: usize) -> Vec<String> {
    let output = Command::new("java")
        .args(["-cp", &service_variable("FIELDLINE_TEST_KAFKA_CLASSPATH")])
        .args([
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            "--from-beginning",
        ])
        .args([
            "--bootstrap-server",
            &service_variable("FIELDLINE_TEST_KAFKA"),
            "--topic",
            topic,
        ])
        .args(["--max-messages", &count.to_string(), "--timeout-ms", "30000"])
        .args(
            ["print.partition", "print.offset", "print.headers", "print.key"]
                .map(|name| format!("--property={name}=true")),
        )
        .output()
        .unwrap();
    let mut lines: Vec<String> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    assert_eq!(lines.len(), count, "{}", String::from_utf8_lossy(&output.stderr));
    lines
}

/// A queue of RabbitMQ's.
#[derive(Debug)]
pub struct RabbitmqQueue {
    /// Its name.
    pub name: String,
    _connection: Connection,
    channel: Channel,
}

impl RabbitmqQueue {
    /// Declares a queue.
    pub async fn declare() -> Self {
        let uri = format!(
            "amqp://guest:guest@{}/%2f",
            service_variable("FIELDLINE_TEST_RABBITMQ")
        );
        let connection = Connection::connect(&uri, ConnectionProperties::default())
            .await
            .unwrap();
        let channel = connection.create_channel().await.unwrap();
        let name = unique("queue");
        let options = QueueDeclareOptions::default();
        channel
            .queue_declare(name.as_str().into(), options, FieldTable::default())
            .await
            .unwrap();
        Self {
            name,
            _connection: connection,
            channel,
        }
    }

    /// The next message in it.
    pub async fn get(&self) -> BasicGetMessage {
        let options = BasicGetOptions { no_ack: true };
        let got = self.channel.basic_get(self.name.as_str().into(), options).await;
        got.unwrap().expect("the queue is empty")
    }
}

/// The envelope and the text of the mail with that subject.
pub fn find_mail(subject: &str) -> (Value, String) {
    let directory = PathBuf::from(service_variable("FIELDLINE_TEST_SMTP_MAILS"));
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let text = std::fs::read_to_string(path.with_extension("eml")).unwrap();
            if text.contains(subject) {
                return (
                    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap(),
                    text,
                );
            }
        }
    }
    panic!("no mail with the subject {subject}");
}
