use std::sync::Arc;

use fieldline_connectors::egress::Egress;
use fieldline_connectors::rest::{RestBody, RestCallClient, RestConfig, RestRequest, RestSettings};
use fieldline_connectors::{ConnectorConfig, ConnectorError, ConnectorOutcome};
use fieldline_testkit::fakes::server::{FakeHttpServer, answer};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn client(configuration: &Value) -> RestCallClient {
    RestCallClient::new(
        &RestConfig::from_json(configuration).unwrap(),
        &RestSettings::default(),
        &Egress::open(),
    )
    .unwrap()
}

async fn send(client: &RestCallClient, url: &str, body: &str) -> Result<ConnectorOutcome, ConnectorError> {
    let request = RestRequest {
        url,
        query: Some(&[]),
        headers: &[],
        body: RestBody::Message(body),
    };
    client.send(&request).await
}

fn value<'a>(metadata: &'a [(String, String)], key: &str) -> Option<&'a str> {
    metadata
        .iter()
        .find(|(name, _)| name == key)
        .map(|(_, value)| value.as_str())
}

#[tokio::test]
async fn answers_become_body_and_metadata() {
    let headers = [
        ("content-type", "application/json"),
        ("x-many", "1"),
        ("x-many", "2"),
        ("etag", "e"),
    ];
    let server = FakeHttpServer::start(move |_| answer(201, &headers, r#"{"ok":1}"#)).await;
    let credentials = json!({"type": "basic", "username": "u", "password": "p"});
    let client = client(&json!({"requestMethod": "PUT", "credentials": credentials}));
    let query = [("q x".to_owned(), "a+b".to_owned())];
    let headers = [("X-Own".to_owned(), "h".to_owned())];
    let url = format!("{}/path", server.url);
    let body = RestBody::Message(r#"{"t":1}"#);
    let outcome = client
        .send(&RestRequest {
            url: &url,
            query: Some(&query),
            headers: &headers,
            body,
        })
        .await
        .unwrap();
    assert_eq!(outcome.body.as_deref(), Some(r#"{"ok":1}"#));
    for (key, expected) in [
        ("status", "CREATED"),
        ("statusCode", "201"),
        ("statusReason", "Created"),
        ("Content-Type", "application/json"),
        ("X-Many", r#"["1","2"]"#),
        ("ETag", "e"),
    ] {
        assert_eq!(value(&outcome.metadata, key), Some(expected), "{key}");
    }
    let request = server.last();
    assert_eq!(
        (request.method.as_str(), request.target.as_str()),
        ("PUT", "/path?q%20x=a%2Bb")
    );
    assert_eq!(request.header("authorization"), "Basic dTpw");
    assert_eq!(
        (request.header("x-own"), request.header("content-type")),
        ("h", "application/json")
    );
    assert_eq!(request.body, r#"{"t":1}"#);
}

#[tokio::test]
async fn anything_but_success_is_a_failure() {
    let server = FakeHttpServer::start(|request| match request.target.as_str() {
        "/moved" => answer(302, &[("location", "/elsewhere")], "there"),
        _ => answer(404, &[], "nothing here"),
    })
    .await;
    let client = client(&json!({}));
    let url = format!("{}/x?key=hidden", server.url);
    let error = send(&client, &url, "{}").await.unwrap_err();
    assert_eq!(error.message, format!("404 Not Found from POST {}/x", server.url));
    for (key, expected) in [
        ("error", error.message.as_str()),
        ("status", "Not Found"),
        ("statusCode", "404"),
        ("error_body", "nothing here"),
    ] {
        assert_eq!(value(&error.metadata, key), Some(expected), "{key}");
    }
    let error = send(&client, &format!("{}/moved", server.url), "{}")
        .await
        .unwrap_err();
    for (key, expected) in [
        ("status", "FOUND"),
        ("statusCode", "302"),
        ("statusReason", "Found"),
        ("error_body", "there"),
        ("Location", "/elsewhere"),
    ] {
        assert_eq!(value(&error.metadata, key), Some(expected), "{key}");
    }
    assert_eq!(server.count(), 2, "a redirect was followed");
}

#[tokio::test]
async fn bodies_are_what_the_configuration_says() {
    let server = FakeHttpServer::start(|_| answer(204, &[], "")).await;
    let plain = client(&json!({"trimDoubleQuotes": true}));
    let outcome = send(&plain, &server.url, r#""a \"b\"""#).await.unwrap();
    assert_eq!(
        outcome.body.as_deref(),
        Some("{}"),
        "an empty answer is an empty object"
    );
    assert_eq!(server.last().body, r#"a "b""#);
    assert_eq!(server.last().header("content-type"), "text/plain;charset=UTF-8");

    let none = client(&json!({"ignoreRequestBody": true}));
    send(&none, &server.url, "no JSON").await.unwrap();
    assert_eq!(server.last().body, "");

    let json = client(&json!({"requestBodyTemplate": "x"}));
    let request = RestRequest {
        url: &server.url,
        query: None,
        headers: &[],
        body: RestBody::Template("{broken"),
    };
    let error = json.send(&request).await.unwrap_err();
    assert_eq!(
        value(&error.metadata, "error"),
        Some("Request body template produced invalid JSON")
    );
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn answers_that_are_too_large_or_late_are_failures() {
    let server = FakeHttpServer::start(|_| answer(200, &[], &"x".repeat(3000))).await;
    let small = client(&json!({"maxInMemoryBufferSizeInKb": 1}));
    let error = send(&small, &server.url, "{}").await.unwrap_err();
    assert!(
        error
            .message
            .ends_with("exceeded limit on max bytes to buffer: 1024"),
        "{error}"
    );
    assert_eq!(value(&error.metadata, "statusCode"), Some("200"));

    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/?token=hidden", silent.local_addr().unwrap());
    let error = send(&client(&json!({"readTimeoutMs": 50})), &url, "{}")
        .await
        .unwrap_err();
    assert_eq!(error.message, "no answer in time");

    let settings = RestSettings {
        max_parallel_requests: 1,
        max_pending_requests: 0,
        ..RestSettings::default()
    };
    let busy = RestCallClient::new(&RestConfig::default(), &settings, &Egress::open()).unwrap();
    let first = send(&busy, &url, "{}");
    tokio::select! {
        biased;
        _ = first => panic!("the silent server has answered"),
        second = send(&busy, &url, "{}") => {
            assert_eq!(second.unwrap_err().message, "Max pending requests limit exceeded!");
        }
    }
}

#[test]
fn wrong_configurations_name_the_field() {
    for (configuration, field) in [
        (json!({"requestMethod": "FETCH"}), "requestMethod"),
        (json!({"restEndpointUrlPattern": ""}), "restEndpointUrlPattern"),
        (json!({"readTimeoutMs": "soon"}), "readTimeoutMs"),
        (json!({"enableProxy": true, "proxyHost": "h"}), "proxyPort"),
        (
            json!({"queryParams": [{"key": "k", "value": null}]}),
            "queryParams[0]",
        ),
        (json!({"headers": []}), "headers"),
        (
            json!({"credentials": {"type": "cert.PEM", "caCert": "x"}}),
            "credentials.caCert",
        ),
    ] {
        assert_eq!(RestConfig::from_json(&configuration).unwrap_err().field(), field);
    }
    let config = RestConfig::from_json(&json!({"maxInMemoryBufferSizeInKb": 25001})).unwrap();
    let error = RestCallClient::new(&config, &RestSettings::default(), &Egress::open()).unwrap_err();
    assert_eq!(error.field(), "maxInMemoryBufferSizeInKb");
    let old =
        RestConfig::from_json(&json!({"useRedisQueueForMsgPersistence": false, "proxyPort": "80"})).unwrap();
    assert_eq!((old.query_params, old.proxy_port), (None, 80));
}

#[tokio::test]
async fn requests_go_through_the_proxy() {
    let proxy = FakeHttpServer::start(|_| answer(200, &[], "{}")).await;
    let port = proxy.url.rsplit_once(':').unwrap().1;
    let client = client(&json!({
        "enableProxy": true, "proxyHost": "127.0.0.1", "proxyPort": port, "proxyUser": "u", "proxyPassword": "p",
    }));
    let shown = format!("{client:?}");
    assert!(!shown.contains("dTpw") && !shown.contains("u:p"), "{shown}");
    send(&client, "http://nowhere.invalid/path", "{}").await.unwrap();
    assert_eq!(proxy.last().target, "http://nowhere.invalid/path");
    assert_eq!(proxy.last().header("proxy-authorization"), "Basic dTpw");
}

/// A server that speaks TLS and asks for a certificate of the authority.
async fn secure_server(authority: &Issuer<'_, KeyPair>, root: &rcgen::Certificate) -> u16 {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let cert = params.signed_by(&key, authority).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(root.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients =
        rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients.build().unwrap())
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let mut request = vec![0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
                    .await;
            });
        }
    });
    port
}

/// A key of these tests, and the same encrypted by `openssl pkcs8 -topk8` with the password "open sesame".
const KEY: &str = include_str!("client.key");
const ENCRYPTED: &str = include_str!("client-encrypted.key");

#[tokio::test]
async fn certificates_prove_both_sides() {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = params.self_signed(&key).unwrap();
    let authority = Issuer::new(params, key);
    let port = secure_server(&authority, &root).await;
    let url = format!("https://localhost:{port}/");

    let own = KeyPair::from_pem(KEY).unwrap();
    let cert = CertificateParams::new(vec!["client".to_owned()])
        .unwrap()
        .signed_by(&own, &authority)
        .unwrap();
    let identity = |key: &str, password: &str| {
        json!({"credentials": {
            "type": "cert.PEM", "caCert": root.pem(), "cert": cert.pem(), "privateKey": key, "password": password,
        }})
    };
    send(&client(&identity(KEY, "")), &url, "{}").await.unwrap();

    send(&client(&identity(ENCRYPTED, "open sesame")), &url, "{}")
        .await
        .unwrap();
    let error = RestConfig::from_json(&identity(ENCRYPTED, "wrong")).unwrap_err();
    assert_eq!(error.field(), "credentials.password");

    let trusting = client(&json!({"credentials": {"type": "cert.PEM", "caCert": root.pem()}}));
    assert!(
        send(&trusting, &url, "{}").await.is_err(),
        "the server takes anybody"
    );
    let error = send(&client(&json!({})), &url, "{}").await.unwrap_err();
    assert!(error.message.contains("certificate"), "{error}");
}
