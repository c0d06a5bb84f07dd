//! Minimal servers, with a thread for each connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use fieldline_codec::{
    AckPacket, ConnackPacket, MqttProtocolVersion, Packet, PacketId, QoS, ReasonCode, decode_frame,
};

/// A server; dropping it stops it.
pub(crate) struct StandIn {
    pub(crate) address: SocketAddr,
    /// Highest number of connections open at once.
    most: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl StandIn {
    /// Starts a server that handles each connection, numbered from 0, by a function on a thread of its own.
    pub(crate) fn start(serve: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let most = Arc::new(AtomicUsize::new(0));
        let (flag, highest) = (is_over.clone(), most.clone());
        let serve = Arc::new(serve);
        let thread = thread::spawn(move || {
            let open = Arc::new(AtomicUsize::new(0));
            let mut threads = Vec::new();
            for (number, stream) in listener.incoming().enumerate() {
                if flag.load(Ordering::SeqCst) {
                    break;
                }
                let (serve, open) = (serve.clone(), open.clone());
                highest.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let stream = stream.unwrap();
                stream.set_nodelay(true).unwrap();
                threads.push(thread::spawn(move || {
                    // Keeps the connection open until it is no longer counted.
                    let _kept = stream.try_clone();
                    serve(stream, number);
                    open.fetch_sub(1, Ordering::SeqCst);
                }));
            }
            for thread in threads {
                thread.join().unwrap();
            }
        });
        Self {
            address,
            most,
            is_over,
            thread: Some(thread),
        }
    }

    /// Highest number of connections open at once.
    pub(crate) fn most_connections(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    /// Waits until all connections have ended and were handled.
    pub(crate) fn stop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            drop(TcpStream::connect(self.address));
            thread.join().unwrap();
        }
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.stop();
        }
    }
}

/// A packet of an MQTT client.
#[derive(Debug, PartialEq)]
pub(crate) enum Said {
    Connect(String),
    Publish {
        id: Option<u16>,
        qos: QoS,
        payload: Vec<u8>,
    },
    Pubrel(u16),
    Disconnect,
}

/// The server's side of an MQTT connection.
pub(crate) struct Session<S> {
    stream: S,
    unread: Vec<u8>,
}

impl<S: Read + Write> Session<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            unread: Vec::new(),
        }
    }

    /// Returns the next packet; `None` at the end of the connection.
    pub(crate) fn hear(&mut self) -> Option<Said> {
        loop {
            let found = decode_frame(&self.unread, 1 << 20, MqttProtocolVersion::V311).unwrap();
            if let Some((packet, used)) = found {
                let said = match packet {
                    Packet::Connect(connect) => Said::Connect(connect.username.unwrap().to_owned()),
                    Packet::Publish(publish) => Said::Publish {
                        id: publish.packet_id.map(PacketId::get),
                        qos: publish.qos,
                        payload: publish.payload.to_vec(),
                    },
                    Packet::Pubrel(ack) => Said::Pubrel(ack.packet_id.get()),
                    Packet::Disconnect(_) => Said::Disconnect,
                    other => panic!("{other:?}"),
                };
                self.unread.drain(..used);
                return Some(said);
            }
            let mut part = [0; 4096];
            match self.stream.read(&mut part) {
                Ok(0) | Err(_) => return None,
                Ok(read) => self.unread.extend_from_slice(&part[..read]),
            }
        }
    }

    /// Accepts a device; false if the connection has ended before.
    pub(crate) fn let_in(&mut self) -> bool {
        match self.hear() {
            Some(Said::Connect(_)) => {
                self.connack(ReasonCode::Success);
                true
            }
            None => false,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn connack(&mut self, code: ReasonCode) {
        let mut out = Vec::new();
        ConnackPacket::new(code, false)
            .encode(MqttProtocolVersion::V311, &mut out)
            .unwrap();
        self.send(&out);
    }

    pub(crate) fn puback(&mut self, id: u16) {
        self.answer(Packet::Puback, id);
    }

    pub(crate) fn pubrec(&mut self, id: u16) {
        self.answer(Packet::Pubrec, id);
    }

    pub(crate) fn pubcomp(&mut self, id: u16) {
        self.answer(Packet::Pubcomp, id);
    }

    fn answer(&mut self, packet: fn(AckPacket<'static>) -> Packet<'static>, id: u16) {
        let mut out = Vec::new();
        packet(AckPacket::new(PacketId::new(id).unwrap(), ReasonCode::Success))
            .encode(MqttProtocolVersion::V311, &mut out)
            .unwrap();
        self.send(&out);
    }

    /// Sends bytes; the client may have gone.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).and_then(|()| self.stream.flush());
    }

    pub(crate) fn stream(&mut self) -> &mut S {
        &mut self.stream
    }
}
