use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use fieldline_connectors::NodeConfig;
use fieldline_connectors::gcp::{PubSubClient, PubSubConfig};
use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Value, json};

use crate::server::{Received, Server, answer};

/// Made for these tests and used nowhere else.
const KEY: &str = include_str!("service-account.key");

/// The key file of a service account whose tokens come from this server.
pub(crate) fn key_file(server: &str) -> String {
    json!({
        "type": "service_account", "client_email": "test@project.iam.gserviceaccount.com", "private_key": KEY,
        "private_key_id": "key-1", "token_uri": format!("{server}/token"),
    })
    .to_string()
}

/// Gives a token to whoever signs with the key of the service account.
pub(crate) fn token(request: &Received) -> String {
    let form = request.form();
    let field = |name: &str| form.iter().find(|(field, _)| field == name).unwrap().1.clone();
    assert_eq!(field("grant_type"), "urn:ietf:params:oauth:grant-type:jwt-bearer");
    let assertion = field("assertion");
    let (signed, signature) = assertion.rsplit_once('.').unwrap();
    let der = PrivatePkcs8KeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap();
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref())
        .verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap())
        .expect("the signature is wrong");
    let part =
        |text: &str| -> Value { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap() };
    let (header, claims) = signed.split_once('.').unwrap();
    assert_eq!(
        part(header),
        json!({"alg": "RS256", "typ": "JWT", "kid": "key-1"})
    );
    let claims = part(claims);
    assert_eq!(claims["iss"], "test@project.iam.gserviceaccount.com");
    assert!(claims["aud"].as_str().unwrap().ends_with("/token"));
    assert_eq!(
        claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(),
        3600
    );
    json!({"access_token": "token-1", "expires_in": 3600, "scope": claims["scope"]}).to_string()
}

fn client(server: &Server) -> PubSubClient {
    let configuration = json!({
        "projectId": "p", "topicName": "t", "serviceAccountKey": key_file(&server.url),
        "serviceAccountKeyFileName": "key.json",
    });
    PubSubClient::with_endpoint(
        &PubSubConfig::from_json(&configuration).unwrap(),
        Some(&server.url),
    )
    .unwrap()
}

#[tokio::test]
async fn pubsub_messages_go_with_a_token_that_is_kept() {
    let server = Server::start(|request| match request.target.as_str() {
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
    let server = Server::start(move |request| {
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
