//! What only shows while the journal takes nothing: connections that wait must still be told to end.

use std::net::SocketAddr;
use std::time::Duration;

use fieldline_codec::{Connect, PacketId, Publish, QoS, Version};
use fieldline_transport::mqtt::{MqttServer, Options};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{LIMITS, World, busy_world, limit_messages};

const PATIENCE: Duration = Duration::from_secs(10);

async fn log_in(address: SocketAddr, token: &str) -> TcpStream {
    let mut out = Vec::new();
    let connect = Connect {
        username: Some(token),
        ..Connect::new(Version::V311, "device")
    };
    connect.encode(&mut out).unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&out).await.unwrap();
    let mut connack = [0; 4];
    stream.read_exact(&mut connack).await.unwrap();
    assert_eq!(connack, [0x20, 2, 0, 0]);
    stream
}

async fn publish(stream: &mut TcpStream) {
    let message = Publish {
        qos: QoS::AtLeastOnce,
        packet_id: PacketId::new(1),
        ..Publish::new("v1/devices/me/telemetry", br#"{"a":1}"#)
    };
    let mut out = Vec::new();
    message.encode(Version::V311, &mut out).unwrap();
    stream.write_all(&out).await.unwrap();
}

#[tokio::test]
async fn a_session_that_waits_for_a_busy_journal_is_replaced_and_stopped_unacknowledged() {
    let world = busy_world().await;
    let server = MqttServer::new(world.services.clone(), &Options::default());
    let address = server
        .listen(SocketAddr::from(([127, 0, 0, 1], 0)), None)
        .await
        .unwrap();

    let mut replaced = log_in(address, "first").await;
    publish(&mut replaced).await;
    let mut waiting = log_in(address, "first").await;
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, replaced.read_to_end(&mut answer))
        .await
        .expect("it is closed")
        .unwrap();
    assert!(answer.is_empty(), "nothing is acknowledged that is not durable");

    publish(&mut waiting).await;
    assert!(
        server.stop(PATIENCE).await,
        "all connections end although the journal does not move"
    );
    tokio::time::timeout(PATIENCE, waiting.read_to_end(&mut answer))
        .await
        .expect("it is closed")
        .unwrap();
    assert!(answer.is_empty());
}

#[tokio::test]
async fn the_connection_of_a_tenant_that_has_used_up_its_messages_ends_at_the_next_one() {
    let world = World::new(LIMITS).await;
    let server = MqttServer::new(world.services.clone(), &Options::default());
    let address = server
        .listen(SocketAddr::from(([127, 0, 0, 1], 0)), None)
        .await
        .unwrap();
    let mut device = log_in(address, "first").await;
    publish(&mut device).await;
    let mut puback = [0; 4];
    device.read_exact(&mut puback).await.unwrap();
    limit_messages(&world, 1).await;
    world.usage.report(false).await;
    publish(&mut device).await;
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, device.read_to_end(&mut answer))
        .await
        .expect("it is closed")
        .unwrap();
    assert!(answer.is_empty(), "it is not acknowledged: {answer:?}");
    assert!(server.stop(PATIENCE).await);
}
