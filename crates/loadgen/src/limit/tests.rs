use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use fieldline_codec::{ConnectPacket, MqttProtocolVersion, PacketId, PublishPacket, QoS};

use super::*;

const AT_ONCE: Option<Duration> = Some(Duration::ZERO);
/// Time in which data passes from one socket to another on this machine.
const SOON: Option<Duration> = Some(Duration::from_millis(200));

fn options() -> LimitOptions {
    LimitOptions {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        fsync: None,
    }
}

fn address(server: &LimitServerLoop) -> SocketAddr {
    server.listener.local_addr().unwrap()
}

fn publish(id: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    PublishPacket {
        qos: QoS::AtLeastOnce,
        packet_id: PacketId::new(id),
        ..PublishPacket::new("t", payload)
    }
    .encode(MqttProtocolVersion::V311, &mut bytes)
    .unwrap();
    bytes
}

#[test]
fn a_slot_is_given_away_after_the_events_that_may_mean_it() {
    let mut server = LimitServerLoop::bind(&options()).unwrap();
    let mut events = Events::with_capacity(16);
    let _first = TcpStream::connect(address(&server)).unwrap();
    while server.peers.is_empty() {
        server.poll_once(&mut events, SOON).unwrap();
    }
    server.close(0);
    let _second = TcpStream::connect(address(&server)).unwrap();
    while server.peers.len() < 2 {
        assert!(server.peers[0].is_none(), "the slot was taken within the turn");
        server.accept();
    }
    server.poll_once(&mut events, AT_ONCE).unwrap();
    assert_eq!(server.free, [0]);
}

#[test]
fn a_peer_that_does_not_read_is_not_read_from_and_loses_nothing() {
    let mut server = LimitServerLoop::bind(&options()).unwrap();
    let mut events = Events::with_capacity(16);
    let mut client = TcpStream::connect(address(&server)).unwrap();
    client.set_nonblocking(true).unwrap();
    let messages: Vec<u8> = (1..=10_000).flat_map(|id| publish(id, b"")).collect();
    // A packet that is cut off at the end of a write is completed by the next one.
    let (mut sent, mut refusals) = (0, 0);
    while refusals < 5 {
        match client.write(&messages[sent % messages.len()..]) {
            Ok(written) => {
                sent += written;
                refusals = 0;
                server.poll_once(&mut events, AT_ONCE).unwrap();
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                refusals += 1;
                server.poll_once(&mut events, SOON).unwrap();
            }
            Err(error) => panic!("{error}"),
        }
        assert!(sent < 256 << 20, "everything is read");
    }
    let peer = server.peers[0].as_ref().unwrap();
    assert!(peer.waits_to_write() && peer.is_unread);
    assert!(
        peer.buffered_bytes() < 2 * READ_BYTES,
        "{} bytes are kept",
        peer.buffered_bytes()
    );

    // When the client reads again, everything it has sent is acknowledged.
    let whole = sent / (messages.len() / 10_000);
    let (mut received, mut input) = (0, vec![0; 1 << 20]);
    while received < whole * 4 {
        match client.read(&mut input) {
            Ok(read) => received += read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
        server.poll_once(&mut events, AT_ONCE).unwrap();
    }
    assert_eq!(received, whole * 4);
}

#[test]
fn a_disk_that_refuses_ends_the_server_and_nothing_is_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", directory.path().join("limit.log")).unwrap();
    let options = LimitOptions {
        fsync: Some(directory.path().to_owned()),
        ..options()
    };
    let (tell, told) = std::sync::mpsc::channel();
    let server = std::thread::spawn(move || serve(&options, |address| tell.send(address).unwrap()));
    let mut client = TcpStream::connect(told.recv().unwrap()).unwrap();
    let mut bytes = Vec::new();
    ConnectPacket::new(MqttProtocolVersion::V311, "c")
        .encode(&mut bytes)
        .unwrap();
    bytes.extend(publish(1, b"x"));
    client.write_all(&bytes).unwrap();
    let error = server.join().unwrap().unwrap_err().to_string();
    assert!(error.contains("limit.log") && error.contains("space"), "{error}");
    let mut heard = Vec::new();
    // The end may come as a reset.
    let _ = client.read_to_end(&mut heard);
    assert!(heard.len() <= 4, "CONNACK at most: {heard:?}");
}

#[test]
fn what_is_acknowledged_has_been_appended() {
    let directory = tempfile::tempdir().unwrap();
    let options = LimitOptions {
        fsync: Some(directory.path().to_owned()),
        ..options()
    };
    let mut server = LimitServerLoop::bind(&options).unwrap();
    let mut events = Events::with_capacity(16);
    let mut client = TcpStream::connect(address(&server)).unwrap();
    client.set_nonblocking(true).unwrap();
    client.write_all(&publish(7, b"payload")).unwrap();
    let mut answer = [0; 16];
    let read = loop {
        match client.read(&mut answer) {
            Ok(read) => break read,
            Err(_) => server.poll_once(&mut events, SOON).unwrap(),
        }
    };
    assert_eq!(answer[..read], [0x40, 2, 0, 7]);
    let written = std::fs::read(directory.path().join("limit.log")).unwrap();
    assert!(written.ends_with(b"tpayload"), "{written:?}");
}
