//! Loads over TLS, where readable and writable data does not follow the events of the socket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fieldline_codec::QoS;
use fieldline_loadgen::engine::{ClientTls, DeviceProtocol, LoadEngine, LoadPace, LoadPlan};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::fake_server::{Said, Session, StandIn};
use crate::{plan, run};

/// A self-signed certificate for `localhost`, used only here.
const CERTIFICATE: &[u8] = include_bytes!("certificates/server.pem");
const KEY: &[u8] = include_bytes!("certificates/server.key");

fn server_config() -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    Arc::new(config)
}

fn tls(name: &str) -> ClientTls {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(CERTIFICATE).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    ClientTls {
        config: Arc::new(config),
        name: ServerName::try_from(name.to_owned()).unwrap(),
    }
}

/// Writes a few bytes at a time, so that records arrive in pieces.
struct Trickle(TcpStream);

impl Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Trickle {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(&bytes[..bytes.len().min(23)])
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

fn load(server: &StandIn, name: &str, qos: QoS, pace: LoadPace) -> LoadPlan {
    let protocol = DeviceProtocol::Mqtt {
        qos,
        tls: Some(tls(name)),
    };
    plan(server.address, protocol, 3, pace, 0.4)
}

#[test]
fn records_in_pieces_and_many_messages_in_a_record_are_heard() {
    let config = server_config();
    let acknowledged = Arc::new(AtomicU64::new(0));
    let count = acknowledged.clone();
    let mut server = StandIn::start(move |stream, _| {
        let connection = ServerConnection::new(config.clone()).unwrap();
        let mut session = Session::new(StreamOwned::new(connection, Trickle(stream)));
        session.let_in();
        while let Some(said) = session.hear() {
            match said {
                Said::Publish {
                    id,
                    qos: QoS::AtLeastOnce,
                    ..
                } => {
                    session.puback(id.unwrap());
                    count.fetch_add(1, Ordering::SeqCst);
                }
                Said::Publish { id, .. } => session.pubrec(id.unwrap()),
                Said::Pubrel(id) => {
                    session.pubcomp(id);
                    count.fetch_add(1, Ordering::SeqCst);
                }
                Said::Connect(_) | Said::Disconnect => return,
            }
        }
    });
    let mut before = 0;
    for (qos, pace) in [
        (QoS::AtLeastOnce, LoadPace::Closed { in_flight: 50 }),
        (QoS::ExactlyOnce, LoadPace::Closed { in_flight: 5 }),
        (QoS::AtLeastOnce, LoadPace::Open { per_second: 200.0 }),
    ] {
        let (totals, _) = run(load(&server, "localhost", qos, pace));
        assert!(totals.acknowledged >= 80 && totals.failed == 0, "{totals:?}");
        let now = acknowledged.load(Ordering::SeqCst);
        assert_eq!(totals.acknowledged, now - before);
        before = now;
    }
    server.stop();
}

#[test]
fn a_server_that_reads_only_after_it_has_written_is_not_waited_for() {
    let config = server_config();
    let mut server = StandIn::start(move |stream, _| {
        let connection = ServerConnection::new(config.clone()).unwrap();
        let mut session = Session::new(StreamOwned::new(connection, stream));
        session.let_in();
        let mut count = 0;
        while let Some(Said::Publish { id, .. }) = session.hear() {
            count += 1;
            // The client is still writing more than the sockets hold, and must read as much: packets that it ignores.
            if count == 20 {
                let nothing = [0xD0, 0x00].repeat(2_000);
                for _ in 0..4_000 {
                    session.send(&nothing);
                }
            }
            session.puback(id.unwrap());
        }
    });
    let mut plan = load(
        &server,
        "localhost",
        QoS::AtLeastOnce,
        LoadPace::Closed { in_flight: 200 },
    );
    plan.tokens.truncate(1);
    plan.payload = "BYTES:60000".parse().unwrap();
    let (totals, _) = run(plan);
    assert!(totals.acknowledged >= 200 && totals.failed == 0, "{totals:?}");
    server.stop();
}

#[test]
fn a_certificate_of_somebody_else_is_refused_with_the_reason() {
    let config = server_config();
    let server = StandIn::start(move |stream, _| {
        let connection = ServerConnection::new(config.clone()).unwrap();
        let mut session = Session::new(StreamOwned::new(connection, stream));
        while session.hear().is_some() {}
    });
    let mut plan = load(
        &server,
        "example.org",
        QoS::AtLeastOnce,
        LoadPace::Closed { in_flight: 1 },
    );
    plan.reply_timeout = Duration::from_secs(20);
    let error = LoadEngine::new(plan)
        .unwrap()
        .connect(3, &mut |_| {})
        .unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}
