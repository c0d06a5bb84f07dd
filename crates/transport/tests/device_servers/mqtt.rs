//! What only shows while the journal takes nothing, or no more from a device: connections must still be told to end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fieldline_codec::{Connect, Disconnect, PacketId, Publish, QoS, ReasonCode, Version};
use fieldline_transport::mqtt::{MqttServer, Options};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::world::{LIMITS, World, busy_world, limit_messages, set_limit};

const PATIENCE: Duration = Duration::from_secs(10);

async fn serve(world: &World) -> (Arc<MqttServer>, SocketAddr) {
    let server = MqttServer::new(world.services.clone(), &Options::default());
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let address = server.listen(any, None).await.unwrap();
    (server, address)
}

async fn log_in(address: SocketAddr, token: &str, version: Version) -> TcpStream {
    let mut out = Vec::new();
    let connect = Connect {
        username: Some(token),
        ..Connect::new(version, "device")
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

async fn publish(stream: &mut TcpStream, version: Version) {
    let message = Publish {
        qos: QoS::AtLeastOnce,
        packet_id: PacketId::new(1),
        ..Publish::new("v1/devices/me/telemetry", br#"{"a":1}"#)
    };
    let mut out = Vec::new();
    message.encode(version, &mut out).unwrap();
    stream.write_all(&out).await.unwrap();
}

/// Publishes and reads the PUBACK of success, which both versions write in two bytes.
async fn acknowledged(stream: &mut TcpStream, version: Version) {
    publish(stream, version).await;
    let mut puback = [0; 4];
    stream.read_exact(&mut puback).await.unwrap();
    assert_eq!(puback, [0x40, 2, 0, 1]);
}

/// What comes until the connection is closed.
async fn last_words(stream: &mut TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer))
        .await
        .expect("it is closed")
        .unwrap();
    answer
}

/// What a device is told before its connection ends because of a limit: nothing in version 3, the reason in version 5.
fn told(version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    if version.is_v5() {
        let disconnect = Disconnect::new(ReasonCode::ImplementationSpecificError);
        disconnect.encode(version, &mut out).unwrap();
        assert_eq!(out[2], 0x83);
    }
    out
}

#[tokio::test]
async fn a_session_that_waits_for_a_busy_journal_is_replaced_and_stopped_unacknowledged() {
    let world = busy_world().await;
    let (server, address) = serve(&world).await;
    let mut replaced = log_in(address, "first", Version::V311).await;
    publish(&mut replaced, Version::V311).await;
    let mut waiting = log_in(address, "first", Version::V311).await;
    let answer = last_words(&mut replaced).await;
    assert!(answer.is_empty(), "nothing is acknowledged that is not durable");

    publish(&mut waiting, Version::V311).await;
    assert!(
        server.stop(PATIENCE).await,
        "all connections end although the journal does not move"
    );
    assert!(last_words(&mut waiting).await.is_empty());
}

#[tokio::test]
async fn the_connection_of_a_tenant_that_has_used_up_its_messages_ends_at_the_next_one() {
    for version in [Version::V311, Version::V5] {
        let world = World::new(LIMITS).await;
        let (server, address) = serve(&world).await;
        let mut device = log_in(address, "first", version).await;
        acknowledged(&mut device, version).await;
        limit_messages(&world, 1).await;
        world.usage.report(false).await;
        publish(&mut device, version).await;
        assert_eq!(last_words(&mut device).await, told(version), "unacknowledged");
        assert!(server.stop(PATIENCE).await);
    }
}

#[tokio::test]
async fn the_connection_of_a_device_that_goes_beyond_its_rate_limit_ends_at_the_next_message() {
    for version in [Version::V311, Version::V5] {
        let mut world = World::new(LIMITS).await;
        set_limit(&world, "transportDeviceTelemetryMsgRateLimit", "2:3600".into()).await;
        let (server, address) = serve(&world).await;
        let mut device = log_in(address, "first", version).await;
        let mut other = log_in(address, "second", version).await;
        for _ in 0..2 {
            acknowledged(&mut device, version).await;
        }
        publish(&mut device, version).await;
        assert_eq!(last_words(&mut device).await, told(version), "unacknowledged");
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
