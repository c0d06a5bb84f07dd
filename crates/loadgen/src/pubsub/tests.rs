//! Whole rounds against a broker that does what brokers may do, and seldom do.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use fieldline_codec::{
    AckPacket, ConnackPacket, MqttProperty, MqttPropertyBuf, MqttProtocolVersion, Packet, PacketId,
    PublishPacket, QoS, ReasonCode, SubackPacket, decode_frame,
};

use super::config::PubSubConfig;
use super::engine::ClientSettings;
use super::presets;
use super::report::PubSubOutcome;
use super::run::PubSubRound;
use crate::cli::PointToPointArgs;

const V5: MqttProtocolVersion = MqttProtocolVersion::V5;

/// A broker with one topic for all.
#[derive(Default)]
struct OddBroker {
    /// Tells every client that its session was kept.
    keeps_all_sessions: bool,
    /// Refuses every message whose packet identifier this divides.
    refuses_each: Option<u16>,
    /// Sends each message of QoS 1 and 2 twice.
    repeats: bool,
    /// Asks for this keep-alive, and closes connections that are silent for longer.
    keep_alive: Option<u16>,
    subscribers: Mutex<Vec<(TcpStream, QoS)>>,
    subscriptions: AtomicUsize,
    packets: AtomicU32,
}

impl OddBroker {
    fn serve(self) -> (Arc<Self>, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let broker = Arc::new(self);
        let serving = Arc::clone(&broker);
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let broker = Arc::clone(&serving);
                std::thread::spawn(move || broker.talk(connection));
            }
        });
        (broker, address)
    }

    /// Until the client ends the connection.
    fn talk(&self, mut connection: TcpStream) {
        let patience = self
            .keep_alive
            .map(|seconds| Duration::from_secs(seconds.into()).mul_f64(1.5));
        connection.set_read_timeout(patience).unwrap();
        let (mut input, mut buffer) = (Vec::new(), [0; 4_096]);
        while let Ok(read) = connection.read(&mut buffer)
            && read > 0
        {
            input.extend_from_slice(&buffer[..read]);
            while let Ok(Some((packet, length))) = decode_frame(&input, 1 << 20, V5) {
                let answer = self.answer(&packet, &connection);
                if connection.write_all(&answer).is_err() {
                    return;
                }
                input.drain(..length);
            }
        }
    }

    fn answer(&self, packet: &Packet<'_>, connection: &TcpStream) -> Vec<u8> {
        let mut out = Vec::new();
        let ack = |id: PacketId, is_refused: bool| {
            let code = match is_refused {
                true => ReasonCode::QuotaExceeded,
                false => ReasonCode::Success,
            };
            AckPacket::new(id, code)
        };
        let answered = match packet {
            Packet::Connect(_) => {
                let mut properties = MqttPropertyBuf::new();
                if let Some(keep_alive) = self.keep_alive {
                    properties
                        .push(MqttProperty::ServerKeepAlive(keep_alive))
                        .unwrap();
                }
                let connack = ConnackPacket {
                    properties: properties.as_properties(),
                    ..ConnackPacket::new(ReasonCode::Success, self.keeps_all_sessions)
                };
                connack.encode(V5, &mut out)
            }
            Packet::Subscribe(subscribe) => {
                let qos = subscribe.filters.iter().next().unwrap().options.qos;
                self.subscriptions.fetch_add(1, Ordering::Relaxed);
                let own = connection.try_clone().unwrap();
                self.subscribers.lock().unwrap().push((own, qos));
                let codes = [ReasonCode::granted(qos)];
                SubackPacket::new(subscribe.packet_id, codes.as_slice()).encode(V5, &mut out)
            }
            Packet::Publish(publish) => {
                let id = publish.packet_id.unwrap();
                let is_refused = self.refuses_each.is_some_and(|each| id.get() % each == 0);
                if !is_refused {
                    self.forward(publish);
                }
                match publish.qos {
                    QoS::ExactlyOnce => Packet::Pubrec(ack(id, is_refused)).encode(V5, &mut out),
                    _ => Packet::Puback(ack(id, is_refused)).encode(V5, &mut out),
                }
            }
            Packet::Pubrel(release) => Packet::Pubcomp(ack(release.packet_id, false)).encode(V5, &mut out),
            Packet::Pubrec(received) => Packet::Pubrel(ack(received.packet_id, false)).encode(V5, &mut out),
            Packet::Pingreq => Packet::Pingresp.encode(V5, &mut out),
            _ => Ok(()),
        };
        answered.unwrap();
        out
    }

    fn forward(&self, publish: &PublishPacket<'_>) {
        let number = self.packets.fetch_add(1, Ordering::Relaxed);
        let id = PacketId::new((number % 60_000) as u16 + 1);
        for (subscriber, qos) in &*self.subscribers.lock().unwrap() {
            let mut out = Vec::new();
            let message = PublishPacket {
                qos: *qos,
                packet_id: id,
                ..PublishPacket::new(publish.topic, publish.payload)
            };
            message.encode(V5, &mut out).unwrap();
            if self.repeats {
                let again = PublishPacket { dup: true, ..message };
                again.encode(V5, &mut out).unwrap();
            }
            // It may have gone.
            let _ = (&*subscriber).write_all(&out);
        }
    }
}

/// One publisher and a subscriber with a session, at a QoS.
fn pair(qos: u8, seconds: f64) -> PubSubConfig {
    let none = PointToPointArgs {
        pairs: Some(1),
        default_seconds: Some(seconds),
        default_wait: Some(1.0),
        default_dummies: Some(2),
        default_rate: Some(100.0),
        default_publisher_qos: Some(qos),
        default_subscriber_qos: Some(qos),
        default_payload: None,
        default_opening: None,
    };
    presets::find("p2p", 1.0, &none).unwrap()
}

fn run(config: &PubSubConfig, target: SocketAddr) -> PubSubOutcome {
    let round = PubSubRound {
        config,
        settings: ClientSettings {
            target,
            tls: None,
            version: V5,
            username: "default".to_owned(),
            password: None,
            keep_alive: 600,
            in_flight: None,
        },
        warm_up: 2,
        pid: None,
        run: 7,
    };
    round.run(&mut |_| {}).unwrap()
}

#[test]
fn a_session_that_is_said_to_be_kept_is_subscribed_all_the_same() {
    let broker = OddBroker {
        keeps_all_sessions: true,
        ..OddBroker::default()
    };
    let (broker, address) = broker.serve();
    let outcome = run(&pair(1, 0.2), address);
    assert_eq!(broker.subscriptions.load(Ordering::Relaxed), 1);
    assert_eq!((outcome.delivered, outcome.lost), (20, 0));
}

#[test]
fn what_is_refused_has_failed_and_is_not_lost() {
    for qos in [1, 2] {
        let broker = OddBroker {
            refuses_each: Some(5),
            ..OddBroker::default()
        };
        let (_, address) = broker.serve();
        let outcome = run(&pair(qos, 0.2), address);
        // Two of warm-up come before, so that the identifiers are 3 to 22.
        assert_eq!((outcome.sent, outcome.failed, outcome.acknowledged), (20, 4, 16));
        assert_eq!((outcome.delivered, outcome.lost), (16, 0));
    }
}

#[test]
fn what_comes_twice_is_doubled_but_where_it_is_the_same_exchange() {
    for (qos, doubled) in [(1, 20), (2, 0)] {
        let broker = OddBroker {
            repeats: true,
            ..OddBroker::default()
        };
        let (_, address) = broker.serve();
        let outcome = run(&pair(qos, 0.2), address);
        assert_eq!(
            (outcome.delivered, outcome.duplicated, outcome.lost),
            (20, doubled, 0)
        );
    }
}

#[test]
fn clients_with_nothing_to_say_live_as_long_as_the_broker_wants() {
    let broker = OddBroker {
        keep_alive: Some(1),
        ..OddBroker::default()
    };
    let (_, address) = broker.serve();
    let outcome = run(&pair(1, 2.5), address);
    assert_eq!((outcome.lost_connections, outcome.lost), (0, 0));
}
