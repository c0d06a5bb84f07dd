//! MQTT while the journal accepts nothing, or no more from a device: connections must still end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fieldline_codec::{
    AckPacket, ConnectPacket, DisconnectPacket, MqttProperty, MqttPropertyBuf, MqttProtocolVersion, PacketId,
    PacketType, PublishPacket, QoS, ReasonCode,
};
use fieldline_devices::downlink::{AttributeUpdate, DeviceLink as _};
use fieldline_entities::services::NameConflict;
use fieldline_event_loop::TrustedProxies;
use fieldline_model::DeviceId;
use fieldline_model::kv::{KvValueRef, pack};
use fieldline_model::timeseries::AttributeScope;
use fieldline_transport::mqtt::{MqttServer, Options};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::world::{LIMITS, World, busy_world, limit_messages, set_limit};

const PATIENCE: Duration = Duration::from_secs(10);

async fn serve(world: &World) -> (Arc<MqttServer>, SocketAddr) {
    let server = MqttServer::new(
        world.services.clone(),
        &Options::default(),
        &TrustedProxies::default(),
    )
    .unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let address = server.listen(any, None).await.unwrap();
    (server, address)
}

async fn log_in(address: SocketAddr, token: &str, version: MqttProtocolVersion) -> TcpStream {
    log_in_for(address, token, version, 0).await
}

async fn log_in_for(
    address: SocketAddr,
    token: &str,
    version: MqttProtocolVersion,
    keep_alive: u16,
) -> TcpStream {
    let mut out = Vec::new();
    let connect = ConnectPacket {
        username: Some(token),
        keep_alive,
        ..ConnectPacket::new(version, "device")
    };
    connect.encode(&mut out).unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&out).await.unwrap();
    let mut header = [0; 2];
    stream.read_exact(&mut header).await.unwrap();
    assert_eq!(header[0], 0x20, "CONNACK");
    let mut rest = vec![0; usize::from(header[1])];
    stream.read_exact(&mut rest).await.unwrap();
    assert_eq!(rest[..2], [0, 0], "accepted");
    stream
}

async fn publish(stream: &mut TcpStream, version: MqttProtocolVersion) {
    publish_to(stream, version, "v1/devices/me/telemetry", br#"{"a":1}"#).await;
}

async fn publish_to(stream: &mut TcpStream, version: MqttProtocolVersion, topic: &str, payload: &[u8]) {
    let message = PublishPacket {
        qos: QoS::AtLeastOnce,
        packet_id: PacketId::new(1),
        ..PublishPacket::new(topic, payload)
    };
    let mut out = Vec::new();
    message.encode(version, &mut out).unwrap();
    stream.write_all(&out).await.unwrap();
}

/// Publishes and reads the successful PUBACK, which both versions write in two bytes.
async fn acknowledged(stream: &mut TcpStream, version: MqttProtocolVersion) {
    publish(stream, version).await;
    let mut puback = [0; 4];
    stream.read_exact(&mut puback).await.unwrap();
    assert_eq!(puback, [0x40, 2, 0, 1]);
}

/// Reads all output until the connection is closed.
async fn last_words(stream: &mut TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer))
        .await
        .expect("it is closed")
        .unwrap();
    answer
}

/// The output before a connection ends because of a limit: nothing in version 3, code and reason in version 5.
fn told(version: MqttProtocolVersion, code: ReasonCode, why: &str) -> Vec<u8> {
    let mut out = Vec::new();
    if version.is_v5() {
        let mut properties = MqttPropertyBuf::new();
        properties.push(MqttProperty::ReasonString(why)).unwrap();
        let disconnect = DisconnectPacket {
            code,
            properties: properties.as_properties(),
        };
        disconnect.encode(version, &mut out).unwrap();
    }
    out
}

const REFUSED: ReasonCode = ReasonCode::ImplementationSpecificError;

#[tokio::test]
async fn a_session_that_waits_for_a_busy_journal_is_replaced_and_stopped_unacknowledged() {
    let world = busy_world().await;
    let (server, address) = serve(&world).await;
    let mut replaced = log_in(address, "first", MqttProtocolVersion::V311).await;
    publish(&mut replaced, MqttProtocolVersion::V311).await;
    let mut waiting = log_in(address, "first", MqttProtocolVersion::V311).await;
    let answer = last_words(&mut replaced).await;
    assert!(answer.is_empty(), "nothing is acknowledged that is not durable");

    publish(&mut waiting, MqttProtocolVersion::V311).await;
    assert!(
        server.stop(PATIENCE).await,
        "all connections end although the journal does not move"
    );
    assert!(last_words(&mut waiting).await.is_empty());
}

#[tokio::test]
async fn the_connection_of_a_tenant_that_has_used_up_its_messages_ends_at_the_next_one() {
    for version in [MqttProtocolVersion::V311, MqttProtocolVersion::V5] {
        let world = World::new(LIMITS).await;
        let (server, address) = serve(&world).await;
        let mut device = log_in(address, "first", version).await;
        acknowledged(&mut device, version).await;
        limit_messages(&world, 1).await;
        world.usage.report(false).await;
        publish(&mut device, version).await;
        let why = "The messages of this month are used up!";
        assert_eq!(last_words(&mut device).await, told(version, REFUSED, why));
        assert!(server.stop(PATIENCE).await);
    }
}

#[tokio::test]
async fn the_connection_of_a_device_that_goes_beyond_its_rate_limit_ends_at_the_next_message() {
    for version in [MqttProtocolVersion::V311, MqttProtocolVersion::V5] {
        let mut world = World::new(LIMITS).await;
        set_limit(&world, "transportDeviceTelemetryMsgRateLimit", "2:3600".into()).await;
        let (server, address) = serve(&world).await;
        let mut device = log_in(address, "first", version).await;
        let mut other = log_in(address, "second", version).await;
        for _ in 0..2 {
            acknowledged(&mut device, version).await;
        }
        publish(&mut device, version).await;
        let why = "The rate limit of telemetry messages of the device (2:3600) is exceeded!";
        assert_eq!(last_words(&mut device).await, told(version, REFUSED, why));
        acknowledged(&mut other, version).await;
        assert!(server.stop(PATIENCE).await);
        world.store_all().await;
        assert_eq!(
            world.journaled().await.len(),
            3,
            "what is refused is not journaled"
        );
    }
}

/// Makes the first device a gateway.
async fn make_gateway(world: &World) {
    let (tenant, id) = (world.subject.tenant, DeviceId(world.subject.entity.id));
    let mut device = world
        .context
        .stores
        .devices
        .get(tenant, id)
        .await
        .unwrap()
        .unwrap();
    device.additional_info = Some(serde_json::json!({"gateway": true}));
    let saved = world
        .devices
        .save(tenant, device.into(), &NameConflict::Fail)
        .await;
    saved.unwrap();
}

#[tokio::test]
async fn what_comes_from_behind_a_gateway_has_limits_of_its_own() {
    let one = br#"{"meter":[{"a":1}]}"#;
    for version in [MqttProtocolVersion::V311, MqttProtocolVersion::V5] {
        let world = World::new(LIMITS).await;
        make_gateway(&world).await;
        set_limit(&world, "transportGatewayTelemetryMsgRateLimit", "1:3600".into()).await;
        set_limit(
            &world,
            "transportGatewayDeviceTelemetryMsgRateLimit",
            "2:3600".into(),
        )
        .await;
        set_limit(&world, "transportDeviceTelemetryMsgRateLimit", "1:3600".into()).await;
        let (server, address) = serve(&world).await;
        let mut gateway = log_in(address, "first", version).await;
        let topic = "v1/gateway/telemetry";
        publish_to(&mut gateway, version, topic, one).await;
        let mut puback = [0; 4];
        gateway.read_exact(&mut puback).await.unwrap();
        assert_eq!(puback, [0x40, 2, 0, 1]);
        // The gateway's own messages have another limit.
        for _ in 0..2 {
            acknowledged(&mut gateway, version).await;
        }
        publish_to(&mut gateway, version, topic, one).await;
        let mut expected = Vec::new();
        if version.is_v5() {
            let notice = PublishPacket::new("v1/gateway/disconnect", br#"{"device":"meter","reason":150}"#);
            notice.encode(version, &mut expected).unwrap();
            let puback = AckPacket::new(PacketId::new(1).unwrap(), ReasonCode::QuotaExceeded);
            puback.encode(PacketType::Puback, version, &mut expected).unwrap();
        }
        let why = "The rate limit of telemetry messages of the gateway (1:3600) is exceeded!";
        expected.extend(told(version, ReasonCode::QuotaExceeded, why));
        assert_eq!(last_words(&mut gateway).await, expected);
        assert!(server.stop(PATIENCE).await);
    }
}

#[tokio::test]
async fn an_address_with_wrong_credentials_is_turned_away_over_mqtt_for_a_while() {
    let world = World::new(LIMITS).await;
    let (server, address) = serve(&world).await;
    for _ in 0..3 {
        let connect = ConnectPacket {
            username: Some("nobody"),
            ..ConnectPacket::new(MqttProtocolVersion::V311, "device")
        };
        let mut out = Vec::new();
        connect.encode(&mut out).unwrap();
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&out).await.unwrap();
        assert_eq!(last_words(&mut stream).await, [0x20, 2, 0, 5]);
    }
    let mut stream = TcpStream::connect(address).await.unwrap();
    assert!(
        last_words(&mut stream).await.is_empty(),
        "it is not even listened to"
    );
    world.guard_clock.advance(60_000);
    log_in(address, "first", MqttProtocolVersion::V311).await;
    assert!(server.stop(PATIENCE).await);
}

#[tokio::test]
async fn a_device_that_is_only_sent_to_is_not_taken_for_alive() {
    let world = World::new(LIMITS).await;
    let (server, address) = serve(&world).await;
    let mut device = log_in_for(address, "first", MqttProtocolVersion::V311, 1).await;
    let filter = b"v1/devices/me/attributes";
    let length = filter.len() as u8;
    let mut subscribe = vec![0x82, length + 5, 0, 1, 0, length];
    subscribe.extend_from_slice(filter);
    subscribe.push(0);
    device.write_all(&subscribe).await.unwrap();
    let mut values = Vec::new();
    pack("a", KvValueRef::Long(1), &mut values);
    let update = AttributeUpdate::Saved(values.into());
    let sending = async {
        loop {
            let (subject, sessions) = (world.subject, &world.services.sessions);
            sessions.attributes_changed(subject, AttributeScope::Shared, update.clone());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::select! {
        () = sending => {}
        _ = last_words(&mut device) => {}
    }
    assert!(server.stop(PATIENCE).await);
}
