//! Random packets of every type and version.

use fieldline_codec::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// Raw material for one property.
#[derive(Debug, Clone)]
pub(crate) struct PropertySeed {
    pick: usize,
    number: u32,
    text: String,
    other: String,
    bytes: Vec<u8>,
}

/// Raw material for one packet.
#[derive(Debug, Clone)]
pub(crate) struct Seed {
    pub(crate) version: MqttProtocolVersion,
    packet_type: u8,
    packet_id: PacketId,
    bits: u16,
    topic: String,
    texts: [String; 3],
    payload: Vec<u8>,
    codes: Vec<usize>,
    filters: Vec<(String, u8)>,
    properties: Vec<PropertySeed>,
    will_properties: Vec<PropertySeed>,
}

fn text() -> impl Strategy<Value = String> {
    "[^\\x00]{0,12}"
}

fn name() -> impl Strategy<Value = String> {
    "[^\\x00+#]{1,24}"
}

fn property() -> impl Strategy<Value = PropertySeed> {
    (
        any::<usize>(),
        any::<u32>(),
        name(),
        text(),
        vec(any::<u8>(), 0..9),
    )
        .prop_map(|(pick, number, text, other, bytes)| PropertySeed {
            pick,
            number,
            text,
            other,
            bytes,
        })
}

pub(crate) fn version() -> impl Strategy<Value = MqttProtocolVersion> {
    prop_oneof![
        Just(MqttProtocolVersion::V31),
        Just(MqttProtocolVersion::V311),
        Just(MqttProtocolVersion::V5)
    ]
}

pub(crate) fn seed() -> impl Strategy<Value = Seed> {
    let head = (version(), 1..=15_u8, any::<PacketId>(), any::<u16>());
    let texts = (name(), [text(), text(), text()], vec(any::<u8>(), 0..200));
    let lists = (
        vec(any::<usize>(), 1..5),
        vec(("[^\\x00]{1,12}", any::<u8>()), 1..5),
        vec(property(), 0..6),
        vec(property(), 0..4),
    );
    (head, texts, lists).prop_map(|(head, (topic, texts, payload), lists)| {
        let (version, packet_type, packet_id, bits) = head;
        let (codes, filters, properties, will_properties) = lists;
        Seed {
            version,
            packet_type,
            packet_id,
            bits,
            topic,
            texts,
            payload,
            codes,
            filters,
            properties,
            will_properties,
        }
    })
}

impl PropertySeed {
    fn build(&self, id: u8) -> MqttProperty<'_> {
        let flag = self.number.is_multiple_of(2);
        let short = self.number as u16;
        match id {
            1 => MqttProperty::PayloadFormatIndicator(flag),
            2 => MqttProperty::MessageExpiryInterval(self.number),
            3 => MqttProperty::ContentType(&self.other),
            8 => MqttProperty::ResponseTopic(&self.text),
            9 => MqttProperty::CorrelationData(&self.bytes),
            11 => MqttProperty::SubscriptionIdentifier((self.number & 0x0FFF_FFFF).max(1)),
            17 => MqttProperty::SessionExpiryInterval(self.number),
            18 => MqttProperty::AssignedClientIdentifier(&self.text),
            19 => MqttProperty::ServerKeepAlive(short),
            21 => MqttProperty::AuthenticationMethod(&self.text),
            22 => MqttProperty::AuthenticationData(&self.bytes),
            23 => MqttProperty::RequestProblemInformation(flag),
            24 => MqttProperty::WillDelayInterval(self.number),
            25 => MqttProperty::RequestResponseInformation(flag),
            26 => MqttProperty::ResponseInformation(&self.text),
            28 => MqttProperty::ServerReference(&self.text),
            31 => MqttProperty::ReasonString(&self.other),
            33 => MqttProperty::ReceiveMaximum(short.max(1)),
            34 => MqttProperty::TopicAliasMaximum(short),
            35 => MqttProperty::TopicAlias(short.max(1)),
            36 => MqttProperty::MaximumQos(if flag { QoS::AtMostOnce } else { QoS::AtLeastOnce }),
            37 => MqttProperty::RetainAvailable(flag),
            38 => MqttProperty::UserProperty(&self.text, &self.other),
            39 => MqttProperty::MaximumPacketSize(self.number.max(1)),
            40 => MqttProperty::WildcardSubscriptionAvailable(flag),
            41 => MqttProperty::SubscriptionIdentifierAvailable(flag),
            42 => MqttProperty::SharedSubscriptionAvailable(flag),
            _ => unreachable!("not a property"),
        }
    }
}

/// Builds a section from those identifiers that a packet allows, dropping repeated ones.
fn section(seeds: &[PropertySeed], allowed: &[u8], version: MqttProtocolVersion) -> MqttPropertyBuf {
    let mut section = MqttPropertyBuf::new();
    if version.is_v5() {
        for seed in seeds {
            let _ = section.push(seed.build(allowed[seed.pick % allowed.len()]));
        }
    }
    section
}

const ACK: &[u8] = &[31, 38];

impl Seed {
    fn qos(&self) -> QoS {
        QoS::from_u8((self.bits % 3) as u8).expect("below 3")
    }

    fn bit(&self, index: u32) -> bool {
        self.bits & (1 << (index + 4)) != 0
    }

    fn code(&self, index: usize, packet_type: PacketType, version: MqttProtocolVersion) -> ReasonCode {
        let valid: Vec<_> = ReasonCode::ALL
            .iter()
            .copied()
            .filter(|code| code.is_valid_in(packet_type))
            .filter(|code| {
                version.is_v5()
                    || match packet_type {
                        PacketType::Connack => {
                            ReasonCode::from_connect_return_code(code.to_connect_return_code()) == Some(*code)
                        }
                        PacketType::Suback => code.value() <= 0x80,
                        _ => *code == ReasonCode::Success,
                    }
            })
            .collect();
        valid[self.codes[index] % valid.len()]
    }

    /// Builds the packet and passes it to the callback; it borrows from the seed.
    pub(crate) fn with_packet<R>(&self, use_packet: impl FnOnce(&Packet<'_>) -> R) -> R {
        let version = self.version;
        let packet_type = PacketType::from_u8(self.packet_type).expect("1 to 15");
        match packet_type {
            PacketType::Connect => self.with_connect(use_packet),
            PacketType::Publish => self.with_publish(use_packet),
            PacketType::Puback | PacketType::Pubrec | PacketType::Pubrel | PacketType::Pubcomp => {
                let properties = section(&self.properties, ACK, version);
                let code = self.code(0, packet_type, version);
                let ack = AckPacket {
                    packet_id: self.packet_id,
                    code,
                    properties: properties.as_properties(),
                };
                use_packet(&match packet_type {
                    PacketType::Puback => Packet::Puback(ack),
                    PacketType::Pubrec => Packet::Pubrec(ack),
                    PacketType::Pubrel => Packet::Pubrel(ack),
                    _ => Packet::Pubcomp(ack),
                })
            }
            PacketType::Subscribe | PacketType::Unsubscribe => self.with_filters(packet_type, use_packet),
            PacketType::Suback | PacketType::Unsuback => self.with_codes(packet_type, use_packet),
            PacketType::Pingreq => use_packet(&Packet::Pingreq),
            PacketType::Pingresp => use_packet(&Packet::Pingresp),
            PacketType::Connack => {
                let all = [17, 18, 19, 21, 26, 28, 31, 33, 34, 36, 37, 38, 39, 40, 41, 42];
                let properties = section(&self.properties, &all, version);
                let code = self.code(0, packet_type, version);
                let session_present =
                    self.bit(0) && code == ReasonCode::Success && version != MqttProtocolVersion::V31;
                let properties = properties.as_properties();
                use_packet(&Packet::Connack(ConnackPacket {
                    session_present,
                    code,
                    properties,
                }))
            }
            PacketType::Disconnect => {
                let properties = section(&self.properties, &[17, 28, 31, 38], version);
                let code = self.code(0, packet_type, version);
                use_packet(&Packet::Disconnect(DisconnectPacket {
                    code,
                    properties: properties.as_properties(),
                }))
            }
            PacketType::Auth if version.is_v5() => {
                let mut properties = MqttPropertyBuf::new();
                properties
                    .push(MqttProperty::AuthenticationMethod(&self.topic))
                    .expect("valid");
                properties
                    .push(MqttProperty::AuthenticationData(&self.payload))
                    .expect("valid");
                let code = self.code(0, packet_type, version);
                use_packet(&Packet::Auth(AuthPacket {
                    code,
                    properties: properties.as_properties(),
                }))
            }
            PacketType::Auth => use_packet(&Packet::Pingreq),
        }
    }

    fn with_connect<R>(&self, use_packet: impl FnOnce(&Packet<'_>) -> R) -> R {
        let version = self.version;
        let properties = section(&self.properties, &[17, 21, 23, 25, 33, 34, 38, 39], version);
        let will_properties = section(&self.will_properties, &[1, 2, 3, 8, 9, 24, 38], version);
        let username = self.bit(2).then_some(self.texts[1].as_str());
        let password =
            (self.bit(3) && (version.is_v5() || username.is_some())).then_some(self.texts[2].as_bytes());
        use_packet(&Packet::Connect(ConnectPacket {
            protocol: version.into(),
            clean_start: self.bit(0),
            keep_alive: self.bits,
            client_id: &self.texts[0],
            will: self.bit(1).then(|| LastWill {
                topic: &self.topic,
                payload: &self.payload,
                qos: self.qos(),
                retain: self.bit(4),
                properties: will_properties.as_properties(),
            }),
            username,
            password,
            properties: properties.as_properties(),
        }))
    }

    fn with_publish<R>(&self, use_packet: impl FnOnce(&Packet<'_>) -> R) -> R {
        let properties = section(&self.properties, &[1, 2, 3, 8, 9, 11, 35, 38], self.version);
        let properties = properties.as_properties();
        let qos = self.qos();
        let by_alias = properties.topic_alias().is_some() && self.bit(2);
        use_packet(&Packet::Publish(PublishPacket {
            dup: self.bit(0) && qos != QoS::AtMostOnce,
            qos,
            retain: self.bit(1),
            topic: if by_alias { "" } else { &self.topic },
            packet_id: (qos != QoS::AtMostOnce).then_some(self.packet_id),
            properties,
            payload: &self.payload,
        }))
    }

    fn with_filters<R>(&self, packet_type: PacketType, use_packet: impl FnOnce(&Packet<'_>) -> R) -> R {
        let packet_id = self.packet_id;
        if packet_type == PacketType::Unsubscribe {
            let properties = section(&self.properties, &[38], self.version);
            let mut filters = TopicFilterBuf::new();
            for (filter, _) in &self.filters {
                filters.push(filter).expect("valid");
            }
            let filters = filters.as_filters();
            let properties = properties.as_properties();
            return use_packet(&Packet::Unsubscribe(UnsubscribePacket {
                packet_id,
                properties,
                filters,
            }));
        }
        let mut properties = section(&self.properties, &[38], self.version);
        if self.version.is_v5() && self.bit(0) {
            properties
                .push(MqttProperty::SubscriptionIdentifier(u32::from(self.bits) + 1))
                .expect("valid");
        }
        let mut filters = SubscriptionBuf::new();
        for (filter, bits) in &self.filters {
            let mut options = SubscriptionOptions::new(QoS::from_u8(bits % 3).expect("below 3"));
            if self.version.is_v5() {
                options.no_local = bits & 0x10 != 0 && !filter.starts_with("$share/");
                options.retain_as_published = bits & 0x20 != 0;
                options.retain_handling = if bits & 0x40 != 0 {
                    RetainHandling::DoNotSend
                } else {
                    RetainHandling::SendIfNew
                };
            }
            filters.push(filter, options).expect("valid");
        }
        let filters = filters.as_filters();
        let properties = properties.as_properties();
        use_packet(&Packet::Subscribe(SubscribePacket {
            packet_id,
            properties,
            filters,
        }))
    }

    fn with_codes<R>(&self, packet_type: PacketType, use_packet: impl FnOnce(&Packet<'_>) -> R) -> R {
        let properties = section(&self.properties, ACK, self.version);
        let codes: Vec<_> = (0..self.codes.len())
            .map(|index| self.code(index, packet_type, self.version))
            .collect();
        let (packet_id, properties) = (self.packet_id, properties.as_properties());
        use_packet(&if packet_type == PacketType::Suback {
            Packet::Suback(SubackPacket {
                packet_id,
                properties,
                codes: (&codes[..]).into(),
            })
        } else if self.version.is_v5() {
            Packet::Unsuback(UnsubackPacket {
                packet_id,
                properties,
                codes: (&codes[..]).into(),
            })
        } else {
            Packet::Unsuback(UnsubackPacket {
                packet_id,
                properties,
                codes: ReasonCodes::EMPTY,
            })
        })
    }
}
