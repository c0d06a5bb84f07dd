use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fieldline_connectors::ConnectorConfig;
use fieldline_connectors::egress::Egress;
use fieldline_connectors::gcp::{PubSubClient, PubSubConfig};
use fieldline_testkit::fakes::google::{key_file, token};
use fieldline_testkit::fakes::server::{FakeHttpServer, answer};
use serde_json::json;

fn client(server: &FakeHttpServer) -> PubSubClient {
    let configuration = json!({
        "projectId": "p", "topicName": "t", "serviceAccountKey": key_file(&server.url),
        "serviceAccountKeyFileName": "key.json",
    });
    PubSubClient::with_endpoint(
        &PubSubConfig::from_json(&configuration).unwrap(),
        Some(&server.url),
        &Egress::open(),
    )
    .unwrap()
}

#[tokio::test]
async fn pubsub_messages_go_with_a_token_that_is_kept() {
    let server = FakeHttpServer::start(|request| match request.target.as_str() {
        "/token" => answer(200, &[], &token(request)),
        "/v1/projects/p/topics/t:publish" if request.header("authorization") == "Bearer token-1" => {
            answer(200, &[], r#"{"messageIds":["17"]}"#)
        }
        _ => answer(403, &[], r#"{"error":{"message":"forbidden"}}"#),
    })
    .await;
    let client = client(&server);
    let attributes = [("k".to_owned(), "v".to_owned())];
    for _ in 0..3 {
        let outcome = client.send(r#"{"t":1}"#, &attributes).await.unwrap();
        assert_eq!(outcome.metadata, [("messageId".to_owned(), "17".to_owned())]);
    }
    assert_eq!(server.count(), 4, "the token was not kept");
    let data = STANDARD.encode(r#"{"t":1}"#);
    assert_eq!(
        server.last().json(),
        json!({"messages": [{"data": data, "attributes": {"k": "v"}}]})
    );
}

#[tokio::test]
async fn pubsub_tries_again_what_may_pass() {
    let calls = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counted = std::sync::Arc::clone(&calls);
    let server = FakeHttpServer::start(move |request| {
        if request.target == "/token" {
            return answer(200, &[], &token(request));
        }
        match counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => answer(503, &[], "{}"),
            1 => answer(200, &[], r#"{"messageIds":["18"]}"#),
            _ => answer(404, &[], r#"{"error":{"message":"no such topic"}}"#),
        }
    })
    .await;
    let client = client(&server);
    assert_eq!(client.send("x", &[]).await.unwrap().metadata[0].1, "18");
    let error = client.send("x", &[]).await.unwrap_err();
    assert_eq!(error.message, "404 Not Found no such topic");
    assert_eq!(calls.load(std::sync::atomic::Ordering::Relaxed), 3);
}

#[test]
fn a_wrong_key_file_is_named() {
    for key in ["", "{}", r#"{"client_email":"a","private_key":"-----BEGIN"}"#] {
        let error = PubSubConfig::from_json(&json!({"serviceAccountKey": key})).unwrap_err();
        assert_eq!(error.field(), "serviceAccountKey");
    }
}
