//! What is bounded: how many may wait, how much is sent, and how much is read of an answer.

use std::fmt::Debug;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use fieldline_connectors::ai::{AiClient, AiConfig, AiModelConfig, ChatRequest, PromptPart, ResponseFormat};
use fieldline_connectors::aws::{SnsClient, SnsConfig};
use fieldline_connectors::egress::Egress;
use fieldline_connectors::gcp::{PubSubClient, PubSubConfig};
use fieldline_connectors::kafka::{KafkaClient, KafkaConfig};
use fieldline_connectors::mail::{MailClient, OutgoingEmail, SendEmailConfig};
use fieldline_connectors::rabbitmq::{RabbitMqClient, RabbitMqConfig};
use fieldline_connectors::slack::SlackClient;
use fieldline_connectors::sms::{SmsClient, SmsProviderConfig};
use fieldline_connectors::{ConnectorConfig, ConnectorError, Secret};
use fieldline_testkit::fakes::google;
use fieldline_testkit::fakes::server::{FakeHttpServer, answer};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Begins so many calls that nobody answers; returns what the next one is told.
async fn one_more<F, T>(count: usize, call: impl Fn() -> F) -> String
where
    F: Future<Output = Result<T, ConnectorError>>,
    T: Debug,
{
    let mut begun = Vec::with_capacity(count);
    for number in 0..count {
        let mut future = Box::pin(call());
        let waits = poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await;
        assert!(waits, "call {number} did not wait");
        begun.push(future);
    }
    call().await.unwrap_err().message
}

fn slack(server: &FakeHttpServer) -> SlackClient {
    SlackClient::with_endpoint(&Secret::new("xoxb-1"), Some(&server.url), &Egress::open()).unwrap()
}

fn sns(server: &FakeHttpServer) -> SnsClient {
    let keys = json!({"accessKeyId": "a", "secretAccessKey": "s"});
    SnsClient::with_endpoint(
        &SnsConfig::from_json(&keys).unwrap(),
        Some(&server.url),
        &Egress::open(),
    )
    .unwrap()
}

fn twilio(server: &FakeHttpServer) -> SmsClient {
    let provider =
        json!({"type": "TWILIO", "accountSid": "AC1", "accountToken": "t", "numberFrom": "+15550001"});
    let provider = SmsProviderConfig::from_json(&provider).unwrap();
    SmsClient::with_endpoint(&provider, Some(&server.url), &Egress::open()).unwrap()
}

fn mail(configuration: serde_json::Value) -> MailClient {
    MailClient::new(
        &SendEmailConfig::from_json(&configuration).unwrap().smtp,
        &Egress::open(),
    )
    .unwrap()
}

fn email() -> OutgoingEmail {
    OutgoingEmail::from_json(r#"{"from": "a@b.c", "to": "a@b.c", "subject": "s", "body": "b"}"#).unwrap()
}

#[tokio::test]
async fn only_so_many_wait_for_a_silent_service() {
    let server = FakeHttpServer::silent().await;
    let client = slack(&server);
    let told = one_more(16 + 1000, || client.send("C1", "x")).await;
    assert_eq!(told, "too many messages wait");

    let client = twilio(&server);
    let told = one_more(16 + 1000, || client.send("+4912345", "x")).await;
    assert_eq!(told, "too many messages wait");

    let client = sns(&server);
    let told = one_more(64 + 10_000, || client.send("arn", "x")).await;
    assert_eq!(told, "too many requests wait");

    let configuration = json!({"serviceAccountKey": google::key_file(&server.url)});
    let client =
        PubSubClient::new(&PubSubConfig::from_json(&configuration).unwrap(), &Egress::open()).unwrap();
    let told = one_more(64 + 10_000, || client.send("x", &[])).await;
    assert_eq!(told, "too many messages wait");

    let configuration = json!({"host": "127.0.0.1", "port": server.port()});
    let client = RabbitMqClient::new(
        &RabbitMqConfig::from_json(&configuration).unwrap(),
        &Egress::open(),
    )
    .unwrap();
    let told = one_more(256 + 10_000, || client.send("", "q", "x")).await;
    assert_eq!(told, "too many messages wait");

    let client =
        mail(json!({"useSystemSmtpSettings": false, "smtpHost": "127.0.0.1", "smtpPort": server.port()}));
    let email = email();
    let told = one_more(8 + 1000, || client.send(&email)).await;
    assert_eq!(told, "Unable to send mail: too many mails wait");

    let model = json!({"provider": "OPENAI", "providerConfig": {"apiKey": "k"}, "modelId": "m"});
    let client = AiClient::with_endpoint(
        &AiModelConfig::from_json(&model).unwrap(),
        Some(&server.url),
        &Egress::open(),
    )
    .unwrap();
    let contents = [PromptPart::Text("q".to_owned())];
    let request = ChatRequest {
        system_prompt: None,
        contents: &contents,
        format: &ResponseFormat::Json,
        timeout: Duration::from_secs(60),
    };
    let told = one_more(32 + 1000, || client.send(&request)).await;
    assert_eq!(told, "too many questions wait");
}

#[tokio::test]
async fn answers_of_services_are_read_up_to_a_size_and_redirects_not_followed() {
    let server = FakeHttpServer::start(|_| answer(200, &[], &"x".repeat((8 << 20) + 1))).await;
    let told = sns(&server).send("arn", "x").await.unwrap_err().message;
    assert_eq!(told, "the answer exceeds 8388608 bytes");
    let told = slack(&server).send("C1", "x").await.unwrap_err().message;
    assert_eq!(told, "the answer exceeds 8388608 bytes");

    let server = FakeHttpServer::start(|_| answer(307, &[("location", "/elsewhere")], "")).await;
    let told = sns(&server).send("arn", "x").await.unwrap_err().message;
    assert!(told.contains("Status Code: 307"), "{told}");
    slack(&server).send("C1", "x").await.unwrap_err();
    twilio(&server).send("+4912345", "x").await.unwrap_err();
    assert_eq!(server.count(), 3, "a redirect was followed");
}

#[tokio::test]
async fn what_is_too_long_is_not_sent() {
    let server = FakeHttpServer::always(201, json!({"num_segments": "23"})).await;
    twilio(&server).send("+4912345", &"é".repeat(1601)).await.unwrap();
    let form = server.last().form();
    let (_, body) = form.iter().find(|(name, _)| name == "Body").unwrap();
    assert_eq!(*body, "é".repeat(1600));

    let centre =
        json!({"type": "SMPP", "host": "127.0.0.1", "port": server.port(), "systemId": "s", "password": "p"});
    let client = SmsClient::new(&SmsProviderConfig::from_json(&centre).unwrap(), &Egress::open()).unwrap();
    let told = client.send("12345", &"x".repeat(255)).await.unwrap_err().message;
    assert_eq!(
        told,
        "message has 255 bytes, more than the 254 of a short message"
    );
    let told = client.send(&"1".repeat(21), "x").await.unwrap_err().message;
    assert_eq!(told, "phone number must have between 1 and 20 characters");

    for limits in [
        json!({"bufferMemory": 500}),
        json!({"otherProperties": {"max.request.size": "500"}}),
    ] {
        let mut configuration = limits;
        configuration["bootstrapServers"] = json!(format!("127.0.0.1:{}", server.port()));
        let config = KafkaConfig::from_json(&configuration).unwrap();
        let client = KafkaClient::new(&config, "producer", &Egress::open()).unwrap();
        let told = client
            .send("t", None, &"x".repeat(501), &[])
            .await
            .unwrap_err()
            .message;
        assert!(told.ends_with("bytes, more than the 500 allowed"), "{told}");
    }

    for field in ["systemPrompt", "userPrompt"] {
        let mut node = json!({"modelId": "i", "userPrompt": "u"});
        node[field] = json!("x".repeat(500_000));
        AiConfig::from_json(&node).unwrap();
        node[field] = json!("x".repeat(500_001));
        assert_eq!(AiConfig::from_json(&node).unwrap_err().field(), field);
    }
    let rabbit = json!({"host": "127.0.0.1", "port": server.port()});
    let client = RabbitMqClient::new(&RabbitMqConfig::from_json(&rabbit).unwrap(), &Egress::open()).unwrap();
    let told = client.send("", &"k".repeat(256), "x").await.unwrap_err().message;
    assert_eq!(told, "the routing key has more than 255 bytes");
}

/// A server that takes one connection, reads a little and answers so.
async fn saying(bytes: Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut input = [0; 512];
        let _ = stream.read(&mut input).await;
        let _ = stream.write_all(&bytes).await;
        // It stays open: only the bound ends the reading.
        tokio::time::sleep(Duration::from_secs(60)).await;
    });
    port
}

#[tokio::test]
async fn peers_that_send_without_end_are_left() {
    let mut pdu = Vec::new();
    for word in [0x7FFF_FFFF_u32, 0x8000_0009, 0, 1] {
        pdu.extend(word.to_be_bytes());
    }
    let port = saying(pdu).await;
    let centre = json!({"type": "SMPP", "host": "127.0.0.1", "port": port, "systemId": "s", "password": "p"});
    let client = SmsClient::new(&SmsProviderConfig::from_json(&centre).unwrap(), &Egress::open()).unwrap();
    let told = client.send("12345", "x").await.unwrap_err().message;
    assert!(told.contains("message centre sent no SMPP"), "{told}");

    let port = saying(b"HTTP/1.1 200 OK\r\n".repeat(1024)).await;
    let client = mail(json!({
        "useSystemSmtpSettings": false, "smtpHost": "127.0.0.1", "smtpPort": 25, "enableProxy": true,
        "proxyHost": "127.0.0.1", "proxyPort": port,
    }));
    let told = client.send(&email()).await.unwrap_err().message;
    assert!(told.contains("proxy sends no end of its answer"), "{told}");
}
