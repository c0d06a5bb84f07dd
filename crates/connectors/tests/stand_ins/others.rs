use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fieldline_connectors::azure::{AzureIotHubClient, AzureIotHubConfig};
use fieldline_connectors::egress::Egress;
use fieldline_connectors::slack::{SlackClient, SlackConfig};
use fieldline_connectors::sms::{SendSmsConfig, SmsClient, SmsProviderConfig};
use fieldline_connectors::{ConnectorConfig, Secret};
use fieldline_testkit::fakes::azure::{FakeIotHub, is_signed};
use fieldline_testkit::fakes::server::FakeHttpServer;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[tokio::test]
async fn slack_messages_carry_the_token_of_the_bot() {
    let server = FakeHttpServer::always(200, json!({"ok": true})).await;
    let client =
        SlackClient::with_endpoint(&Secret::new("xoxb-1"), Some(&server.url), &Egress::open()).unwrap();
    client.send("C1", "hot: 5 > 3").await.unwrap();
    let request = server.last();
    assert_eq!(request.target, "/chat.postMessage");
    assert_eq!(request.header("authorization"), "Bearer xoxb-1");
    assert_eq!(request.json(), json!({"channel": "C1", "text": "hot: 5 > 3"}));

    let server = FakeHttpServer::always(
        200,
        json!({"ok": false, "error": "missing_scope", "needed": "chat:write"}),
    )
    .await;
    let client =
        SlackClient::with_endpoint(&Secret::new("xoxb-1"), Some(&server.url), &Egress::open()).unwrap();
    let error = client.send("C1", "x").await.unwrap_err();
    assert_eq!(
        error.message,
        "Slack API error: bot token scope 'chat:write' is needed"
    );

    let conversation = json!({"type": "DIRECT", "name": "n"});
    let error = SlackConfig::from_json(&json!({"conversation": conversation})).unwrap_err();
    assert_eq!(error.field(), "conversation.id");
}

#[tokio::test]
async fn twilio_is_told_who_writes_to_whom() {
    let server = FakeHttpServer::always(201, json!({"num_segments": "2"})).await;
    let provider =
        json!({"type": "TWILIO", "accountSid": "AC1", "accountToken": "t", "numberFrom": "+15550001"});
    let config = SmsProviderConfig::from_json(&provider).unwrap();
    let client = SmsClient::with_endpoint(&config, Some(&server.url), &Egress::open()).unwrap();
    assert_eq!(client.send("+4912345", "a & b").await.unwrap().0, 2);
    let request = server.last();
    assert_eq!(request.target, "/2010-04-01/Accounts/AC1/Messages.json");
    assert_eq!(request.header("authorization"), "Basic QUMxOnQ=");
    let expected = [("To", "+4912345"), ("From", "+15550001"), ("Body", "a & b")];
    assert_eq!(
        request.form(),
        expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );

    let server = FakeHttpServer::always(400, json!({"message": "The 'To' number is not valid"})).await;
    let client = SmsClient::with_endpoint(&config, Some(&server.url), &Egress::open()).unwrap();
    let error = client.send("+4912345", "x").await.unwrap_err();
    assert_eq!(
        error.message,
        "Failed to send SMS message - The 'To' number is not valid"
    );
}

/// Takes one connection, and returns the PDUs on it: command and body. Asks once whether the link is alive.
async fn message_centre(listener: TcpListener, count: usize) -> Vec<(u32, Vec<u8>)> {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut pdus = Vec::new();
    while pdus.len() < count {
        let length = stream.read_u32().await.unwrap() as usize;
        let command = stream.read_u32().await.unwrap();
        let status = stream.read_u32().await.unwrap();
        let sequence = stream.read_u32().await.unwrap();
        assert_eq!(status, 0);
        let mut body = vec![0; length - 16];
        stream.read_exact(&mut body).await.unwrap();
        if command == 0x04 {
            put(&mut stream, 0x15, 0, 900, &[]).await;
        }
        if command & 0x8000_0000 == 0 {
            let status = u32::from(command == 0x04 && body.ends_with(b"refuse me")) * 0x45;
            put(&mut stream, command | 0x8000_0000, status, sequence, b"id\0").await;
        }
        pdus.push((command, body));
    }
    pdus
}

async fn put(stream: &mut TcpStream, command: u32, status: u32, sequence: u32, body: &[u8]) {
    let mut pdu = Vec::new();
    for word in [16 + u32::try_from(body.len()).unwrap(), command, status, sequence] {
        pdu.extend(word.to_be_bytes());
    }
    pdu.extend(body);
    stream.write_all(&pdu).await.unwrap();
}

#[tokio::test]
async fn smpp_messages_share_a_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let centre = tokio::spawn(message_centre(listener, 5));
    let node = json!({
        "useSystemSmsSettings": false,
        "smsProviderConfiguration": {
            "type": "SMPP", "protocolVersion": "3.4", "host": "127.0.0.1", "port": port, "systemId": "sys",
            "password": "secret", "bindType": "TX", "sourceAddress": "Field", "sourceTon": null,
            "destinationTon": 1, "codingScheme": 8,
        },
    });
    let config = SendSmsConfig::from_json(&node).unwrap();
    let client = SmsClient::new(&config.sms_provider_configuration.unwrap(), &Egress::open()).unwrap();
    client.send("+4912345", "é").await.unwrap();
    client.send("+4912346", "é").await.unwrap();
    // Both went over one connection, with an answer to each question whether it is alive.
    let pdus = centre.await.unwrap();
    let commands: Vec<u32> = pdus.iter().map(|(command, _)| *command).collect();
    assert_eq!(commands, [0x02, 0x04, 0x8000_0015, 0x04, 0x8000_0015]);
    assert!(
        pdus[3].1.ends_with(b"4912346\0\0\0\0\0\0\0\0\x08\0\x02\0\xE9"),
        "{:?}",
        pdus[3].1
    );
}

#[tokio::test]
async fn smpp_pdus_are_those_of_the_specification() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let centre = tokio::spawn(message_centre(listener, 4));
    let provider = json!({
        "type": "SMPP", "host": "127.0.0.1", "port": port, "systemId": "sys", "password": "secret",
        "sourceAddress": "Field", "destinationTon": 1, "codingScheme": 0,
    });
    let client = SmsClient::new(&SmsProviderConfig::from_json(&provider).unwrap(), &Egress::open()).unwrap();
    client.send("+4912345", "hi").await.unwrap();
    let error = client.send("+4912345", "refuse me").await.unwrap_err();
    assert_eq!(error.message, "message centre answered with status 69");
    let pdus = centre.await.unwrap();
    assert_eq!(pdus[0], (0x02, b"sys\0secret\0\0\x34\0\0\0".to_vec()));
    assert_eq!(
        pdus[1],
        (
            0x04,
            b"\0\x05\0Field\0\x01\x004912345\0\0\0\0\0\0\0\0\0\0\x02hi".to_vec()
        )
    );
    assert_eq!(
        pdus[2].0, 0x8000_0015,
        "the question whether the link is alive was not answered"
    );
    assert_eq!(pdus[3].0, 0x04);
}

#[tokio::test]
async fn azure_hubs_get_a_shared_access_signature() {
    let hub = FakeIotHub::start().await;

    let key = STANDARD.encode("the key of the device");
    let configuration = json!({
        "host": "127.0.0.1", "clientId": "device-1", "topicPattern": "devices/device-1/messages/events/",
        "credentials": {"type": "sas", "sasKey": key, "caCert": hub.certificate},
    });
    let config = AzureIotHubConfig::from_json(&configuration).unwrap();
    assert!(!format!("{config:?}").contains(&key));
    let client = AzureIotHubClient::open_at_port(&config, "node", hub.port, &Egress::open()).unwrap();
    client
        .send("devices/device-1/messages/events/", "{}")
        .await
        .unwrap();

    let seen = hub.message().await;
    assert_eq!(seen["client"], "device-1");
    assert_eq!(seen["user"], "127.0.0.1/device-1/?api-version=2018-06-30");
    assert_eq!(
        (&seen["topic"], &seen["body"]),
        (&json!("devices/device-1/messages/events/"), &json!("{}"))
    );
    is_signed(&seen, "127.0.0.1", b"the key of the device");

    let mut wrong = configuration;
    wrong["credentials"]["sasKey"] = json!("not base 64");
    assert_eq!(
        AzureIotHubConfig::from_json(&wrong).unwrap_err().field(),
        "credentials.sasKey"
    );
}
