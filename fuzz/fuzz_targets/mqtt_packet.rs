//! MQTT bytes from the network, read as a stream in every version.
//!
//! Whatever decodes must survive being written and read again, and must lead neither end of a session to panic.

#![no_main]

use fieldline_codec::session::{ClientEvent, ClientSession, ServerEvent, ServerSession, SessionLimits};
use fieldline_codec::{
    ConnackPacket, ConnectPacket, MqttProperty, MqttPropertyBuf, MqttProtocolVersion, Packet, QoS,
    ReasonCode, decode_frame, frame_len, peek_protocol,
};
use libfuzzer_sys::fuzz_target;

const MAX_PACKET_SIZE: u32 = 64 * 1024;

fuzz_target!(|input: &[u8]| {
    let _ = peek_protocol(input);
    for version in [
        MqttProtocolVersion::V31,
        MqttProtocolVersion::V311,
        MqttProtocolVersion::V5,
    ] {
        write_and_read_again(input, version);
        feed_client(input, version);
    }
    feed_server(input);
});

fn write_and_read_again(mut input: &[u8], version: MqttProtocolVersion) {
    let mut out = Vec::new();
    while let Ok(Some((packet, used))) = decode_frame(input, MAX_PACKET_SIZE, version) {
        assert_eq!(frame_len(input, MAX_PACKET_SIZE, version), Ok(Some(used)));
        out.clear();
        packet
            .encode(version, &mut out)
            .expect("what was decoded can be written");
        assert_eq!(
            decode_frame(&out, MAX_PACKET_SIZE, version),
            Ok(Some((packet, out.len())))
        );
        look_into(&packet);
        input = &input[used..];
    }
}

/// Uses the lazy parts of a packet.
fn look_into(packet: &Packet<'_>) {
    match packet {
        Packet::Publish(publish) => {
            let _ = (
                publish.properties.iter().count(),
                publish.properties.topic_alias(),
            );
        }
        Packet::Subscribe(subscribe) => {
            assert_eq!(subscribe.filters.iter().count(), subscribe.filters.len());
            for entry in subscribe.filters.iter() {
                let _ = entry.parse().map(|filter| filter.matches("a/b"));
            }
        }
        Packet::Unsubscribe(unsubscribe) => {
            assert_eq!(unsubscribe.filters.iter().count(), unsubscribe.filters.len());
        }
        Packet::Suback(suback) => assert_eq!(suback.codes.iter().count(), suback.codes.len()),
        _ => {}
    }
}

fn limits_announced() -> MqttPropertyBuf {
    let mut properties = MqttPropertyBuf::new();
    for property in [
        MqttProperty::ReceiveMaximum(4),
        MqttProperty::TopicAliasMaximum(4),
    ] {
        properties.push(property).expect("valid");
    }
    properties
}

fn feed_server(mut input: &[u8]) {
    let mut server = ServerSession::<()>::new(SessionLimits {
        max_outbound_aliases: 4,
        ..SessionLimits::default()
    });
    let properties = limits_announced();
    let connack = ConnackPacket {
        properties: properties.as_properties(),
        ..ConnackPacket::default()
    };
    let mut out = Vec::new();
    while let Ok(Some((packet, used))) = decode_frame(input, MAX_PACKET_SIZE, server.version()) {
        input = &input[used..];
        match server.receive(&packet, 0, &mut out) {
            Ok(ServerEvent::Connect(_)) => server.accept(&connack, &mut out).expect("valid"),
            Ok(ServerEvent::Publish(publish) | ServerEvent::PublishAgain(publish)) => {
                assert!(!server.topic(publish).is_empty());
                match (publish.qos, publish.packet_id) {
                    (QoS::AtLeastOnce, Some(id)) => server.puback(id, ReasonCode::Success, &mut out),
                    (_, Some(id)) => server.pubrec(id, ReasonCode::Success, &mut out),
                    _ => Ok(()),
                }
                .expect("valid");
            }
            Ok(ServerEvent::Subscribe(_)) => {
                let message = fieldline_codec::PublishPacket {
                    qos: QoS::ExactlyOnce,
                    ..fieldline_codec::PublishPacket::new("v1/devices/me/attributes", b"{}")
                };
                let _ = server.publish(&message, (), &mut out);
            }
            Ok(_) => {}
            Err(error) => return server.disconnect(error.reason_code(), &mut out),
        }
    }
}

fn feed_client(mut input: &[u8], version: MqttProtocolVersion) {
    let mut client = ClientSession::<()>::new(version, SessionLimits::default());
    let properties = limits_announced();
    let connect = ConnectPacket {
        properties: properties.as_properties(),
        ..ConnectPacket::new(version, "fuzz")
    };
    let mut out = Vec::new();
    client.connect(&connect, 0, &mut out).expect("valid");
    while let Ok(Some((packet, used))) = decode_frame(input, MAX_PACKET_SIZE, version) {
        input = &input[used..];
        match client.receive(&packet, &mut out) {
            Ok(ClientEvent::Publish(publish)) => assert!(!client.topic(publish).is_empty()),
            Ok(_) => {}
            Err(error) => return client.disconnect(error.reason_code(), &mut out),
        }
        let message = fieldline_codec::PublishPacket {
            qos: QoS::AtLeastOnce,
            ..fieldline_codec::PublishPacket::new("t", b"")
        };
        let _ = client.publish(&message, (), &mut out);
    }
}
