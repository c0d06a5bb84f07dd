//! Sessions with a client of the same library; the tests pass its datagrams on.

use std::net::UdpSocket as StdSocket;
use std::sync::atomic::{AtomicBool, Ordering};

use rtc_dtls::config::ConfigBuilder;
use rtc_dtls::crypto_provider::{CryptoError, RTCCrypto, RTCCryptoProvider, RTCRandom};

use super::*;

const SUITE: CipherSuiteId = CipherSuiteId::Tls_Ecdhe_Ecdsa_With_Aes_128_Gcm_Sha256;

/// A random source that panics once it is told to.
struct Chance {
    provider: Arc<dyn RTCCryptoProvider>,
    panics: AtomicBool,
}

impl RTCCryptoProvider for Chance {
    fn name(&self) -> &'static str {
        "chance"
    }

    fn crypto(&self) -> &dyn RTCCrypto {
        self.provider.crypto()
    }

    fn random(&self) -> &dyn RTCRandom {
        self
    }
}

impl RTCRandom for Chance {
    fn fill(&self, output: &mut [u8]) -> Result<(), CryptoError> {
        assert!(!self.panics.load(Ordering::Relaxed), "as it was told to");
        self.provider.random().fill(output)
    }
}

struct World {
    secure: DtlsServer,
    chance: Arc<Chance>,
}

/// One end of a session.
struct Client {
    socket: StdSocket,
    endpoint: Endpoint,
    server: SocketAddr,
}

impl World {
    async fn new(options: Options) -> Self {
        let provider = crypto_provider::default_provider().unwrap();
        let chance = Arc::new(Chance {
            provider: provider.clone(),
            panics: AtomicBool::new(false),
        });
        let certificate =
            Certificate::generate_self_signed(vec!["localhost".to_owned()], provider.crypto()).unwrap();
        let config = ConfigBuilder::default()
            .with_crypto_provider(chance.clone())
            .with_certificates(vec![certificate])
            .with_cipher_suites(vec![SUITE])
            .build(false, None)
            .unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.writable().await.unwrap();
        let credentials = DtlsCredentials(Arc::new(config));
        Self {
            secure: DtlsServer::new(Arc::new(socket), credentials, options).unwrap(),
            chance,
        }
    }

    fn client(&self, ip: [u8; 4]) -> Client {
        let provider = crypto_provider::default_provider().unwrap();
        let config = ConfigBuilder::default()
            .with_crypto_provider(provider)
            .with_cipher_suites(vec![SUITE])
            .with_insecure_skip_verify(true)
            .build(true, None)
            .unwrap();
        let socket = StdSocket::bind(SocketAddr::from((ip, 0))).unwrap();
        socket.set_nonblocking(true).unwrap();
        let (address, server) = (socket.local_addr().unwrap(), self.secure.local);
        let mut endpoint = Endpoint::new(address, TransportProtocol::UDP, None);
        endpoint
            .connect(std::time::Instant::now(), server, Arc::new(config), None)
            .unwrap();
        Client {
            socket,
            endpoint,
            server,
        }
    }

    /// Passes the client's pending datagrams to the server.
    fn hand_over(&self, client: &mut Client) -> DatagramOutcome {
        let mut all = DatagramOutcome::default();
        while let Some(out) = client.endpoint.poll_transmit() {
            let received = self.secure.receive(client.address(), &out.message);
            all.messages.extend(received.messages);
            all.ended.extend(received.ended);
        }
        all
    }

    /// Runs the handshake until both sides are silent. Returns sessions that were ended by it.
    fn connect(&self, client: &mut Client) -> Vec<CoapPeer> {
        let mut ended = Vec::new();
        let mut buffer = vec![0; 2_048];
        loop {
            ended.extend(self.hand_over(client).ended);
            let mut is_silent = true;
            while let Ok((length, _)) = client.socket.recv_from(&mut buffer) {
                is_silent = false;
                let datagram = BytesMut::from(&buffer[..length]);
                let now = std::time::Instant::now();
                // An error ends the session, which the server side shows.
                let _ = client.endpoint.read(now, client.server, None, datagram);
            }
            if is_silent {
                return ended;
            }
        }
    }

    fn peer(&self, client: &Client) -> Option<CoapPeer> {
        let mut sessions = self.secure.sessions.lock();
        let link = sessions.slot(client.address())?.current.as_ref()?;
        Some(CoapPeer {
            address: client.address(),
            session: link.session,
        })
    }
}

impl Client {
    fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }
}

const HERE: [u8; 4] = [127, 0, 0, 1];

#[tokio::test(start_paused = true)]
async fn a_session_makes_room_for_one_that_is_there_and_for_no_handshake() {
    let options = Options {
        max_sessions: 1,
        ..Options::default()
    };
    let world = World::new(options).await;
    let mut first = world.client(HERE);
    assert!(world.connect(&mut first).is_empty());
    let known = world.peer(&first).expect("a session");
    // The first is not idle and stays; the second is refused when its handshake is done.
    let mut second = world.client(HERE);
    let turned_away = world.connect(&mut second);
    assert_eq!(turned_away.len(), 1);
    assert_eq!((world.peer(&second), world.peer(&first)), (None, Some(known)));
    tokio::time::advance(2 * IDLE).await;
    let mut stranger = world.client(HERE);
    assert!(world.hand_over(&mut stranger).ended.is_empty());
    assert_eq!(world.peer(&first), Some(known), "anybody could have sent that");
    let mut third = world.client(HERE);
    assert_eq!(world.connect(&mut third), [known]);
    assert!(world.peer(&third).is_some());
    assert_eq!(world.secure.sessions.lock().counts(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_address_has_an_eighth_of_the_handshakes() {
    let options = Options {
        max_handshakes: 16,
        ..Options::default()
    };
    let world = World::new(options).await;
    let mut busy: Vec<_> = (0..6).map(|_| world.client([127, 0, 0, 2])).collect();
    for client in &mut busy {
        world.hand_over(client);
    }
    assert_eq!(world.secure.sessions.lock().counts(), (0, 2));
    let mut other = world.client(HERE);
    world.connect(&mut other);
    assert!(world.peer(&other).is_some());
    // Unproven handshakes do not keep other clients of their address out.
    let mut honest = world.client([127, 0, 0, 2]);
    world.connect(&mut honest);
    assert!(world.peer(&honest).is_some());
    assert_eq!(world.secure.sessions.lock().counts(), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_library_ends_the_session_it_comes_from() {
    let world = World::new(Options::default()).await;
    let [mut broken, mut whole] = [HERE, HERE].map(|ip| world.client(ip));
    for client in [&mut broken, &mut whole] {
        world.connect(client);
    }
    let [broken, whole] = [&broken, &whole].map(|client| world.peer(client).expect("a session"));
    assert!(world.secure.send(broken, b"message"));
    world.chance.panics.store(true, Ordering::Relaxed);
    assert!(!world.secure.send(broken, b"message"));
    world.chance.panics.store(false, Ordering::Relaxed);
    assert!(
        !world.secure.send(broken, b"message"),
        "nothing more is done with it"
    );
    assert!(world.secure.send(whole, b"message"));
    assert_eq!(world.secure.tick(tokio::time::Instant::now()), [broken]);
    assert_eq!(world.secure.sessions.lock().counts(), (1, 0));
    // Sessions that are open when the server stops get the same treatment.
    world.chance.panics.store(true, Ordering::Relaxed);
    world.secure.close();
    assert!(!world.secure.send(whole, b"message"));
}
