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
use crate::leg::{BridgeLeg, LegLogin, MAX_PACKET, RECEIVE_MAXIMUM};
use crate::options::{BrokerBridge, DeviceBridge, Options};
use crate::retries::{FIRST_PAUSE, LONGEST_PAUSE};
use crate::sinks::MessageSink;
use crate::topics::TopicTranslation;

/// A connection that has lasted for so long begins with short pauses again.
const STEADY: Duration = Duration::from_secs(30);
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
}

/// The attempts to keep a bridge up.
struct BridgeAttempts {
    bridge: String,
    peer: String,
    backoff: Backoff,
    last_error: String,
}

impl BridgeAttempts {
    /// How long to wait after an attempt has failed. An error is said once, as long as it stays the same.
    fn pause(&mut self, error: &io::Error) -> Duration {
        let (bridge, peer, error) = (&self.bridge, &self.peer, error.to_string());
        if error != self.last_error {
            warn!(bridge, peer, error, "a bridge is not connected");
            self.last_error = error;
        }
        self.backoff.pause()
    }
}

async fn run(name: String, local: Arc<dyn LocalBroker>, mut target: Target, mut stop: watch::Receiver<bool>) {
    let mut attempts = BridgeAttempts {
        peer: target.peer(),
        bridge: name.clone(),
        backoff: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE),
        last_error: String::new(),
    };
    let mut report = report_of(&name);
    report(&mut CarrierCounts::default(), false);
    while !*stop.borrow() {
        let (began, filters) = (Instant::now(), target.filters());
        let opened = tokio::select! {
            opened = open_local(&name, &*local, &filters) => opened,
            () = stopped(&mut stop) => return,
        };
        let outcome = match (opened, &mut target) {
            (Err(error), _) => Err(error),
            (Ok(leg), Target::Sink(sink, _)) => {
                Feeder::new(&name, leg, sink.clone(), &mut report)
                    .run(&mut stop)
                    .await
            }
            (Ok(local), Target::Side(remote, translation)) => {
                // What is published meanwhile waits in the session of the bridge.
                let Some(remote) = remote.connect_again(&mut attempts, &mut stop).await else {
                    return local.leave().await;
                };
                info!(bridge = name, peer = attempts.peer, "a bridge is connected");
                let legs = BothSides { local, remote };
                Carrier::new(&name, legs, &mut **translation, &mut report)
                    .run(&mut stop)
                    .await
            }
        };
        let Err(error) = outcome else { return };
        if began.elapsed() > STEADY {
            attempts.backoff.reset();
        }
        let pause = attempts.pause(&error);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stopped(&mut stop) => return,
        }
    }
}

impl RemoteSide {
    /// Connects as soon as the other side lets the bridge in; `None` if the program stops before.
    async fn connect_again(
        &self,
        attempts: &mut BridgeAttempts,
        stop: &mut watch::Receiver<bool>,
    ) -> Option<BridgeLeg> {
        let connected = async {
            loop {
                match self.connect().await {
                    Ok(leg) => return leg,
                    Err(error) => tokio::time::sleep(attempts.pause(&error)).await,
                }
            }
        };
        tokio::select! {
            leg = connected => Some(leg),
            () = stopped(stop) => None,
        }
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

/// Opens the connection to the broker of this program, with subscriptions to what the bridge carries.
async fn open_local(
    name: &str,
    local: &dyn LocalBroker,
    filters: &[(String, SubscriptionOptions)],
) -> io::Result<BridgeLeg> {
    let client_id = local.client_id(name);
    let known = local.filters(&client_id);
    let mut properties = MqttPropertyBuf::new();
    // Each comes once and is valid.
    let _ = properties.push(MqttProperty::SessionExpiryInterval(SESSION_EXPIRY_S));
    let _ = properties.push(MqttProperty::ReceiveMaximum(RECEIVE_MAXIMUM));
    let _ = properties.push(MqttProperty::MaximumPacketSize(MAX_PACKET));
    let login = LegLogin {
        version: MqttProtocolVersion::V5,
        client_id: &client_id,
        username: None,
        password: None,
        keep_alive: 0,
        properties: properties.as_properties(),
    };
    let mut leg = BridgeLeg::connect(Box::new(local.connect()?), &login).await?;
    leg.subscribe(filters, &known)?;
    leg.flush().await?;
    Ok(leg)
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
