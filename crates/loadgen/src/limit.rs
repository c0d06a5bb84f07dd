//! The mark of what the machine can do at all: a server that parses what devices send and acknowledges it, and, where asked,
//! appends it to a file and commits many appends together first. It knows no devices, keeps no sessions and stores nothing
//! that could be read.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use fieldline_codec::{
    Ack, Connack, Packet, PacketId, QoS, ReasonCode, Version, decode_frame, encode_pingresp, encode_puback,
};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};

use crate::error::LoadError;
use commit::{Committer, Pending};

mod commit;

const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);
const READ_BYTES: usize = 256 << 10;
const EVENTS: usize = 1_024;
/// Larger packets end the connection.
const MAX_PACKET: u32 = 1 << 20;

/// What the limit server is asked to do.
#[derive(Debug, Clone)]
pub struct LimitOptions {
    /// Where it listens; port 0 for any.
    pub listen: SocketAddr,
    /// Directory of the file that messages are appended to before they are acknowledged.
    pub fsync: Option<PathBuf>,
}

struct Peer {
    stream: TcpStream,
    version: Version,
    /// The beginning of a packet whose rest has not come.
    rest: Vec<u8>,
    /// What the system did not take yet.
    out: Vec<u8>,
    /// Tells connections apart that used the same slot.
    generation: u32,
}

struct Server {
    poll: Poll,
    peers: Vec<Option<Peer>>,
    free: Vec<usize>,
    generation: u32,
    committer: Option<Committer>,
    output: Vec<u8>,
}

/// Runs the limit server until the process ends or its standard input does; `ready` is told the bound address.
pub fn serve(options: &LimitOptions, ready: impl FnOnce(SocketAddr)) -> Result<(), LoadError> {
    let failed = |what: &str, error: std::io::Error| LoadError::Engine(format!("{what}: {error}"));
    let poll = Poll::new().map_err(|error| failed("epoll", error))?;
    let mut listener = TcpListener::bind(options.listen)
        .map_err(|error| failed(&format!("listening on {}", options.listen), error))?;
    let address = listener
        .local_addr()
        .map_err(|error| failed("listening", error))?;
    poll.registry()
        .register(&mut listener, LISTENER, Interest::READABLE)
        .map_err(|error| failed("epoll", error))?;
    let committer = match &options.fsync {
        Some(directory) => {
            let waker = Waker::new(poll.registry(), WAKER).map_err(|error| failed("epoll", error))?;
            Some(Committer::start(directory, waker)?)
        }
        None => None,
    };
    let mut server = Server {
        poll,
        peers: Vec::new(),
        free: Vec::new(),
        generation: 0,
        committer,
        output: Vec::new(),
    };
    ready(address);
    let mut events = Events::with_capacity(EVENTS);
    let mut input = vec![0; READ_BYTES];
    loop {
        match server.poll.poll(&mut events, None) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed("epoll", error)),
        }
        for event in events.iter() {
            match event.token() {
                LISTENER => server.accept(&listener),
                WAKER => server.acknowledge(),
                Token(slot) => {
                    if event.is_writable() {
                        server.flush(slot);
                    }
                    if event.is_readable() || event.is_read_closed() {
                        server.read(slot, &mut input, event.is_read_closed());
                    }
                }
            }
        }
        if let Some(committer) = &mut server.committer {
            committer.commit()?;
        }
    }
}

impl Server {
    fn accept(&mut self, listener: &TcpListener) {
        loop {
            let mut stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    eprintln!("a connection was not accepted: {error}");
                    std::thread::sleep(Duration::from_millis(10));
                    return;
                }
            };
            let _ = stream.set_nodelay(true);
            let slot = self.free.pop().unwrap_or_else(|| {
                self.peers.push(None);
                self.peers.len() - 1
            });
            let both = Interest::READABLE | Interest::WRITABLE;
            if self
                .poll
                .registry()
                .register(&mut stream, Token(slot), both)
                .is_err()
            {
                self.free.push(slot);
                continue;
            }
            self.generation = self.generation.wrapping_add(1);
            if let Some(kept) = self.peers.get_mut(slot) {
                *kept = Some(Peer {
                    stream,
                    version: Version::V311,
                    rest: Vec::new(),
                    out: Vec::new(),
                    generation: self.generation,
                });
            }
        }
    }

    fn read(&mut self, slot: usize, input: &mut [u8], ended: bool) {
        loop {
            let Some(Some(peer)) = self.peers.get_mut(slot) else {
                return;
            };
            let read = match peer.stream.read(input) {
                Ok(0) => return self.close(slot),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return self.close(slot),
            };
            self.output.clear();
            let goes_on = peer.hear(
                slot,
                input.get(..read).unwrap_or_default(),
                &mut self.output,
                self.committer.as_mut(),
            );
            if !peer.write(&self.output) || !goes_on {
                return self.close(slot);
            }
            if read < input.len() && !ended {
                return;
            }
        }
    }

    /// Sends the acknowledgements of what has become durable.
    fn acknowledge(&mut self) {
        let Some(committer) = &mut self.committer else {
            return;
        };
        let done = committer.take_done();
        for part in done.chunk_by(|one, next| (one.slot, one.generation) == (next.slot, next.generation)) {
            let Some(first) = part.first() else {
                continue;
            };
            let slot = first.slot as usize;
            let Some(Some(peer)) = self.peers.get_mut(slot) else {
                continue;
            };
            if peer.generation != first.generation {
                continue;
            }
            self.output.clear();
            for pending in part {
                put_acknowledgement(pending.qos, pending.id, peer.version, &mut self.output);
            }
            if !peer.write(&self.output) {
                self.close(slot);
            }
        }
        if let Some(committer) = &mut self.committer {
            committer.give_back(done);
        }
    }

    fn flush(&mut self, slot: usize) {
        let Some(Some(peer)) = self.peers.get_mut(slot) else {
            return;
        };
        if !peer.out.is_empty() {
            let bytes = std::mem::take(&mut peer.out);
            if !peer.write(&bytes) {
                self.close(slot);
            }
        }
    }

    fn close(&mut self, slot: usize) {
        if let Some(peer) = self.peers.get_mut(slot)
            && peer.take().is_some()
        {
            self.free.push(slot);
        }
    }
}

impl Peer {
    /// Handles the packets that came. Whether the connection goes on.
    fn hear(
        &mut self,
        slot: usize,
        input: &[u8],
        out: &mut Vec<u8>,
        committer: Option<&mut Committer>,
    ) -> bool {
        let mut joined = std::mem::take(&mut self.rest);
        let whole = if joined.is_empty() {
            input
        } else {
            joined.extend_from_slice(input);
            joined.as_slice()
        };
        match self.take_packets(slot, whole, out, committer) {
            Some(used) => {
                let rest = whole.get(used..).unwrap_or_default();
                if !rest.is_empty() {
                    self.rest = rest.to_vec();
                }
                true
            }
            None => false,
        }
    }

    /// Returns the bytes of the whole packets; none at the end of the connection.
    fn take_packets(
        &mut self,
        slot: usize,
        input: &[u8],
        out: &mut Vec<u8>,
        mut committer: Option<&mut Committer>,
    ) -> Option<usize> {
        let mut used = 0;
        while let Some((packet, length)) =
            decode_frame(input.get(used..).unwrap_or_default(), MAX_PACKET, self.version).ok()?
        {
            used += length;
            match packet {
                Packet::Publish(publish) => match (&mut committer, publish.packet_id) {
                    (Some(committer), id) => {
                        let pending = id.map(|id| Pending {
                            slot: slot as u32,
                            generation: self.generation,
                            id,
                            qos: publish.qos,
                        });
                        committer.append(publish.topic, publish.payload, pending);
                    }
                    (None, Some(id)) => put_acknowledgement(publish.qos, id, self.version, out),
                    (None, None) => {}
                },
                Packet::Connect(connect) => {
                    self.version = connect.version();
                    Connack::new(ReasonCode::Success, false)
                        .encode(self.version, out)
                        .ok()?;
                }
                Packet::Pubrel(ack) => Packet::Pubcomp(Ack::new(ack.packet_id, ReasonCode::Success))
                    .encode(self.version, out)
                    .ok()?,
                Packet::Pingreq => encode_pingresp(out),
                _ => return None,
            }
        }
        Some(used)
    }

    /// Writes what the system takes and keeps the rest. Whether the connection goes on.
    fn write(&mut self, bytes: &[u8]) -> bool {
        if !self.out.is_empty() {
            self.out.extend_from_slice(bytes);
            return true;
        }
        let mut written = 0;
        while written < bytes.len() {
            match self.stream.write(bytes.get(written..).unwrap_or_default()) {
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.out
                        .extend_from_slice(bytes.get(written..).unwrap_or_default());
                    return true;
                }
                Err(_) => return false,
            }
        }
        true
    }
}

fn put_acknowledgement(qos: QoS, id: PacketId, version: Version, out: &mut Vec<u8>) {
    if qos == QoS::ExactlyOnce {
        // A PUBREC that says success cannot fail.
        let _ = Packet::Pubrec(Ack::new(id, ReasonCode::Success)).encode(version, out);
    } else {
        encode_puback(id, out);
    }
}
