//! The packets of publishers and subscribers.

use fieldline_codec::{
    AckPacket, ConnectPacket, DisconnectPacket, MqttProperty, MqttPropertyBuf, MqttProtocolVersion, Packet,
    PacketId, PublishPacket, QoS, ReasonCode, SubscribePacket, SubscriptionBuf, SubscriptionOptions,
    decode_frame,
};

use super::client::{ClientRole, ConnectionStage, PubSubClient};
use super::engine::{ClientSettings, PubSubEngine, RunPhase, window};
use super::message::UNCOUNTED;

/// PINGREQ, which is the same in all versions.
pub(super) const PINGREQ: &[u8] = &[0xc0, 0];
/// Largest packet that is accepted beyond the load's own messages, bytes.
const MAX_OTHER_PACKET: u32 = 1 << 20;
/// For how long a persistent session is kept without its client, seconds.
const SESSION_EXPIRY: u32 = 86_400;
const SUBSCRIBE_ID: PacketId = PacketId::MIN;

/// Appends CONNECT of a client; `clears` ends a session that it may have.
pub(super) fn put_connect(
    client: &PubSubClient,
    settings: &ClientSettings,
    clears: bool,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let is_persistent = matches!(
        client.role,
        ClientRole::Subscriber {
            is_persistent: true,
            ..
        }
    );
    let mut properties = MqttPropertyBuf::new();
    if settings.version.is_v5() && is_persistent && !clears {
        properties
            .push(MqttProperty::SessionExpiryInterval(SESSION_EXPIRY))
            .map_err(|error| error.to_string())?;
    }
    let username = client.has_username.then_some(settings.username.as_str());
    let connect = ConnectPacket {
        clean_start: clears || !is_persistent,
        keep_alive: settings.keep_alive,
        username: username.filter(|name| !name.is_empty()),
        password: settings
            .password
            .as_deref()
            .map(str::as_bytes)
            .filter(|_| client.has_username),
        properties: properties.as_properties(),
        ..ConnectPacket::new(settings.version, &client.id)
    };
    connect.encode(out).map_err(|error| error.to_string())
}

/// Appends PUBLISH.
pub(super) fn put_publish(
    topic: &str,
    payload: &[u8],
    qos: QoS,
    packet_id: u16,
    retain: bool,
    version: MqttProtocolVersion,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let publish = PublishPacket {
        qos,
        retain,
        packet_id: PacketId::new(packet_id).filter(|_| qos != QoS::AtMostOnce),
        ..PublishPacket::new(topic, payload)
    };
    publish.encode(version, out).map_err(|error| error.to_string())
}

/// Appends DISCONNECT.
pub(super) fn put_disconnect(version: MqttProtocolVersion, out: &mut Vec<u8>) {
    // A normal DISCONNECT is two fixed bytes and cannot fail.
    let _ = DisconnectPacket::default().encode(version, out);
}

fn put_subscribe(
    filter: &str,
    qos: QoS,
    version: MqttProtocolVersion,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let mut filters = SubscriptionBuf::new();
    filters
        .push(filter, SubscriptionOptions::new(qos))
        .map_err(|error| error.to_string())?;
    let subscribe = SubscribePacket {
        packet_id: SUBSCRIBE_ID,
        properties: fieldline_codec::MqttProperties::EMPTY,
        filters: filters.as_filters(),
    };
    subscribe.encode(version, out).map_err(|error| error.to_string())
}

impl PubSubEngine<'_> {
    /// Handles the whole packets at the beginning of the input of a client, appends what is to be answered, and returns
    /// how many bytes that were.
    pub(super) fn handle_packets(
        &mut self,
        index: usize,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<usize, String> {
        let version = self.settings.version;
        let largest = MAX_OTHER_PACKET + u32::try_from(self.template.len()).unwrap_or(u32::MAX / 2);
        let mut used = 0;
        while let Some((packet, length)) =
            decode_frame(input.get(used..).unwrap_or_default(), largest, version)
                .map_err(|error| format!("the broker sent no MQTT: {error}"))?
        {
            used += length;
            self.handle_packet(index, &packet, out)?;
        }
        Ok(used)
    }

    fn handle_packet(&mut self, index: usize, packet: &Packet<'_>, out: &mut Vec<u8>) -> Result<(), String> {
        let version = self.settings.version;
        let Some(client) = self.clients.get_mut(index) else {
            return Ok(());
        };
        match (packet, client.role) {
            (Packet::Publish(publish), ClientRole::Subscriber { ledger, .. }) => {
                let mut is_new = true;
                if let Some(id) = publish.packet_id {
                    let answer = AckPacket::new(id, ReasonCode::Success);
                    let answer = match publish.qos {
                        QoS::ExactlyOnce => {
                            is_new = client.unreleased.insert(id.get());
                            Packet::Pubrec(answer)
                        }
                        QoS::AtLeastOnce | QoS::AtMostOnce => Packet::Puback(answer),
                    };
                    // An answer without properties cannot fail.
                    let _ = answer.encode(version, out);
                }
                if is_new {
                    self.receive(ledger, publish.payload);
                }
            }
            (Packet::Pubrel(ack), _) => {
                client.unreleased.remove(&ack.packet_id.get());
                let answer = AckPacket::new(ack.packet_id, ReasonCode::Success);
                let _ = Packet::Pubcomp(answer).encode(version, out);
            }
            (Packet::Pubrec(ack), _) if !ack.code.is_error() => {
                let answer = AckPacket::new(ack.packet_id, ReasonCode::Success);
                let _ = Packet::Pubrel(answer).encode(version, out);
            }
            (
                Packet::Puback(ack) | Packet::Pubcomp(ack) | Packet::Pubrec(ack),
                ClientRole::Publisher(publisher),
            ) => {
                if let Some(message) = client.take_acknowledged(ack.packet_id.get()) {
                    if ack.code.is_error() && message.number != UNCOUNTED {
                        self.counts.failed += 1;
                    } else if !ack.code.is_error() {
                        self.count_acknowledged(publisher, &message);
                    }
                }
            }
            (Packet::Connack(connack), _) if connack.code == ReasonCode::Success => {
                client.window = window(&self.settings, connack.properties.receive_maximum());
                if !connack.session_present {
                    client.unreleased.clear();
                    client.has_subscribed = false;
                }
                let keep_alive = connack.properties.server_keep_alive();
                self.shortest_keep_alive = self.shortest_keep_alive.min(keep_alive.unwrap_or(u16::MAX));
                let clears = self.phase
                    == RunPhase::Connecting {
                        clears_sessions: true,
                    };
                match client.role {
                    ClientRole::Subscriber { .. } if !clears && !client.has_subscribed => {
                        client.stage = ConnectionStage::Subscribing;
                        put_subscribe(&client.topic, self.config.qos().1, version, out)?;
                    }
                    _ => self.make_ready(index),
                }
            }
            (Packet::Connack(connack), _) => return Err(format!("CONNACK {:?}", connack.code)),
            (Packet::Suback(suback), _) => match suback.codes.iter().find(|code| code.is_error()) {
                Some(code) => return Err(format!("SUBACK {code:?}")),
                None => {
                    client.has_subscribed = true;
                    self.make_ready(index);
                }
            },
            (Packet::Disconnect(disconnect), _) => return Err(format!("DISCONNECT {:?}", disconnect.code)),
            _ => {}
        }
        Ok(())
    }
}
