//! QoS 1 and 2 between a client and a server with random connection losses, compared with a small model.

use std::collections::HashMap;

use fieldline_codec::session::*;
use fieldline_codec::*;
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Debug, Clone, Copy)]
enum Step {
    Publish(QoS),
    /// This many bytes reach the server.
    Up(usize),
    /// This many bytes reach the client.
    Down(usize),
    Break,
}

struct World {
    version: MqttProtocolVersion,
    client: ClientSession<u32>,
    server: ServerSession<()>,
    kept: Option<SessionState<()>>,
    up: Vec<u8>,
    down: Vec<u8>,
    /// Progress of the receiving side.
    up_seen: usize,
    down_seen: usize,
    sent: Vec<QoS>,
    received: HashMap<u32, usize>,
    acknowledged: HashMap<u32, usize>,
}

const LIMITS: SessionLimits = SessionLimits {
    max_packet_size: 1024,
    max_in_flight: 5,
    max_outbound_aliases: 2,
    max_unreleased: 100,
};

fn message<'a>(qos: QoS, payload: &'a [u8; 4]) -> PublishPacket<'a> {
    PublishPacket {
        qos,
        ..PublishPacket::new("v1/devices/me/telemetry", payload)
    }
}

impl World {
    fn new(version: MqttProtocolVersion) -> Self {
        let mut world = Self {
            version,
            client: ClientSession::new(version, LIMITS),
            server: ServerSession::new(LIMITS),
            kept: None,
            up: Vec::new(),
            down: Vec::new(),
            up_seen: 0,
            down_seen: 0,
            sent: Vec::new(),
            received: HashMap::new(),
            acknowledged: HashMap::new(),
        };
        world.open();
        world
    }

    fn open(&mut self) {
        (self.up, self.down, self.up_seen, self.down_seen) = Default::default();
        self.server = ServerSession::new(LIMITS);
        let connect = ConnectPacket {
            clean_start: false,
            ..ConnectPacket::new(self.version, "dev")
        };
        self.client.connect(&connect, 0, &mut self.up).expect("valid");
    }

    fn break_connection(&mut self) {
        if self.server.is_connected() {
            self.kept = Some(self.server.take_state());
        }
        let state = self.client.take_state();
        self.client = ClientSession::new(self.version, LIMITS);
        self.client.restore_state(state);
        self.open();
    }

    fn publish(&mut self, qos: QoS) {
        if !self.client.can_send() {
            return;
        }
        let number = self.sent.len() as u32;
        let payload = number.to_be_bytes();
        self.client
            .publish(&message(qos, &payload), number, &mut self.up)
            .expect("there is room");
        self.sent.push(qos);
    }

    fn deliver_up(&mut self, bytes: usize) {
        self.up_seen = (self.up_seen + bytes).min(self.up.len());
        let arrived: Vec<u8> = self.up.drain(..self.up_seen).collect();
        let mut at = 0;
        while let Some((packet, used)) =
            decode_frame(&arrived[at..], 1024, self.server.version()).expect("valid")
        {
            at += used;
            match self
                .server
                .receive(&packet, 0, &mut self.down)
                .expect("no protocol error")
            {
                ServerEvent::Connect(_) => self.accept(),
                ServerEvent::Publish(publish) => {
                    assert_eq!(self.server.topic(publish), "v1/devices/me/telemetry");
                    let number = u32::from_be_bytes(publish.payload.try_into().expect("four bytes"));
                    *self.received.entry(number).or_default() += 1;
                    self.answer(publish);
                }
                ServerEvent::PublishAgain(publish) => self.answer(publish),
                _ => {}
            }
        }
        self.up.splice(..0, arrived[at..].iter().copied());
        self.up_seen = arrived.len() - at;
    }

    fn accept(&mut self) {
        let present = self.kept.is_some();
        if let Some(state) = self.kept.take() {
            self.server.restore_state(state);
        }
        let mut properties = MqttPropertyBuf::new();
        properties.push(MqttProperty::ReceiveMaximum(3)).expect("valid");
        properties
            .push(MqttProperty::TopicAliasMaximum(1))
            .expect("valid");
        let connack = ConnackPacket {
            session_present: present,
            properties: properties.as_properties(),
            ..ConnackPacket::default()
        };
        self.server.accept(&connack, &mut self.down).expect("valid");
    }

    fn answer(&mut self, publish: &PublishPacket<'_>) {
        match (publish.qos, publish.packet_id) {
            (QoS::AtLeastOnce, Some(id)) => self.server.puback(id, ReasonCode::Success, &mut self.down),
            (QoS::ExactlyOnce, Some(id)) => self.server.pubrec(id, ReasonCode::Success, &mut self.down),
            _ => Ok(()),
        }
        .expect("valid");
    }

    fn deliver_down(&mut self, bytes: usize) {
        self.down_seen = (self.down_seen + bytes).min(self.down.len());
        let arrived: Vec<u8> = self.down.drain(..self.down_seen).collect();
        let mut at = 0;
        while let Some((packet, used)) =
            decode_frame(&arrived[at..], 1024, self.client.version()).expect("valid")
        {
            at += used;
            let event = self
                .client
                .receive(&packet, &mut self.up)
                .expect("no protocol error");
            if let ClientEvent::Acknowledged { message, .. } = event {
                *self.acknowledged.entry(message).or_default() += 1;
            }
            self.send_again();
        }
        self.down.splice(..0, arrived[at..].iter().copied());
        self.down_seen = arrived.len() - at;
    }

    fn send_again(&mut self) {
        let version = self.version;
        while let Some(next) = self.client.next_redelivery(&mut self.up) {
            if let Redelivery::Publish {
                packet_id,
                qos,
                dup,
                message: number,
            } = next
            {
                let payload = number.to_be_bytes();
                PublishPacket {
                    packet_id: Some(packet_id),
                    dup,
                    ..message(qos, &payload)
                }
                .encode(version, &mut self.up)
                .expect("valid");
            }
        }
    }

    /// Delivers everything.
    fn settle(&mut self) {
        while !(self.up.is_empty() && self.down.is_empty()) {
            self.deliver_up(usize::MAX / 2);
            self.deliver_down(usize::MAX / 2);
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop_oneof![Just(QoS::AtMostOnce), Just(QoS::AtLeastOnce), Just(QoS::ExactlyOnce)].prop_map(Step::Publish),
        4 => (1..80_usize).prop_map(Step::Up),
        4 => (1..20_usize).prop_map(Step::Down),
        1 => Just(Step::Break),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn messages_arrive_as_often_as_their_qos_promises(
        version in prop_oneof![Just(MqttProtocolVersion::V31), Just(MqttProtocolVersion::V311), Just(MqttProtocolVersion::V5)],
        steps in vec(step(), 1..200),
    ) {
        let mut world = World::new(version);
        for step in steps {
            match step {
                Step::Publish(qos) => world.publish(qos),
                Step::Up(bytes) => world.deliver_up(bytes),
                Step::Down(bytes) => world.deliver_down(bytes),
                Step::Break => world.break_connection(),
            }
        }
        world.settle();
        prop_assert_eq!(world.client.in_flight(), 0);
        for (number, qos) in world.sent.iter().enumerate() {
            let received = world.received.get(&(number as u32)).copied().unwrap_or(0);
            let acknowledged = world.acknowledged.get(&(number as u32)).copied().unwrap_or(0);
            match qos {
                QoS::AtMostOnce => prop_assert!(received <= 1),
                QoS::AtLeastOnce => prop_assert!(received >= 1),
                QoS::ExactlyOnce => prop_assert_eq!(received, 1),
            }
            prop_assert_eq!(acknowledged, usize::from(*qos != QoS::AtMostOnce));
        }
    }
}
