use fieldline_connectors::ConnectorConfig;
use fieldline_connectors::egress::Egress;
use fieldline_connectors::mail::{MailClient, OutgoingEmail, SendEmailConfig};
use fieldline_testkit::services::{find_mail, service_variable, unique};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

fn client(configuration: Value) -> MailClient {
    let mut full = json!({
        "useSystemSmtpSettings": false,
        "smtpHost": "localhost",
        "smtpPort": service_variable("FIELDLINE_TEST_SMTP_PORT"),
        "username": "alice",
        "password": "alice-secret",
    });
    full.as_object_mut()
        .unwrap()
        .extend(configuration.as_object().unwrap().clone());
    MailClient::new(&SendEmailConfig::from_json(&full).unwrap().smtp, &Egress::open()).unwrap()
}

fn email(subject: &str) -> OutgoingEmail {
    let body = json!({
        "from": "Platform <platform@example.org>", "to": "a@example.org, b@example.org", "cc": null,
        "bcc": "hidden@example.org", "subject": subject, "body": "<b>Grüße</b> <img src=\"cid:logo\">", "html": true,
        "images": {"logo": "data:image/png;base64,iVBORw0KGgo="},
    });
    OutgoingEmail::from_json(&body.to_string()).unwrap()
}

#[tokio::test]
#[ignore = "needs a mail server: tests/services/with-smtp.sh"]
async fn smtp_mails_arrive_in_clear_and_encrypted() {
    let secure = service_variable("FIELDLINE_TEST_SMTPS_PORT");
    for (configuration, encrypted) in [
        (json!({}), false),
        (json!({"enableTls": true, "tlsVersion": "TLSv1.2"}), true),
        (json!({"smtpProtocol": "smtps", "smtpPort": secure}), true),
    ] {
        let subject = unique("subject");
        let client = client(configuration);
        client.check().await.unwrap();
        client.send(&email(&subject)).await.unwrap();
        let (envelope, text) = find_mail(&subject);
        assert_eq!(envelope["from"], "platform@example.org");
        assert_eq!(
            envelope["to"],
            json!(["a@example.org", "b@example.org", "hidden@example.org"])
        );
        assert_eq!(envelope["encrypted"], encrypted);
        assert!(!text.contains("hidden@example.org"));
        for part in [
            "multipart/related",
            "text/html",
            "Content-ID: <logo>",
            "image/png",
            "iVBORw0KGgo=",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
}

#[tokio::test]
#[ignore = "needs a mail server: tests/services/with-smtp.sh"]
async fn smtp_refusals_are_told() {
    let error = client(json!({"password": "guessed-secret"}))
        .send(&email("x"))
        .await
        .unwrap_err();
    assert!(
        error.message.starts_with("Unable to send mail: ") && error.metadata.is_empty(),
        "{error}"
    );
    assert!(!error.message.contains("guessed-secret"));

    let mut wrong = email("x");
    wrong.to = "nobody".to_owned();
    let error = client(json!({})).send(&wrong).await.unwrap_err();
    assert!(
        error.message.contains("'nobody' is not an email address"),
        "{error}"
    );
}

#[tokio::test]
#[ignore = "needs a mail server: tests/services/with-smtp.sh"]
async fn smtp_goes_through_a_proxy() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let proxy = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(client.read_u8().await.unwrap());
        }
        let request = String::from_utf8(request).unwrap();
        let target = request.split(' ').nth(1).unwrap();
        let mut server = TcpStream::connect(target).await.unwrap();
        client
            .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
            .await
            .unwrap();
        let _ = copy_bidirectional(&mut client, &mut server).await;
        request
    });
    let subject = unique("proxied");
    let client = client(json!({
        "smtpProtocol": "smtps", "smtpPort": service_variable("FIELDLINE_TEST_SMTPS_PORT"), "enableProxy": true,
        "proxyHost": "127.0.0.1", "proxyPort": port.to_string(), "proxyUser": "u", "proxyPassword": "p",
    }));
    client.send(&email(&subject)).await.unwrap();
    assert_eq!(find_mail(&subject).0["encrypted"], true);
    let request = proxy.await.unwrap();
    assert!(
        request.contains("Proxy-Authorization: Basic dTpw\r\n"),
        "{request}"
    );
}
