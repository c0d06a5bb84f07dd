//! A limit server as a reference for the capacity of the machine: it parses and acknowledges messages of devices and,
//! optionally, first appends them to a file and commits many appends together. It knows no devices, keeps no sessions,
//! and stores nothing that could be read.

use std::io::{ErrorKind, Read as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token, Waker};
use socket2::{Domain, Socket, Type};

use crate::error::LoadError;
use crate::process::raise_file_limit;
use commit::GroupCommitter;
use peer::{LimitPeer, put_acknowledgement};

mod commit;
mod peer;

const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);
/// Length of the accept queue.
const BACKLOG: i32 = 4_096;
const READ_BYTES: usize = 256 << 10;
const EVENTS: usize = 1_024;
/// Pause before the next accept, after the system had no room for a connection.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(10);

/// Options of the limit server.
#[derive(Debug, Clone)]
pub struct LimitOptions {
    /// Address to listen on; port 0 for any free port.
    pub listen: SocketAddr,
    /// Directory of the file to which messages are appended before they are acknowledged.
    pub fsync: Option<PathBuf>,
}

struct LimitServerLoop {
    poll: Poll,
    listener: TcpListener,
    /// Whether the last accept failed, so that no event will announce the connections still queued.
    is_accepting_late: bool,
    peers: Vec<Option<LimitPeer>>,
    free: Vec<usize>,
    /// Slots freed in this turn; events of the same turn may still refer to them.
    closed_slots: Vec<usize>,
    /// Slots that are not read from because too much waits for the disk.
    paused_slots: Vec<usize>,
    generation: u32,
    committer: Option<GroupCommitter>,
    input: Vec<u8>,
    output: Vec<u8>,
}

/// Runs the limit server until the process ends; passes the bound address to `ready`.
///
/// # Errors
/// The address cannot be bound, the file cannot be created, or an append or its fdatasync has failed: messages received
/// after that are never acknowledged.
pub fn serve(options: &LimitOptions, ready: impl FnOnce(SocketAddr)) -> Result<(), LoadError> {
    // Takes as many files as allowed; if they are too few, accepts will fail.
    let _ = raise_file_limit();
    let mut server = LimitServerLoop::bind(options)?;
    ready(
        server
            .listener
            .local_addr()
            .map_err(|error| failed("listening", &error))?,
    );
    let mut events = Events::with_capacity(EVENTS);
    loop {
        let wait = server.is_accepting_late.then_some(ACCEPT_RETRY_DELAY);
        server.poll_once(&mut events, wait)?;
    }
}

fn failed(what: &str, error: &std::io::Error) -> LoadError {
    LoadError::Engine(format!("{what}: {error}"))
}

impl LimitServerLoop {
    fn bind(options: &LimitOptions) -> Result<Self, LoadError> {
        let epoll = |error| failed("epoll", &error);
        let poll = Poll::new().map_err(epoll)?;
        let mut listener = bind(options.listen)
            .map_err(|error| failed(&format!("listening on {}", options.listen), &error))?;
        poll.registry()
            .register(&mut listener, LISTENER, Interest::READABLE)
            .map_err(epoll)?;
        let committer = match &options.fsync {
            Some(directory) => {
                let waker = Waker::new(poll.registry(), WAKER).map_err(epoll)?;
                Some(GroupCommitter::start(directory, waker)?)
            }
            None => None,
        };
        Ok(Self {
            poll,
            listener,
            is_accepting_late: false,
            peers: Vec::new(),
            free: Vec::new(),
            closed_slots: Vec::new(),
            paused_slots: Vec::new(),
            generation: 0,
            committer,
            input: vec![0; READ_BYTES],
            output: Vec::new(),
        })
    }

    /// Polls for events, for at most `wait` if given and otherwise until there are some, and handles them.
    fn poll_once(&mut self, events: &mut Events, wait: Option<Duration>) -> Result<(), LoadError> {
        match self.poll.poll(events, wait) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(failed("epoll", &error)),
        }
        if self.is_accepting_late {
            self.accept();
        }
        for event in events.iter() {
            match event.token() {
                LISTENER => self.accept(),
                WAKER => self.acknowledge()?,
                Token(slot) => {
                    if event.is_writable() {
                        self.flush(slot);
                    }
                    if event.is_readable() || event.is_read_closed() {
                        self.read(slot, event.is_read_closed());
                    }
                }
            }
        }
        self.free.append(&mut self.closed_slots);
        match &mut self.committer {
            Some(committer) => committer.commit(),
            None => Ok(()),
        }
    }

    fn accept(&mut self) {
        loop {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_accepting_late = false;
                    return;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    if !self.is_accepting_late {
                        eprintln!("a connection was not accepted: {error}");
                    }
                    self.is_accepting_late = true;
                    return;
                }
            };
            // The server is only slower without it.
            let _ = stream.set_nodelay(true);
            let slot = self.free.pop().unwrap_or_else(|| {
                self.peers.push(None);
                self.peers.len() - 1
            });
            let both = Interest::READABLE | Interest::WRITABLE;
            let registered = self.poll.registry().register(&mut stream, Token(slot), both);
            if registered.is_err() {
                self.free.push(slot);
                continue;
            }
            self.generation = self.generation.wrapping_add(1);
            if let Some(kept) = self.peers.get_mut(slot) {
                *kept = Some(LimitPeer::new(stream, slot as u32, self.generation));
            }
        }
    }

    /// Reads a connection until it is empty, unless its peer does not read its acknowledgements or the disk does not
    /// keep up; then the read is resumed later. A short read means that the connection is empty, but not that it is
    /// still open.
    fn read(&mut self, slot: usize, to_the_end: bool) {
        loop {
            let Some(Some(peer)) = self.peers.get_mut(slot) else {
                return;
            };
            if peer.waits_to_write() {
                peer.is_unread = true;
                return;
            }
            if self.committer.as_ref().is_some_and(GroupCommitter::is_full) {
                if !std::mem::replace(&mut peer.is_held, true) {
                    self.paused_slots.push(slot);
                }
                return;
            }
            let read = match peer.stream.read(&mut self.input) {
                Ok(0) => return self.close(slot),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return self.close(slot),
            };
            self.output.clear();
            let input = self.input.get(..read).unwrap_or_default();
            let goes_on = peer.handle_packets(input, &mut self.output, self.committer.as_mut());
            if !peer.write(&self.output) || !goes_on {
                return self.close(slot);
            }
            if read < self.input.len() && !to_the_end {
                return;
            }
        }
    }

    /// Sends the acknowledgements of durable messages.
    fn acknowledge(&mut self) -> Result<(), LoadError> {
        let Some(committer) = &mut self.committer else {
            return Ok(());
        };
        let done = committer.take_done()?;
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
            committer.recycle(done);
        }
        for slot in std::mem::take(&mut self.paused_slots) {
            if let Some(Some(peer)) = self.peers.get_mut(slot) {
                peer.is_held = false;
            }
            self.read(slot, true);
        }
        Ok(())
    }

    fn flush(&mut self, slot: usize) {
        let Some(Some(peer)) = self.peers.get_mut(slot) else {
            return;
        };
        if !peer.flush() {
            return self.close(slot);
        }
        if peer.is_unread && !peer.waits_to_write() {
            peer.is_unread = false;
            self.read(slot, true);
        }
    }

    fn close(&mut self, slot: usize) {
        if let Some(peer) = self.peers.get_mut(slot)
            && peer.take().is_some()
        {
            self.closed_slots.push(slot);
        }
    }
}

#[cfg(test)]
mod tests;

fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(TcpListener::from_std(socket.into()))
}
