//! A loop with a driver that echoes, over real sockets.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::Waker;
use std::time::{Duration, Instant};

use fieldline_event_loop::{
    ConnectionAbsence, ConnectionDriver, ConnectionKey, ConnectionTurn, EventLoop, LoopHandle, NextTurn,
    Socket,
};

/// What a lost wake-up may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends back what comes. Some bytes mean something.
struct Echo {
    socket: Socket,
    out: Vec<u8>,
    written: usize,
    wakers: Sender<Waker>,
    closed: Sender<()>,
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.closed.send(());
    }
}

/// The byte after which the connection leaves for a thread of its own, which adds an `A`.
const LEAVE: u8 = b'l';
/// The byte whose turn panics.
const PANIC: u8 = b'p';
/// The byte after which the waker is handed out; each wake-up is answered with a `W`.
const WAKER: u8 = b'w';
/// The byte that is echoed by the outcome of a time-out.
const LATER: u8 = b't';

#[derive(Default)]
struct EchoDriver {
    due: Vec<(Instant, ConnectionKey)>,
}

type Turn<'a> = ConnectionTurn<'a, Echo>;

impl EchoDriver {
    fn write(connection: &mut Echo) -> NextTurn {
        match connection
            .socket
            .write_all(&connection.out, &mut connection.written)
        {
            Ok(()) => {
                connection.out.clear();
                connection.written = 0;
                NextTurn::Others
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => NextTurn::Write,
            Err(_) => NextTurn::Close,
        }
    }
}

impl ConnectionDriver for EchoDriver {
    type Connection = Echo;
    type Outcome = ();

    fn socket(connection: &mut Echo) -> &mut mio::net::TcpStream {
        connection.socket.stream()
    }

    fn turn(&mut self, connection: &mut Echo, turn: &mut Turn<'_>) -> NextTurn {
        if std::mem::take(&mut turn.readiness.woken) && connection.out == [WAKER] {
            connection.out = b"W".to_vec();
            return Self::write(connection);
        }
        if !connection.out.is_empty() {
            return Self::write(connection);
        }
        let mut input = [0; 64 << 10];
        let length = match connection.socket.read(&mut input) {
            Ok(0) => return NextTurn::Close,
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                turn.readiness.readable = false;
                return NextTurn::Read;
            }
            Err(_) => return NextTurn::Close,
        };
        connection.out = input[..length].to_vec();
        match connection.out[..] {
            [PANIC] => panic!("as the peer wished"),
            [LEAVE] => NextTurn::Leave,
            [WAKER] => {
                connection.wakers.send(turn.waker()).unwrap();
                NextTurn::Outcome
            }
            [LATER] => {
                self.due
                    .push((Instant::now() + Duration::from_millis(5), turn.key));
                NextTurn::Outcome
            }
            _ => Self::write(connection),
        }
    }

    fn resume(&mut self, connection: &mut Echo, (): (), _: &mut Turn<'_>) -> NextTurn {
        Self::write(connection)
    }

    fn collect(&mut self, now: Instant, outcomes: &mut Vec<(ConnectionKey, ())>) {
        self.due.retain(|(due, key)| {
            if *due <= now {
                outcomes.push((*key, ()));
            }
            *due > now
        });
    }

    fn next_due(&self) -> Option<Instant> {
        self.due.iter().map(|(due, _)| *due).min()
    }

    fn detach(&mut self, mut connection: Box<Echo>, absence: ConnectionAbsence<Echo>) {
        std::thread::spawn(move || {
            connection.out.push(b'A');
            absence.end(connection);
        });
    }

    fn close(&mut self, mut connection: Box<Echo>) {
        connection.socket.shut_down();
    }
}

struct World {
    event_loop: Option<EventLoop<Echo>>,
    handle: LoopHandle<Echo>,
    listener: TcpListener,
    wakers: (Sender<Waker>, Receiver<Waker>),
    closed: (Sender<()>, Receiver<()>),
}

impl World {
    fn new() -> Self {
        let event_loop = EventLoop::start("echo", |_| EchoDriver::default(), |run| run()).unwrap();
        Self {
            handle: event_loop.handle().clone(),
            event_loop: Some(event_loop),
            listener: TcpListener::bind("127.0.0.1:0").unwrap(),
            wakers: channel(),
            closed: channel(),
        }
    }

    fn connect(&self) -> TcpStream {
        let peer = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
        peer.set_read_timeout(Some(PATIENCE)).unwrap();
        let (accepted, _) = self.listener.accept().unwrap();
        accepted.set_nonblocking(true).unwrap();
        self.handle.adopt(Box::new(Echo {
            socket: Socket::plain(mio::net::TcpStream::from_std(accepted)),
            out: Vec::new(),
            written: 0,
            wakers: self.wakers.0.clone(),
            closed: self.closed.0.clone(),
        }));
        peer
    }
}

fn said(peer: &mut TcpStream, what: &[u8], answer: &[u8]) {
    peer.write_all(what).unwrap();
    heard(peer, answer);
}

fn heard(peer: &mut TcpStream, answer: &[u8]) {
    let mut found = vec![0; answer.len()];
    peer.read_exact(&mut found).unwrap();
    assert_eq!(found, answer);
}

#[test]
fn connections_come_wait_leave_and_return() {
    let world = World::new();
    let (mut one, mut other) = (world.connect(), world.connect());
    said(&mut one, b"hello", b"hello");
    said(&mut one, &[LEAVE], b"lA");
    said(&mut one, &[LATER], b"t");
    said(&mut other, b"and you", b"and you");
    one.write_all(&[WAKER]).unwrap();
    let waker = world.wakers.1.recv_timeout(PATIENCE).unwrap();
    // Input waits as long as the connection waits for something else.
    one.write_all(b"later").unwrap();
    said(&mut other, b"between", b"between");
    waker.wake();
    heard(&mut one, b"Wlater");
}

#[test]
fn a_peer_that_does_not_read_keeps_only_itself_waiting() {
    let world = World::new();
    let (mut slow, mut other) = (world.connect(), world.connect());
    let much = vec![b'x'; 64 << 20];
    let written = std::thread::spawn({
        let (mut slow, much) = (slow.try_clone().unwrap(), much.clone());
        move || slow.write_all(&much).unwrap()
    });
    for _ in 0..100 {
        said(&mut other, b"quick", b"quick");
    }
    assert!(!written.is_finished(), "the buffers of both sides are full");
    heard(&mut slow, &much);
    written.join().unwrap();
}

#[test]
fn a_turn_that_panics_costs_one_connection() {
    let world = World::new();
    let (mut one, mut other) = (world.connect(), world.connect());
    said(&mut one, b"well", b"well");
    one.write_all(&[PANIC]).unwrap();
    assert_eq!(one.read(&mut [0; 8]).unwrap_or_default(), 0, "closed");
    said(&mut other, b"alive", b"alive");
    let mut third = world.connect();
    said(&mut third, b"too", b"too");
}

#[test]
fn a_loop_that_ends_closes_what_it_has_and_takes_nothing_more() {
    let mut world = World::new();
    let mut one = world.connect();
    said(&mut one, b"x", b"x");
    world.event_loop = None;
    assert_eq!(one.read(&mut [0; 8]).unwrap(), 0);
    world.closed.1.recv_timeout(PATIENCE).unwrap();
    let mut late = world.connect();
    assert_eq!(late.read(&mut [0; 8]).unwrap_or_default(), 0);
    world.closed.1.recv_timeout(PATIENCE).unwrap();
}
