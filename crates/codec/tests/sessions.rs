//! Client and server sessions connected by bytes.

use fieldline_codec::session::*;
use fieldline_codec::*;

type Server = ServerSession<&'static str>;
type Client = ClientSession<&'static str>;

fn id(value: u16) -> PacketId {
    PacketId::new(value).expect("not zero")
}

/// Decodes `bytes` as packets from the client and returns the result of `on_event` for the last one.
fn serve<R>(
    server: &mut Server,
    bytes: &[u8],
    out: &mut Vec<u8>,
    mut on_event: impl FnMut(Result<ServerEvent<'_, &'static str>, SessionError>) -> R,
) -> R {
    let mut at = 0;
    let mut last = None;
    while let Some((packet, used)) =
        decode_frame(&bytes[at..], server.max_packet_size(), server.version()).expect("valid")
    {
        at += used;
        last = Some(on_event(server.receive(&packet, 1000, out)));
    }
    last.expect("a packet")
}

fn bytes_of(packet: &Packet<'_>, version: MqttProtocolVersion) -> Vec<u8> {
    let mut out = Vec::new();
    packet.encode(version, &mut out).expect("can be written");
    out
}

fn connected_with(connect: &ConnectPacket<'_>, connack: &ConnackPacket<'_>) -> Server {
    let mut server = Server::new(SessionLimits {
        max_outbound_aliases: 8,
        ..SessionLimits::default()
    });
    let mut out = Vec::new();
    let packet = Packet::Connect(*connect);
    assert!(matches!(
        server.receive(&packet, 1000, &mut out),
        Ok(ServerEvent::Connect(_))
    ));
    server.accept(connack, &mut out).expect("valid");
    assert!(server.is_connected());
    server
}

fn connected(version: MqttProtocolVersion) -> Server {
    connected_with(&ConnectPacket::new(version, "dev"), &ConnackPacket::default())
}

fn publish(qos: QoS, packet_id: u16) -> PublishPacket<'static> {
    PublishPacket {
        qos,
        packet_id: PacketId::new(packet_id),
        ..PublishPacket::new("v1/devices/me/telemetry", b"{}")
    }
}

fn error_of(server: &mut Server, packet: &Packet<'_>) -> SessionErrorKind {
    server
        .receive(packet, 1000, &mut Vec::new())
        .expect_err("refused")
        .kind()
}

#[test]
fn idle_sessions_are_small() {
    assert!(
        size_of::<ServerSession<u64>>() <= 200,
        "{}",
        size_of::<ServerSession<u64>>()
    );
    assert!(
        size_of::<ClientSession<u64>>() <= 200,
        "{}",
        size_of::<ClientSession<u64>>()
    );
}

#[test]
fn only_connect_opens_a_connection_and_only_once() {
    let mut server = Server::new(SessionLimits::default());
    assert_eq!(
        error_of(&mut server, &Packet::Pingreq),
        SessionErrorKind::NotConnected
    );
    let mut server = connected(MqttProtocolVersion::V311);
    let again = Packet::Connect(ConnectPacket::new(MqttProtocolVersion::V311, "dev"));
    assert_eq!(error_of(&mut server, &again), SessionErrorKind::Protocol);
    assert_eq!(
        error_of(&mut server, &Packet::Pingresp),
        SessionErrorKind::Protocol
    );
    let bye = Packet::Disconnect(DisconnectPacket::default());
    assert!(matches!(
        server.receive(&bye, 1000, &mut Vec::new()),
        Ok(ServerEvent::Disconnect(_))
    ));
    assert_eq!(
        error_of(&mut server, &Packet::Pingreq),
        SessionErrorKind::NotConnected
    );
}

#[test]
fn a_session_that_will_not_expire_later_cannot_be_extended_by_disconnect() {
    let mut properties = MqttPropertyBuf::new();
    properties
        .push(MqttProperty::SessionExpiryInterval(60))
        .expect("valid");
    let bye = Packet::Disconnect(DisconnectPacket {
        properties: properties.as_properties(),
        ..DisconnectPacket::default()
    });
    assert_eq!(
        error_of(&mut connected(MqttProtocolVersion::V5), &bye),
        SessionErrorKind::Protocol
    );
    let connect = ConnectPacket {
        properties: properties.as_properties(),
        ..ConnectPacket::new(MqttProtocolVersion::V5, "dev")
    };
    let mut server = connected_with(&connect, &ConnackPacket::default());
    assert!(server.receive(&bye, 1000, &mut Vec::new()).is_ok());
}

#[test]
fn keep_alive_allows_one_and_a_half_intervals() {
    let mut server = connected(MqttProtocolVersion::V311);
    assert_eq!(server.deadline_ms(), Some(1000 + 90_000));
    let mut out = Vec::new();
    assert!(matches!(
        server.receive(&Packet::Pingreq, 5000, &mut out),
        Ok(ServerEvent::Handled)
    ));
    assert_eq!((server.deadline_ms(), out), (Some(95_000), vec![0xD0, 0]));

    let off = ConnectPacket {
        keep_alive: 0,
        ..ConnectPacket::new(MqttProtocolVersion::V5, "dev")
    };
    assert_eq!(
        connected_with(&off, &ConnackPacket::default()).deadline_ms(),
        None
    );
    let mut properties = MqttPropertyBuf::new();
    properties.push(MqttProperty::ServerKeepAlive(10)).expect("valid");
    let connack = ConnackPacket {
        properties: properties.as_properties(),
        ..ConnackPacket::default()
    };
    assert_eq!(connected_with(&off, &connack).deadline_ms(), Some(16_000));
}

#[test]
fn a_repeated_message_of_qos_2_is_taken_once() {
    let mut server = connected(MqttProtocolVersion::V311);
    let mut out = Vec::new();
    let first = Packet::Publish(publish(QoS::ExactlyOnce, 9));
    assert!(matches!(
        server.receive(&first, 1000, &mut out),
        Ok(ServerEvent::Publish(_))
    ));
    server
        .pubrec(id(9), ReasonCode::Success, &mut out)
        .expect("valid");
    let again = Packet::Publish(PublishPacket {
        dup: true,
        ..publish(QoS::ExactlyOnce, 9)
    });
    assert!(matches!(
        server.receive(&again, 1000, &mut out),
        Ok(ServerEvent::PublishAgain(_))
    ));
    let release = Packet::Pubrel(AckPacket::new(id(9), ReasonCode::Success));
    assert!(matches!(
        server.receive(&release, 1000, &mut out),
        Ok(ServerEvent::Handled)
    ));
    assert_eq!(out, [0x50, 2, 0, 9, 0x70, 2, 0, 9]);
    assert!(matches!(
        server.receive(&first, 1000, &mut out),
        Ok(ServerEvent::Publish(_))
    ));
}

#[test]
fn an_unknown_release_is_answered_with_not_found() {
    let release = Packet::Pubrel(AckPacket::new(id(9), ReasonCode::Success));
    let mut out = Vec::new();
    assert!(
        connected(MqttProtocolVersion::V5)
            .receive(&release, 0, &mut out)
            .is_ok()
    );
    assert_eq!(out, [0x70, 3, 0, 9, 0x92]);
}

#[test]
fn a_release_that_was_answered_on_an_earlier_connection_is_no_error() {
    let mut earlier = connected(MqttProtocolVersion::V5);
    let state = earlier.take_state();
    let mut server = connected(MqttProtocolVersion::V5);
    server.restore_state(state);
    let release = Packet::Pubrel(AckPacket::new(id(9), ReasonCode::Success));
    let mut out = Vec::new();
    assert!(server.receive(&release, 0, &mut out).is_ok());
    assert_eq!(out, [0x70, 2, 0, 9]);
}

#[test]
fn the_announced_receive_maximum_is_enforced() {
    let mut properties = MqttPropertyBuf::new();
    properties.push(MqttProperty::ReceiveMaximum(2)).expect("valid");
    let connack = ConnackPacket {
        properties: properties.as_properties(),
        ..ConnackPacket::default()
    };
    let mut server = connected_with(&ConnectPacket::new(MqttProtocolVersion::V5, "dev"), &connack);
    let mut out = Vec::new();
    for (qos, packet_id) in [(QoS::AtLeastOnce, 1), (QoS::ExactlyOnce, 2), (QoS::AtMostOnce, 0)] {
        assert!(
            server
                .receive(&Packet::Publish(publish(qos, packet_id)), 0, &mut out)
                .is_ok()
        );
    }
    server
        .puback(id(1), ReasonCode::Success, &mut out)
        .expect("valid");
    assert!(
        server
            .receive(&Packet::Publish(publish(QoS::AtLeastOnce, 3)), 0, &mut out)
            .is_ok()
    );
    let surplus = Packet::Publish(publish(QoS::AtLeastOnce, 4));
    assert_eq!(error_of(&mut server, &surplus), SessionErrorKind::ReceiveMaximum);
    server.disconnect(ReasonCode::ReceiveMaximumExceeded, &mut out);
    assert!(out.ends_with(&[0xE0, 1, 0x93]));
}

#[test]
fn aliases_stand_for_topics_in_both_directions() {
    let mut alias_maximum = MqttPropertyBuf::new();
    alias_maximum
        .push(MqttProperty::TopicAliasMaximum(3))
        .expect("valid");
    let connect = ConnectPacket {
        properties: alias_maximum.as_properties(),
        ..ConnectPacket::new(MqttProtocolVersion::V5, "dev")
    };
    let connack = ConnackPacket {
        properties: alias_maximum.as_properties(),
        ..ConnackPacket::default()
    };
    let mut server = connected_with(&connect, &connack);
    let with_alias = |alias: u16| {
        let mut properties = MqttPropertyBuf::new();
        properties.push(MqttProperty::TopicAlias(alias)).expect("valid");
        properties
    };
    let (second, fourth) = (with_alias(2), with_alias(4));
    let set = PublishPacket {
        properties: second.as_properties(),
        ..PublishPacket::new("a/b", b"")
    };
    let by_alias = PublishPacket { topic: "", ..set };
    assert_eq!(
        error_of(&mut server, &Packet::Publish(by_alias)),
        SessionErrorKind::Protocol
    );
    assert!(server.receive(&Packet::Publish(set), 0, &mut Vec::new()).is_ok());
    assert!(
        server
            .receive(&Packet::Publish(by_alias), 0, &mut Vec::new())
            .is_ok()
    );
    assert_eq!(server.topic(&by_alias), "a/b");
    let out_of_range = PublishPacket {
        properties: fourth.as_properties(),
        ..set
    };
    assert_eq!(
        error_of(&mut server, &Packet::Publish(out_of_range)),
        SessionErrorKind::TopicAlias
    );

    let (mut long, mut short) = (Vec::new(), Vec::new());
    let message = publish(QoS::AtMostOnce, 0);
    server.publish(&message, "", &mut long).expect("sent");
    server.publish(&message, "", &mut short).expect("sent");
    assert_eq!(long.len() - short.len(), message.topic.len());
    assert!(matches!(
        decode_frame(&short, 100, MqttProtocolVersion::V5),
        Ok(Some((Packet::Publish(PublishPacket { topic: "", .. }), _)))
    ));
}

#[test]
fn sending_stops_at_the_window_and_at_the_peers_packet_size() {
    let mut properties = MqttPropertyBuf::new();
    properties.push(MqttProperty::ReceiveMaximum(1)).expect("valid");
    properties
        .push(MqttProperty::MaximumPacketSize(40))
        .expect("valid");
    let connect = ConnectPacket {
        properties: properties.as_properties(),
        ..ConnectPacket::new(MqttProtocolVersion::V5, "dev")
    };
    let mut server = connected_with(&connect, &ConnackPacket::default());
    let mut out = Vec::new();
    let message = publish(QoS::AtLeastOnce, 0);
    let packet_id = server
        .publish(&message, "first", &mut out)
        .expect("sent")
        .expect("QoS 1");
    assert_eq!(
        server.publish(&message, "second", &mut out),
        Err(SessionSendError::WindowFull)
    );
    let ack = bytes_of(
        &Packet::Puback(AckPacket::new(packet_id, ReasonCode::Success)),
        MqttProtocolVersion::V5,
    );
    serve(&mut server, &ack, &mut out, |event| {
        assert!(matches!(
            event,
            Ok(ServerEvent::Acknowledged { message: "first", .. })
        ));
    });
    let large = PublishPacket {
        payload: &[0; 100],
        ..message
    };
    assert_eq!(
        server.publish(&large, "large", &mut out),
        Err(SessionSendError::PacketTooLarge)
    );
    assert!(server.can_send());
}

#[test]
fn a_resumed_session_sends_again_in_order_and_within_the_window() {
    let mut server = connected(MqttProtocolVersion::V311);
    let mut out = Vec::new();
    let ids: Vec<_> = [
        ("a", QoS::AtLeastOnce),
        ("b", QoS::ExactlyOnce),
        ("c", QoS::AtLeastOnce),
    ]
    .into_iter()
    .map(|(name, qos)| {
        server
            .publish(&publish(qos, 0), name, &mut out)
            .expect("sent")
            .expect("QoS 1 or 2")
    })
    .collect();
    let received = Packet::Pubrec(AckPacket::new(ids[1], ReasonCode::Success));
    out.clear();
    assert!(matches!(
        server.receive(&received, 0, &mut out),
        Ok(ServerEvent::Acknowledged { message: "b", .. })
    ));
    assert_eq!(out, [0x62, 2, 0, 2]);

    let state = server.take_state();
    assert_eq!((state.in_flight(), server.in_flight()), (3, 0));
    let mut server = Server::new(SessionLimits {
        max_in_flight: 2,
        ..SessionLimits::default()
    });
    let connect = Packet::Connect(ConnectPacket {
        clean_start: false,
        ..ConnectPacket::new(MqttProtocolVersion::V311, "dev")
    });
    assert!(server.receive(&connect, 0, &mut out).is_ok());
    server.restore_state(state);
    server
        .accept(&ConnackPacket::new(ReasonCode::Success, true), &mut out)
        .expect("valid");
    out.clear();
    assert!(!server.can_send());
    assert_eq!(
        server.next_redelivery(&mut out),
        Some(Redelivery::Publish {
            packet_id: ids[0],
            qos: QoS::AtLeastOnce,
            dup: true,
            message: &"a"
        })
    );
    assert_eq!(
        server.next_redelivery(&mut out),
        Some(Redelivery::Pubrel { packet_id: ids[1] })
    );
    assert_eq!(out, [0x62, 2, 0, 2]);
    assert_eq!(server.next_redelivery(&mut out), None);
    let ack = Packet::Puback(AckPacket::new(ids[0], ReasonCode::Success));
    assert!(server.receive(&ack, 0, &mut out).is_ok());
    assert!(matches!(
        server.next_redelivery(&mut out),
        Some(Redelivery::Publish { message: &"c", .. })
    ));
    assert_eq!(server.next_redelivery(&mut out), None);
}

#[test]
fn enhanced_authentication_comes_before_everything_else() {
    let mut properties = MqttPropertyBuf::new();
    properties
        .push(MqttProperty::AuthenticationMethod("SCRAM-SHA-256"))
        .expect("valid");
    let connect = Packet::Connect(ConnectPacket {
        properties: properties.as_properties(),
        ..ConnectPacket::new(MqttProtocolVersion::V5, "dev")
    });
    let auth = Packet::Auth(AuthPacket {
        code: ReasonCode::ContinueAuthentication,
        properties: properties.as_properties(),
    });
    let mut server = Server::new(SessionLimits::default());
    let mut out = Vec::new();
    assert!(server.receive(&connect, 0, &mut out).is_ok());
    assert_eq!(
        error_of(&mut server, &Packet::Pingreq),
        SessionErrorKind::Protocol
    );
    assert!(matches!(
        server.receive(&auth, 0, &mut out),
        Ok(ServerEvent::Auth(_))
    ));
    assert_eq!(
        error_of(&mut connected(MqttProtocolVersion::V5), &auth),
        SessionErrorKind::Protocol
    );
}

#[test]
fn a_client_pings_when_idle_and_gives_up_a_silent_server() {
    let mut client = Client::new(MqttProtocolVersion::V311, SessionLimits::default());
    let mut out = Vec::new();
    client
        .connect(
            &ConnectPacket {
                keep_alive: 10,
                ..ConnectPacket::new(MqttProtocolVersion::V311, "dev")
            },
            0,
            &mut out,
        )
        .expect("valid");
    assert!(
        client
            .receive(&Packet::Connack(ConnackPacket::default()), &mut out)
            .is_ok()
    );
    out.clear();
    client.poll_keep_alive(9_999, &mut out).expect("not due");
    assert!(out.is_empty());
    client.poll_keep_alive(10_000, &mut out).expect("due");
    assert_eq!(out, [0xC0, 0]);
    assert!(client.receive(&Packet::Pingresp, &mut out).is_ok());
    client.poll_keep_alive(20_000, &mut out).expect("due again");
    let error = client.poll_keep_alive(30_000, &mut out).expect_err("no answer");
    assert_eq!(error.kind(), SessionErrorKind::KeepAlive);
}

#[test]
fn a_client_subscribes_and_honours_what_the_server_supports() {
    let mut client = Client::new(MqttProtocolVersion::V5, SessionLimits::default());
    let mut out = Vec::new();
    client
        .connect(&ConnectPacket::new(MqttProtocolVersion::V5, "dev"), 0, &mut out)
        .expect("valid");
    assert_eq!(
        client.publish(&publish(QoS::AtMostOnce, 0), "", &mut out),
        Err(SessionSendError::NotConnected)
    );
    let mut properties = MqttPropertyBuf::new();
    properties
        .push(MqttProperty::MaximumQos(QoS::AtLeastOnce))
        .expect("valid");
    let connack = Packet::Connack(ConnackPacket {
        properties: properties.as_properties(),
        ..ConnackPacket::default()
    });
    assert!(matches!(
        client.receive(&connack, &mut out),
        Ok(ClientEvent::Connected(_))
    ));

    let mut filters = SubscriptionBuf::new();
    filters
        .push("a/#", SubscriptionOptions::default())
        .expect("valid");
    let packet_id = client
        .subscribe(filters.as_filters(), MqttProperties::EMPTY, &mut out)
        .expect("sent");
    let codes = [ReasonCode::Success];
    let suback = Packet::Suback(SubackPacket::new(packet_id, &codes));
    assert!(matches!(
        client.receive(&suback, &mut out),
        Ok(ClientEvent::Subscribed(_))
    ));
    assert!(client.receive(&suback, &mut out).is_err());
    assert_eq!(
        client.publish(&publish(QoS::ExactlyOnce, 0), "", &mut out),
        Err(SessionSendError::NotSupported)
    );
}
