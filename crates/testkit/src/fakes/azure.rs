//! An Azure IoT hub.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fieldline_codec::{ConnackPacket, MqttProtocolVersion, Packet, ReasonCode, decode_frame, encode_puback};
use ring::hmac;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A hub that takes one device and one message.
#[derive(Debug)]
pub struct FakeIotHub {
    /// Its port on 127.0.0.1, where it speaks TLS.
    pub port: u16,
    /// Its certificate, of the name `hub.example.org`, in PEM.
    pub certificate: String,
    taken: JoinHandle<Value>,
}

impl FakeIotHub {
    /// Starts a hub.
    pub async fn start() -> Self {
        let certified = rcgen::generate_simple_self_signed(vec!["hub.example.org".to_owned()]).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self {
            port: listener.local_addr().unwrap().port(),
            certificate: certified.cert.pem(),
            taken: tokio::spawn(take(listener, Arc::new(tls))),
        }
    }

    /// What the device has sent: `client`, `user` and `password` of its CONNECT, `topic` and `body` of its message.
    pub async fn message(self) -> Value {
        self.taken.await.unwrap()
    }
}

async fn take(listener: TcpListener, tls: Arc<rustls::ServerConfig>) -> Value {
    let (stream, _) = listener.accept().await.unwrap();
    let mut stream = tokio_rustls::TlsAcceptor::from(tls).accept(stream).await.unwrap();
    let (mut input, mut output, mut seen) = (Vec::new(), Vec::new(), json!({}));
    loop {
        if let Some((packet, length)) = decode_frame(&input, 65536, MqttProtocolVersion::V311).unwrap() {
            match packet {
                Packet::Connect(connect) => {
                    seen["client"] = json!(connect.client_id);
                    seen["user"] = json!(connect.username);
                    seen["password"] = json!(connect.password.map(String::from_utf8_lossy));
                    let connack = ConnackPacket::new(ReasonCode::Success, false);
                    connack.encode(MqttProtocolVersion::V311, &mut output).unwrap();
                }
                Packet::Publish(publish) => {
                    seen["topic"] = json!(publish.topic);
                    seen["body"] = json!(String::from_utf8_lossy(publish.payload));
                    encode_puback(publish.packet_id.unwrap(), &mut output);
                }
                other => panic!("{other:?}"),
            }
            input.drain(..length);
            stream.write_all(&output).await.unwrap();
            output.clear();
            if seen.get("topic").is_some() {
                return seen;
            }
        } else if stream.read_buf(&mut input).await.unwrap() == 0 {
            panic!("device has gone");
        }
    }
}

/// Checks the shared access signature that a device has connected with.
pub fn is_signed(seen: &Value, host: &str, key: &[u8]) {
    let token = seen["password"].as_str().unwrap();
    let fields = token.strip_prefix("SharedAccessSignature ").unwrap();
    let field = |name: &str| {
        let query = reqwest::Url::parse(&format!("http://h/?{fields}")).unwrap();
        query
            .query_pairs()
            .find(|(field, _)| field == name)
            .unwrap()
            .1
            .into_owned()
    };
    let expiry: i64 = field("se").parse().unwrap();
    let year = 365 * 24 * 3600;
    assert!((expiry - chrono::Utc::now().timestamp() - year).abs() < 60);
    let signed = format!("{host}\n{expiry}");
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), signed.as_bytes());
    assert_eq!(field("sig"), STANDARD.encode(signature));
}
