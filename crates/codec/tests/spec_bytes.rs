//! Packets as spelled out in the specifications, and bytes that the specifications forbid.

use fieldline_codec::*;

fn id(value: u16) -> PacketId {
    PacketId::new(value).expect("not zero")
}

fn decode(bytes: &[u8], version: MqttProtocolVersion) -> Packet<'_> {
    let (packet, used) = decode_frame(bytes, 1 << 20, version)
        .expect("valid")
        .expect("complete");
    assert_eq!(used, bytes.len());
    packet
}

fn refused(bytes: &[u8], version: MqttProtocolVersion) -> DecodeErrorKind {
    decode_frame(bytes, 1 << 20, version).expect_err("invalid").kind()
}

fn assert_both_ways(bytes: &[u8], version: MqttProtocolVersion, packet: &Packet<'_>) {
    assert_eq!(&decode(bytes, version), packet);
    let mut out = vec![0xEE];
    packet.encode(version, &mut out).expect("can be written");
    assert_eq!(&out[1..], bytes);
}

#[test]
fn connect_of_3_1_1_with_everything() {
    let mut bytes = vec![0x10, 38, 0, 4];
    bytes.extend(b"MQTT\x04\xCE\x00\x0A\x00\x03dev\x00\x04gone\x00\x03bye\x00\x04user\x00\x04pass");
    bytes[1] = (bytes.len() - 2) as u8;
    let connect = ConnectPacket {
        keep_alive: 10,
        will: Some(LastWill {
            topic: "gone",
            payload: b"bye",
            qos: QoS::AtLeastOnce,
            retain: false,
            properties: MqttProperties::EMPTY,
        }),
        username: Some("user"),
        password: Some(b"pass"),
        ..ConnectPacket::new(MqttProtocolVersion::V311, "dev")
    };
    assert_both_ways(&bytes, MqttProtocolVersion::V311, &Packet::Connect(connect));
    assert_eq!(connect.encoded_len(), bytes.len());
}

#[test]
fn connect_of_3_1_goes_by_its_old_name() {
    let bytes = b"\x10\x11\x00\x06MQIsdp\x03\x02\x00\x3C\x00\x03dev";
    assert_both_ways(
        bytes,
        MqttProtocolVersion::V311,
        &Packet::Connect(ConnectPacket::new(MqttProtocolVersion::V31, "dev")),
    );
    // 3.1 §3.1: the flags announce a user name and a password, but the packet ends before them.
    let short = b"\x10\x11\x00\x06MQIsdp\x03\xC2\x00\x3C\x00\x03dev";
    assert_eq!(
        decode(short, MqttProtocolVersion::V311),
        Packet::Connect(ConnectPacket::new(MqttProtocolVersion::V31, "dev"))
    );
}

#[test]
fn connect_of_5_with_properties() {
    let bytes = b"\x10\x15\x00\x04MQTT\x05\x02\x00\x3C\x05\x11\x00\x00\x00\x0A\x00\x03dev";
    let mut properties = MqttPropertyBuf::new();
    properties
        .push(MqttProperty::SessionExpiryInterval(10))
        .expect("valid");
    let connect = ConnectPacket {
        properties: properties.as_properties(),
        ..ConnectPacket::new(MqttProtocolVersion::V5, "dev")
    };
    assert_both_ways(bytes, MqttProtocolVersion::V311, &Packet::Connect(connect));
    assert_eq!(connect.properties.session_expiry_interval(), Some(10));
    assert_eq!(connect.properties.receive_maximum(), None);
}

#[test]
fn undefined_protocol_levels_are_left_to_the_server() {
    let bridge = b"\x10\x0F\x00\x04MQTT\x84\x02\x00\x3C\x00\x03dev";
    let Packet::Connect(connect) = decode(bridge, MqttProtocolVersion::V311) else {
        panic!("CONNECT")
    };
    assert_eq!(
        (connect.protocol.level, connect.version()),
        (0x84, MqttProtocolVersion::V311)
    );
    assert!(!connect.protocol.is_defined());
    assert_eq!(
        refused(b"\x10\x08\x00\x04MQTT\x09\xFF", MqttProtocolVersion::V311),
        DecodeErrorKind::UnsupportedVersion
    );
    assert_eq!(
        refused(b"\x10\x07\x00\x04HTTP\x04", MqttProtocolVersion::V311),
        DecodeErrorKind::UnsupportedVersion
    );
    assert_eq!(
        peek_protocol(b"\x10\x7F\x00\x04MQTT\x05"),
        Some(ConnectProtocol::of(MqttProtocolVersion::V5))
    );
    assert_eq!(peek_protocol(b"\x10\x7F\x00\x04MQ"), None);
}

#[test]
fn connack_translates_the_codes_of_older_versions() {
    let refusal = Packet::Connack(ConnackPacket::new(ReasonCode::NotAuthorized, false));
    assert_both_ways(&[0x20, 2, 0, 5], MqttProtocolVersion::V311, &refusal);
    assert_both_ways(&[0x20, 3, 0, 0x87, 0], MqttProtocolVersion::V5, &refusal);
    let resumed = Packet::Connack(ConnackPacket::new(ReasonCode::Success, true));
    assert_both_ways(&[0x20, 2, 1, 0], MqttProtocolVersion::V311, &resumed);
    let mut out = Vec::new();
    resumed
        .encode(MqttProtocolVersion::V31, &mut out)
        .expect("can be written");
    assert_eq!(out, [0x20, 2, 0, 0]);
}

#[test]
fn publish_of_all_versions() {
    let publish = PublishPacket {
        qos: QoS::AtLeastOnce,
        packet_id: Some(id(10)),
        ..PublishPacket::new("a/b", b"hi")
    };
    assert_both_ways(
        b"\x32\x09\x00\x03a/b\x00\x0Ahi",
        MqttProtocolVersion::V311,
        &Packet::Publish(publish),
    );
    assert_both_ways(
        b"\x32\x0A\x00\x03a/b\x00\x0A\x00hi",
        MqttProtocolVersion::V5,
        &Packet::Publish(publish),
    );
    let empty = PublishPacket {
        retain: true,
        ..PublishPacket::new("a/b", b"")
    };
    assert_both_ways(
        b"\x31\x05\x00\x03a/b",
        MqttProtocolVersion::V31,
        &Packet::Publish(empty),
    );
}

#[test]
fn publish_with_an_alias_may_leave_out_its_topic() {
    let mut properties = MqttPropertyBuf::new();
    properties.push(MqttProperty::TopicAlias(7)).expect("valid");
    let publish = PublishPacket {
        properties: properties.as_properties(),
        ..PublishPacket::new("", b"hi")
    };
    assert_both_ways(
        b"\x30\x08\x00\x00\x03\x23\x00\x07hi",
        MqttProtocolVersion::V5,
        &Packet::Publish(publish),
    );
    assert_eq!(publish.properties.topic_alias(), Some(7));
    assert_eq!(
        refused(b"\x30\x05\x00\x00\x00hi", MqttProtocolVersion::V5),
        DecodeErrorKind::Protocol
    );
    assert_eq!(
        refused(b"\x30\x04\x00\x00hi", MqttProtocolVersion::V311),
        DecodeErrorKind::TopicName
    );
    assert_eq!(
        refused(b"\x30\x08\x00\x00\x03\x23\x00\x00hi", MqttProtocolVersion::V5),
        DecodeErrorKind::TopicAlias
    );
}

#[test]
fn acknowledgements_take_their_shortest_form() {
    let success = AckPacket::new(id(0x1234), ReasonCode::Success);
    for version in [
        MqttProtocolVersion::V31,
        MqttProtocolVersion::V311,
        MqttProtocolVersion::V5,
    ] {
        assert_both_ways(&[0x40, 2, 0x12, 0x34], version, &Packet::Puback(success));
        assert_both_ways(&[0x50, 2, 0x12, 0x34], version, &Packet::Pubrec(success));
        assert_both_ways(&[0x62, 2, 0x12, 0x34], version, &Packet::Pubrel(success));
        assert_both_ways(&[0x70, 2, 0x12, 0x34], version, &Packet::Pubcomp(success));
    }
    let refusal = AckPacket::new(id(1), ReasonCode::TopicNameInvalid);
    assert_both_ways(
        &[0x40, 3, 0, 1, 0x90],
        MqttProtocolVersion::V5,
        &Packet::Puback(refusal),
    );
    assert_eq!(
        refused(&[0x70, 3, 0, 1, 0x90], MqttProtocolVersion::V5),
        DecodeErrorKind::Malformed
    );
    assert_eq!(
        refused(&[0x40, 3, 0, 1, 0], MqttProtocolVersion::V311),
        DecodeErrorKind::Malformed
    );
}

#[test]
fn subscribe_and_its_answer() {
    let mut filters = SubscriptionBuf::new();
    filters
        .push("a/+", SubscriptionOptions::new(QoS::AtLeastOnce))
        .expect("valid");
    filters
        .push("c", SubscriptionOptions::new(QoS::ExactlyOnce))
        .expect("valid");
    let subscribe = SubscribePacket {
        packet_id: id(10),
        properties: MqttProperties::EMPTY,
        filters: filters.as_filters(),
    };
    assert_both_ways(
        b"\x82\x0C\x00\x0A\x00\x03a/+\x01\x00\x01c\x02",
        MqttProtocolVersion::V311,
        &Packet::Subscribe(subscribe),
    );
    assert_both_ways(
        b"\x82\x0D\x00\x0A\x00\x00\x03a/+\x01\x00\x01c\x02",
        MqttProtocolVersion::V5,
        &Packet::Subscribe(subscribe),
    );

    let codes = [ReasonCode::GrantedQos1, ReasonCode::UnspecifiedError];
    let suback = Packet::Suback(SubackPacket::new(id(10), &codes));
    assert_both_ways(&[0x90, 4, 0, 10, 1, 0x80], MqttProtocolVersion::V311, &suback);
    assert_both_ways(&[0x90, 5, 0, 10, 0, 1, 0x80], MqttProtocolVersion::V5, &suback);
    let mut out = Vec::new();
    SubackPacket::new(id(1), &[ReasonCode::TopicFilterInvalid])
        .encode(MqttProtocolVersion::V311, &mut out)
        .expect("can be written");
    assert_eq!(out, [0x90, 3, 0, 1, 0x80]);
}

#[test]
fn unsubscribe_and_its_answer() {
    let mut filters = TopicFilterBuf::new();
    filters.push("a/b").expect("valid");
    let unsubscribe = UnsubscribePacket {
        packet_id: id(3),
        properties: MqttProperties::EMPTY,
        filters: filters.as_filters(),
    };
    assert_both_ways(
        b"\xA2\x07\x00\x03\x00\x03a/b",
        MqttProtocolVersion::V311,
        &Packet::Unsubscribe(unsubscribe),
    );
    assert_both_ways(
        &[0xB0, 2, 0, 3],
        MqttProtocolVersion::V311,
        &Packet::Unsuback(UnsubackPacket::new(id(3), ReasonCodes::EMPTY)),
    );
    let codes = [ReasonCode::NoSubscriptionExisted];
    assert_both_ways(
        &[0xB0, 4, 0, 3, 0, 0x11],
        MqttProtocolVersion::V5,
        &Packet::Unsuback(UnsubackPacket::new(id(3), &codes)),
    );
}

#[test]
fn ping_disconnect_and_auth() {
    assert_both_ways(&[0xC0, 0], MqttProtocolVersion::V311, &Packet::Pingreq);
    assert_both_ways(&[0xD0, 0], MqttProtocolVersion::V5, &Packet::Pingresp);
    assert_both_ways(
        &[0xE0, 0],
        MqttProtocolVersion::V311,
        &Packet::Disconnect(DisconnectPacket::default()),
    );
    let taken_over = DisconnectPacket::new(ReasonCode::SessionTakenOver);
    assert_both_ways(
        &[0xE0, 1, 0x8E],
        MqttProtocolVersion::V5,
        &Packet::Disconnect(taken_over),
    );
    let mut properties = MqttPropertyBuf::new();
    properties
        .push(MqttProperty::AuthenticationMethod("X"))
        .expect("valid");
    let auth = AuthPacket {
        code: ReasonCode::ContinueAuthentication,
        properties: properties.as_properties(),
    };
    assert_both_ways(
        b"\xF0\x06\x18\x04\x15\x00\x01X",
        MqttProtocolVersion::V5,
        &Packet::Auth(auth),
    );
    assert_eq!(
        refused(&[0xF0, 0], MqttProtocolVersion::V311),
        DecodeErrorKind::Malformed
    );
    assert_eq!(
        refused(&[0xF0, 2, 0x18, 0], MqttProtocolVersion::V5),
        DecodeErrorKind::Protocol
    );
}

#[test]
fn bytes_the_specification_forbids_are_refused() {
    use DecodeErrorKind::{Malformed, Protocol, TopicFilter, TopicName};
    use MqttProtocolVersion::{V5, V31, V311};
    let cases: &[(&[u8], MqttProtocolVersion, DecodeErrorKind, &str)] = &[
        (&[0x00, 0], V311, Malformed, "packet type 0"),
        (&[0x36], V311, Malformed, "QoS 3"),
        (&[0x38], V311, Malformed, "DUP at QoS 0"),
        (&[0x80], V5, Malformed, "SUBSCRIBE without its flags"),
        (&[0x8A], V311, Malformed, "SUBSCRIBE with DUP after 3.1"),
        (&[0xC1], V311, Malformed, "PINGREQ with flags"),
        (&[0xC0, 1, 0], V311, Malformed, "PINGREQ with a body"),
        (
            &[0x30, 0xFF, 0xFF, 0xFF, 0x80],
            V311,
            Malformed,
            "length of five bytes",
        ),
        (&[0xC0, 0x80, 0], V5, Malformed, "length longer than needed"),
        (
            b"\x32\x05\x00\x01a\x00\x00",
            V311,
            Malformed,
            "packet identifier 0",
        ),
        (b"\x30\x04\x00\x02a+", V311, TopicName, "wildcard in a topic"),
        (b"\x30\x04\x00\x02a\x00", V311, TopicName, "U+0000 in a topic"),
        (b"\x30\x04\x00\x02\xC3\x28", V311, Malformed, "topic is not UTF-8"),
        (
            b"\x30\x05\x00\x03\xED\xA0\x80",
            V311,
            Malformed,
            "surrogate in a topic",
        ),
        (b"\x30\x03\x00\x05a", V311, Malformed, "topic past the end"),
        (b"\x82\x02\x00\x01", V311, Protocol, "SUBSCRIBE without filters"),
        (b"\x82\x05\x00\x01\x00\x00\x01", V311, TopicFilter, "empty filter"),
        (
            b"\x82\x06\x00\x01\x00\x01a\x03",
            V311,
            Malformed,
            "subscription with QoS 3",
        ),
        (
            b"\x82\x06\x00\x01\x00\x01a\x04",
            V311,
            Malformed,
            "options before MQTT 5",
        ),
        (
            b"\x82\x07\x00\x01\x00\x00\x01a\x30",
            V5,
            Malformed,
            "retain handling 3",
        ),
        (
            b"\x82\x10\x00\x01\x00\x00\x0A$share/g/a\x05",
            V5,
            Protocol,
            "no-local on a shared subscription",
        ),
        (b"\x30\x06\x00\x01a\x02\x01\x02", V5, Protocol, "payload format 2"),
        (
            b"\x30\x08\x00\x01a\x04\x01\x01\x01\x01",
            V5,
            Protocol,
            "property twice",
        ),
        (
            b"\x30\x06\x00\x01a\x02\x24\x01",
            V5,
            Malformed,
            "property of another packet",
        ),
        (
            b"\x30\x06\x00\x01a\x02\x7E\x01",
            V5,
            Malformed,
            "unknown property",
        ),
        (
            b"\x30\x06\x00\x01a\x02\x0B\x00",
            V5,
            Protocol,
            "subscription identifier 0",
        ),
        (
            b"\x10\x10\x00\x04MQTT\x04\x03\x00\x3C\x00\x03dev!",
            V311,
            Malformed,
            "reserved connect flag",
        ),
        (
            b"\x10\x0F\x00\x04MQTT\x04\x42\x00\x3C\x00\x03dev",
            V311,
            Malformed,
            "password without user name",
        ),
        (
            b"\x10\x0F\x00\x04MQTT\x04\x0A\x00\x3C\x00\x03dev",
            V311,
            Malformed,
            "will QoS without a will",
        ),
        (
            b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3C\x00\x03dev!",
            V311,
            Malformed,
            "bytes left over",
        ),
        (&[0x20, 2, 2, 0], V311, Malformed, "reserved bits of CONNACK"),
        (&[0x20, 2, 0, 6], V311, Malformed, "return code 6"),
        (&[0x20, 3, 1, 0x87, 0], V5, Protocol, "refusal with a session"),
        (&[0x90, 3, 0, 1, 0x8F], V311, Malformed, "SUBACK code of MQTT 5"),
        (
            &[0xE0, 1, 0],
            V311,
            Malformed,
            "DISCONNECT with a reason before MQTT 5",
        ),
        (&[0xE0, 1, 0x86], V5, Malformed, "reason of another packet"),
    ];
    for (bytes, version, kind, what) in cases {
        assert_eq!(refused(bytes, *version), *kind, "{what}");
    }
    // 3.1 marks a repeated SUBSCRIBE with DUP.
    assert!(matches!(
        decode(b"\x8A\x06\x00\x01\x00\x01a\x01", V31),
        Packet::Subscribe(_)
    ));
}

#[test]
fn an_oversized_packet_is_refused_before_its_body_arrives() {
    let header = [0x30, 0xFF, 0xFF, 0x7F];
    let error = decode_frame(&header, 1024, MqttProtocolVersion::V5).expect_err("too large");
    assert_eq!(error.reason_code(), ReasonCode::PacketTooLarge);
    assert_eq!(
        frame_len(&header, u32::MAX, MqttProtocolVersion::V5),
        Ok(Some(2_097_151 + 4))
    );
    assert_eq!(frame_len(&header[..3], 1024, MqttProtocolVersion::V5), Ok(None));
    assert_eq!(
        decode_frame(b"\x30\x05\x00\x03a/b", 7, MqttProtocolVersion::V311).map(|packet| packet.is_some()),
        Ok(true)
    );
    assert!(decode_frame(b"\x30\x05\x00\x03a/b", 6, MqttProtocolVersion::V311).is_err());
}

#[test]
fn packets_that_cannot_be_expressed_leave_the_output_alone() {
    let mut out = Vec::new();
    let long = "x".repeat(65_536);
    assert_eq!(
        PublishPacket::new(&long, b"")
            .encode(MqttProtocolVersion::V5, &mut out)
            .map_err(|e| e.kind()),
        Err(EncodeErrorKind::TooLong)
    );
    assert!(
        PublishPacket::new("a/#", b"")
            .encode(MqttProtocolVersion::V5, &mut out)
            .is_err()
    );
    assert!(
        PublishPacket {
            qos: QoS::AtLeastOnce,
            ..PublishPacket::new("a", b"")
        }
        .encode(MqttProtocolVersion::V5, &mut out)
        .is_err()
    );
    assert!(
        DisconnectPacket::new(ReasonCode::Banned)
            .encode(MqttProtocolVersion::V5, &mut out)
            .is_err()
    );
    assert!(
        AuthPacket::default()
            .encode(MqttProtocolVersion::V311, &mut out)
            .is_err()
    );
    assert!(
        ConnectPacket {
            password: Some(b"x"),
            ..ConnectPacket::new(MqttProtocolVersion::V311, "dev")
        }
        .encode(&mut out)
        .is_err()
    );
    assert!(out.is_empty());
    let mut properties = MqttPropertyBuf::new();
    assert!(properties.push(MqttProperty::ReceiveMaximum(0)).is_err());
    assert!(properties.push(MqttProperty::ReceiveMaximum(1)).is_ok());
    assert!(properties.push(MqttProperty::ReceiveMaximum(1)).is_err());
}

#[test]
fn a_template_writes_what_encoding_would() {
    for version in [MqttProtocolVersion::V311, MqttProtocolVersion::V5] {
        for qos in [QoS::AtMostOnce, QoS::AtLeastOnce] {
            let packet_id = (qos != QoS::AtMostOnce).then(|| id(0x0102));
            let publish = PublishPacket {
                qos,
                packet_id,
                ..PublishPacket::new("v1/devices/me/telemetry", b"{\"t\":1}")
            };
            let mut template = PublishTemplate::new(&publish, version).expect("valid");
            let (mut expected, mut out) = (Vec::new(), Vec::new());
            publish.encode(version, &mut expected).expect("valid");
            template.write(packet_id, &mut out);
            assert_eq!(out, expected);
            assert_eq!(publish.encoded_len(version), out.len());
            template.payload_mut().copy_from_slice(b"{\"t\":2}");
            template.write(packet_id, &mut out);
            assert!(out.ends_with(b"{\"t\":2}"));
        }
    }
}

#[test]
fn properties_are_read_back_by_type() {
    let mut properties = MqttPropertyBuf::new();
    properties
        .push(MqttProperty::UserProperty("a", "1"))
        .expect("valid");
    properties
        .push(MqttProperty::SubscriptionIdentifier(300))
        .expect("valid");
    properties
        .push(MqttProperty::ContentType("text/plain"))
        .expect("valid");
    properties
        .push(MqttProperty::UserProperty("a", "2"))
        .expect("valid");
    properties
        .push(MqttProperty::SubscriptionIdentifier(5))
        .expect("valid");
    let mut bytes = Vec::new();
    PublishPacket {
        properties: properties.as_properties(),
        ..PublishPacket::new("t", b"")
    }
    .encode(MqttProtocolVersion::V5, &mut bytes)
    .expect("valid");
    let Packet::Publish(publish) = decode(&bytes, MqttProtocolVersion::V5) else {
        panic!("PUBLISH")
    };
    assert_eq!(publish.properties.content_type(), Some("text/plain"));
    assert_eq!(
        publish.properties.user_properties().collect::<Vec<_>>(),
        [("a", "1"), ("a", "2")]
    );
    assert_eq!(
        publish.properties.subscription_identifiers().collect::<Vec<_>>(),
        [300, 5]
    );
    assert_eq!(publish.properties.iter().count(), 5);
}
