//! Keeps bridges up until the program stops.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fieldline_codec::{
    MqttProperty, MqttPropertyBuf, MqttProtocolVersion, QoS, RetainHandling, SubscriptionOptions,
};
use fieldline_connectors::egress::Egress;
use fieldline_connectors::mqtt::MqttDialer;
use fieldline_connectors::{Backoff, CertPemCredentials, ClientCredentials, Secret};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::carrier::{BothSides, Carrier, CarrierCounts, Side, Translation, stopped};
use crate::devices::DeviceTranslation;
use crate::feeder::Feeder;
use crate::leg::{BridgeLeg, LegLogin, MAX_PACKET};
use crate::options::{BrokerBridge, DeviceBridge, Options};
use crate::retries::{FIRST_PAUSE, LONGEST_PAUSE};
use crate::sinks::MessageSink;
use crate::topics::TopicTranslation;

/// A connection that has lasted for so long begins with short pauses again.
const STEADY: Duration = Duration::from_secs(30);
/// What was read of the broker of this program before the other side was there is old after so long, and asked for again.
const STALE: Duration = Duration::from_secs(2);
/// Most messages of QoS 1 that the broker of this program sends before the first of them is acknowledged: for another broker, where
/// they are all in memory; and for a sink, where those that fail for a long time must not keep the others from being sent.
const CARRIER_WINDOW: u16 = 100;
const MIN_WINDOW: u16 = 4;
const SINK_WINDOW: u16 = 1_000;
/// Most memory for them where all are as large as they may be, bytes. A sink is not read beyond its own bound.
const WINDOW_BYTES: usize = 64 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const KEEP_ALIVE_S: u16 = 60;
/// Session expiry that is asked for on both sides, seconds: a week.
const SESSION_EXPIRY_S: u32 = 604_800;

/// The broker of this program.
pub trait LocalBroker: Send + Sync {
    /// Opens a connection for the client of a bridge, which needs no credentials.
    ///
    /// # Errors
    /// The broker stops, or the system has no files left.
    fn connect(&self) -> io::Result<UnixStream>;

    /// The client identifier of a bridge, under which nobody else can connect.
    fn client_id(&self, bridge: &str) -> String;

    /// The filters to which the session of a client has subscribed.
    fn filters(&self, client_id: &str) -> Vec<String>;

    /// The largest packet that clients may send, bytes.
    fn max_packet(&self) -> usize;
}

/// The running bridges.
pub struct BridgeRunner {
    stop: watch::Sender<bool>,
    bridges: parking_lot::Mutex<JoinSet<()>>,
}

/// What a bridge connects to.
struct RemoteSide {
    dialer: MqttDialer,
    version: MqttProtocolVersion,
    client_id: String,
    username: Option<String>,
    password: Option<String>,
    keep_alive: u16,
    session_expiry_s: u32,
}

impl BridgeRunner {
    /// Starts all bridges. `devices` is where the platform takes MQTT of devices, in packets of `max_packet` bytes.
    ///
    /// # Errors
    /// Certificates or keys of a bridge cannot be read; the text says whose.
    pub fn start(
        options: &Options,
        local: &Arc<dyn LocalBroker>,
        devices: SocketAddr,
        max_packet: usize,
    ) -> Result<Self, String> {
        metrics::describe_counter!("bridge_messages_total", "Messages that a bridge has carried");
        metrics::describe_counter!(
            "bridge_refused_messages_total",
            "Messages that a side of a bridge has not taken"
        );
        metrics::describe_gauge!(
            "bridge_connected",
            "Whether a bridge is connected on both sides, and the other one takes messages"
        );
        let of = |name: &str| {
            let name = name.to_owned();
            move |error: String| format!("bridge `{name}`: {error}")
        };
        let mut targets = Vec::new();
        for bridge in &options.brokers {
            let remote = RemoteSide::of_broker(bridge).map_err(of(&bridge.name))?;
            let translation = Box::new(TopicTranslation::new(&bridge.topics));
            targets.push((&bridge.name, Target::Side(Box::new(remote), translation)));
        }
        for bridge in &options.devices {
            let remote = RemoteSide::of_devices(bridge, devices).map_err(of(&bridge.name))?;
            let translation = Box::new(DeviceTranslation::new(bridge, max_packet));
            targets.push((&bridge.name, Target::Side(Box::new(remote), translation)));
        }
        for sink in &options.http {
            let opened = MessageSink::http(sink).map_err(of(&sink.name))?;
            targets.push((&sink.name, Target::Sink(Arc::new(opened), sink.filters.clone())));
        }
        for sink in &options.kafka {
            let opened = MessageSink::kafka(sink).map_err(of(&sink.name))?;
            targets.push((&sink.name, Target::Sink(Arc::new(opened), sink.filters.clone())));
        }
        let stop = watch::Sender::new(false);
        let mut bridges = JoinSet::new();
        for (name, target) in targets {
            bridges.spawn(run(name.clone(), local.clone(), target, stop.subscribe()));
        }
        Ok(Self {
            stop,
            bridges: parking_lot::Mutex::new(bridges),
        })
    }

    /// Ends all bridges, within `patience`.
    pub async fn stop(&self, patience: Duration) {
        self.stop.send_replace(true);
        let mut bridges = std::mem::take(&mut *self.bridges.lock());
        let _ = tokio::time::timeout(patience, async { while bridges.join_next().await.is_some() {} }).await;
    }
}

impl RemoteSide {
    fn of_broker(bridge: &BrokerBridge) -> Result<Self, String> {
        let (host, port) = bridge.host_and_port().ok_or("no address")?;
        let read = |path: &Option<PathBuf>| match path {
            Some(path) => {
                std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
            }
            None => Ok(String::new()),
        };
        let tls = match bridge.tls {
            true => Some(ClientCredentials::CertPem(CertPemCredentials {
                ca_cert: read(&bridge.authorities)?,
                cert: read(&bridge.certificate)?,
                private_key: Secret::new(read(&bridge.private_key)?),
                password: Secret::default(),
            })),
            false => None,
        };
        Ok(Self {
            dialer: dialer(host, port, tls.as_ref())?,
            version: match bridge.version {
                4 => MqttProtocolVersion::V311,
                _ => MqttProtocolVersion::V5,
            },
            client_id: bridge.remote_client_id(),
            username: bridge.username.clone(),
            password: bridge.password.clone(),
            keep_alive: bridge.keep_alive,
            session_expiry_s: SESSION_EXPIRY_S,
        })
    }

    fn of_devices(bridge: &DeviceBridge, platform: SocketAddr) -> Result<Self, String> {
        let address = reachable(platform);
        Ok(Self {
            dialer: dialer(&address.ip().to_string(), address.port(), None)?,
            version: MqttProtocolVersion::V5,
            client_id: format!("fieldline-{}", bridge.name),
            username: Some(bridge.token.clone()),
            password: None,
            keep_alive: KEEP_ALIVE_S,
            session_expiry_s: 0,
        })
    }
}

/// Where a program on this machine reaches what listens at an address.
pub fn reachable(mut listening: SocketAddr) -> SocketAddr {
    if listening.ip().is_unspecified() {
        listening.set_ip(match listening {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    listening
}

fn dialer(host: &str, port: u16, tls: Option<&ClientCredentials>) -> Result<MqttDialer, String> {
    MqttDialer::new((host, port), CONNECT_TIMEOUT, tls, &Egress::open()).map_err(|error| error.to_string())
}

/// What a bridge carries messages to.
enum Target {
    Side(Box<RemoteSide>, Box<dyn Translation>),
    Sink(Arc<MessageSink>, Vec<String>),
}

impl Target {
    /// Names it in messages.
    fn peer(&self) -> String {
        match self {
            Self::Side(remote, _) => remote.dialer.broker(),
            Self::Sink(sink, _) => sink.peer(),
        }
    }

    /// What the broker of this program is asked for.
    fn filters(&self) -> Vec<(String, SubscriptionOptions)> {
        match self {
            Self::Side(_, translation) => translation.filters(Side::Local),
            Self::Sink(_, filters) => {
                let options = SubscriptionOptions {
                    retain_as_published: true,
                    retain_handling: RetainHandling::SendIfNew,
                    ..SubscriptionOptions::new(QoS::AtLeastOnce)
                };
                filters.iter().map(|filter| (filter.clone(), options)).collect()
            }
        }
    }

    /// Most messages of QoS 1 that are under way, of `max_packet` bytes at most.
    fn window(&self, max_packet: usize) -> u16 {
        match self {
            Self::Side(..) => {
                let fitting = u16::try_from(WINDOW_BYTES / max_packet.max(1)).unwrap_or(u16::MAX);
                fitting.clamp(MIN_WINDOW, CARRIER_WINDOW)
            }
            Self::Sink(..) => SINK_WINDOW,
        }
    }
}

/// The attempts to keep a bridge up.
struct BridgeAttempts {
    bridge: String,
    peer: String,
    backoff: Backoff,
    last_error: String,
    connected: Option<Instant>,
}

impl BridgeAttempts {
    /// One has succeeded.
    fn note_connected(&mut self) {
        self.last_error.clear();
        self.connected = Some(Instant::now());
    }

    /// How long to wait after one has failed, or its connections have ended. An error is said once, as long as it stays the same.
    fn pause(&mut self, error: &io::Error) -> Duration {
        let (bridge, peer, error) = (&self.bridge, &self.peer, error.to_string());
        if error != self.last_error {
            warn!(bridge, peer, error, "a bridge is not connected");
            self.last_error = error;
        }
        if self
            .connected
            .take()
            .is_some_and(|connected| connected.elapsed() > STEADY)
        {
            self.backoff.reset();
        }
        self.backoff.pause()
    }
}

/// The session of a bridge at the broker of this program.
struct LocalSession {
    broker: Arc<dyn LocalBroker>,
    client_id: String,
    filters: Vec<(String, SubscriptionOptions)>,
    window: u16,
}

async fn run(
    name: String,
    broker: Arc<dyn LocalBroker>,
    mut target: Target,
    mut stop: watch::Receiver<bool>,
) {
    let mut attempts = BridgeAttempts {
        peer: target.peer(),
        bridge: name.clone(),
        backoff: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE),
        last_error: String::new(),
        connected: None,
    };
    let session = LocalSession {
        client_id: broker.client_id(&name),
        filters: target.filters(),
        window: target.window(broker.max_packet()),
        broker,
    };
    let mut report = report_of(&name);
    report(&mut CarrierCounts::default(), false);
    loop {
        let ended = match &mut target {
            Target::Sink(sink, _) => {
                let opened = until_stopped(&mut stop, session.open()).await;
                let Some(opened) = opened else { return };
                match opened {
                    Ok(local) => {
                        attempts.note_connected();
                        let feeder = Feeder::new(&name, local, sink.clone(), &mut report);
                        feeder.run(&mut stop).await
                    }
                    Err(error) => Err(error),
                }
            }
            Target::Side(remote, translation) => {
                let opened = until_stopped(&mut stop, remote.join(&session, &mut attempts)).await;
                let Some(opened) = opened else { return };
                match opened {
                    Ok(legs) => {
                        info!(bridge = name, peer = attempts.peer, "a bridge is connected");
                        attempts.note_connected();
                        let carrier = Carrier::new(&name, legs, &mut **translation, &mut report);
                        carrier.run(&mut stop).await
                    }
                    Err(error) => Err(error),
                }
            }
        };
        let Err(error) = ended else { return };
        let pause = attempts.pause(&error);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stopped(&mut stop) => return,
        }
    }
}

/// What becomes of some work, unless the program stops before.
async fn until_stopped<T>(stop: &mut watch::Receiver<bool>, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        outcome = work => Some(outcome),
        () = stopped(stop) => None,
    }
}

impl RemoteSide {
    /// Connects as soon as the other side lets the bridge in. What is published meanwhile waits in the session of the bridge.
    async fn join(
        &self,
        session: &LocalSession,
        attempts: &mut BridgeAttempts,
    ) -> io::Result<BothSides<BridgeLeg>> {
        let (mut local, began) = (session.open().await?, Instant::now());
        let remote = loop {
            match self.connect().await {
                Ok(leg) => break leg,
                Err(error) => tokio::time::sleep(attempts.pause(&error)).await,
            }
        };
        if began.elapsed() > STALE {
            // The connection may have ended, and what has come over it may have expired.
            drop(local);
            local = session.open().await?;
        }
        Ok(BothSides { local, remote })
    }

    async fn connect(&self) -> io::Result<BridgeLeg> {
        let mut properties = MqttPropertyBuf::new();
        if self.version.is_v5() {
            // No receive maximum: Mosquitto sends more than it when a session is resumed, and has a bound of its own.
            let _ = properties.push(MqttProperty::SessionExpiryInterval(self.session_expiry_s));
            let _ = properties.push(MqttProperty::MaximumPacketSize(MAX_PACKET));
        }
        let login = LegLogin {
            version: self.version,
            client_id: &self.client_id,
            username: self.username.as_deref(),
            password: self.password.as_deref(),
            keep_alive: self.keep_alive,
            properties: properties.as_properties(),
        };
        BridgeLeg::connect(self.dialer.dial_in_time().await?, &login).await
    }
}

impl LocalSession {
    /// Opens a connection with subscriptions to what the bridge carries.
    async fn open(&self) -> io::Result<BridgeLeg> {
        let known = self.broker.filters(&self.client_id);
        let mut properties = MqttPropertyBuf::new();
        // Each comes once and is valid.
        let _ = properties.push(MqttProperty::SessionExpiryInterval(SESSION_EXPIRY_S));
        let _ = properties.push(MqttProperty::ReceiveMaximum(self.window));
        let _ = properties.push(MqttProperty::MaximumPacketSize(MAX_PACKET));
        let login = LegLogin {
            version: MqttProtocolVersion::V5,
            client_id: &self.client_id,
            username: None,
            password: None,
            keep_alive: 0,
            properties: properties.as_properties(),
        };
        let mut leg = BridgeLeg::connect(Box::new(self.broker.connect()?), &login).await?;
        leg.subscribe(&self.filters, &known)?;
        leg.flush().await?;
        Ok(leg)
    }
}

/// Reports what a bridge has done, and whether it is up.
fn report_of(name: &str) -> impl FnMut(&mut CarrierCounts, bool) + Send + use<> {
    let name = name.to_owned();
    move |counts, is_up| {
        let CarrierCounts {
            outgoing,
            incoming,
            refused,
        } = std::mem::take(counts);
        metrics::gauge!("bridge_connected", "bridge" => name.clone()).set(if is_up { 1.0 } else { 0.0 });
        for (direction, count) in [("out", outgoing), ("in", incoming)] {
            metrics::counter!("bridge_messages_total", "bridge" => name.clone(), "direction" => direction)
                .increment(count);
        }
        metrics::counter!("bridge_refused_messages_total", "bridge" => name.clone()).increment(refused);
    }
}
