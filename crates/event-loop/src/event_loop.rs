//! The loop.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Poll, Token};
use tracing::error;

use crate::mailbox::{ConnectionAbsence, ConnectionWaker, Letters, Mailbox};
use crate::slots::{ConnectionKey, Interest, Readiness, Slots};

/// The mailbox's place among the keys of connections, which would need four billion connections to reach it.
const MAILBOX: Token = Token(usize::MAX);
/// Events taken at a time.
const EVENTS: usize = 1_024;
/// Pause after the system failed to wait for events, which it does not do unless memory is short.
const POLL_RETRY_DELAY: Duration = Duration::from_millis(10);

/// What a loop does with its connections. Each loop has a driver of its own, which only its thread uses.
///
/// A turn that panics costs its own connection, which is dropped; the others go on. A driver must not leave anything in
/// itself that would be wrong then.
pub trait ConnectionDriver: Send + 'static {
    /// A connection.
    type Connection: Send + 'static;
    /// What became of something that a connection waited for.
    type Outcome: Send;

    /// The socket of a connection.
    fn socket(connection: &mut Self::Connection) -> &mut TcpStream;

    /// Gives a connection its turn: as much as it can do without waiting, but no more than one read, so that others
    /// have their turn soon.
    fn turn(
        &mut self,
        connection: &mut Self::Connection,
        turn: &mut ConnectionTurn<'_, Self::Connection>,
    ) -> NextTurn;

    /// Gives a turn to a connection of which [`Self::collect`] has said something.
    fn resume(
        &mut self,
        connection: &mut Self::Connection,
        outcome: Self::Outcome,
        turn: &mut ConnectionTurn<'_, Self::Connection>,
    ) -> NextTurn;

    /// Collects what has become of what connections wait for. Called after each wait for events.
    fn collect(&mut self, now: Instant, outcomes: &mut Vec<(ConnectionKey, Self::Outcome)>);

    /// When [`Self::collect`] has to be called even if nothing happens.
    fn next_due(&self) -> Option<Instant>;

    /// Takes a connection away that said [`NextTurn::Leave`].
    fn detach(&mut self, connection: Box<Self::Connection>, absence: ConnectionAbsence<Self::Connection>);

    /// Closes a connection that said [`NextTurn::Close`], or whose loop ends.
    fn close(&mut self, connection: Box<Self::Connection>);
}

/// What a connection waits for after its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextTurn {
    /// Input, or a wake-up.
    Read,
    /// Room for output, or a wake-up. Input waits.
    Write,
    /// An outcome, or a wake-up. Input waits.
    Outcome,
    /// The others' turns.
    Others,
    /// Something that needs another thread: [`ConnectionDriver::detach`] takes it away.
    Leave,
    /// Nothing any more.
    Close,
}

/// The circumstances of a turn.
pub struct ConnectionTurn<'a, C> {
    /// The connection's key.
    pub key: ConnectionKey,
    /// What has happened since its last turn.
    pub readiness: &'a mut Readiness,
    mailbox: &'a Arc<Mailbox<C>>,
}

impl<C: Send + 'static> ConnectionTurn<'_, C> {
    /// A waker that gives the connection a turn.
    pub fn waker(&self) -> Waker {
        Waker::from(Arc::new(ConnectionWaker {
            mailbox: self.mailbox.clone(),
            key: self.key,
        }))
    }
}

/// The way to a loop from other threads.
pub struct LoopHandle<C>(Arc<Mailbox<C>>);

impl<C> Clone for LoopHandle<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C: Send + 'static> LoopHandle<C> {
    /// Gives a connection to the loop. A loop that has ended drops it.
    pub fn adopt(&self, connection: Box<C>) {
        self.0.adopt(connection);
    }

    /// A waker that makes the loop call [`ConnectionDriver::collect`].
    pub fn waker(&self) -> Waker {
        Waker::from(self.0.clone())
    }
}

/// A running loop. Dropping it closes its connections and ends its thread.
pub struct EventLoop<C: Send + 'static> {
    handle: LoopHandle<C>,
    thread: Option<JoinHandle<()>>,
}

impl<C: Send + 'static> EventLoop<C> {
    /// Starts a loop on a thread of that name, with the driver that `driver` makes. The thread runs `around`, which
    /// calls what it is given to run the loop, for example in the context of a runtime.
    ///
    /// # Errors
    /// The system has no more threads, files or memory.
    pub fn start<D>(
        name: &str,
        driver: impl FnOnce(&LoopHandle<C>) -> D,
        around: impl FnOnce(&mut dyn FnMut()) + Send + 'static,
    ) -> io::Result<Self>
    where
        D: ConnectionDriver<Connection = C>,
    {
        let poll = Poll::new()?;
        let waker = mio::Waker::new(poll.registry(), MAILBOX)?;
        let handle = LoopHandle(Arc::new(Mailbox::new(waker)));
        let state = LoopState {
            poll,
            driver: driver(&handle),
            mailbox: handle.0.clone(),
            slots: Slots::new(),
            letters: Letters::default(),
            ready: Vec::new(),
            outcomes: Vec::new(),
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let mut state = Some(state);
            around(&mut || {
                if let Some(state) = state.take() {
                    state.run();
                }
            });
        })?;
        Ok(Self {
            handle,
            thread: Some(thread),
        })
    }

    /// The way to the loop from other threads.
    pub const fn handle(&self) -> &LoopHandle<C> {
        &self.handle
    }
}

impl<C: Send + 'static> Drop for EventLoop<C> {
    fn drop(&mut self) {
        self.handle.0.stop();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            error!("a thread of connections had panicked");
        }
    }
}

struct LoopState<D: ConnectionDriver> {
    poll: Poll,
    driver: D,
    mailbox: Arc<Mailbox<D::Connection>>,
    slots: Slots<D::Connection>,
    letters: Letters<D::Connection>,
    /// Connections whose turn is due.
    ready: Vec<ConnectionKey>,
    outcomes: Vec<(ConnectionKey, D::Outcome)>,
}

impl<D: ConnectionDriver> LoopState<D> {
    fn run(mut self) {
        // Also after a panic: a connection that is given to a loop without a thread must not wait for ever.
        let _closed_at_the_end = OpenMailbox(self.mailbox.clone());
        let mut events = Events::with_capacity(EVENTS);
        let mut due = Vec::new();
        while !self.letters.is_stopping {
            self.wait(&mut events);
            for event in &events {
                if event.token() != MAILBOX {
                    let ended = event.is_read_closed() || event.is_error();
                    let readable = event.is_readable() || ended;
                    self.note(
                        ConnectionKey::from_number(event.token().0),
                        readable,
                        ended,
                        event.is_writable() || ended,
                    );
                }
            }
            self.read_letters();
            self.driver.collect(Instant::now(), &mut self.outcomes);
            let mut outcomes = std::mem::take(&mut self.outcomes);
            for (key, outcome) in outcomes.drain(..) {
                self.give_turn(key, |driver, connection, turn| {
                    driver.resume(connection, outcome, turn)
                });
            }
            self.outcomes = outcomes;
            std::mem::swap(&mut due, &mut self.ready);
            for key in due.drain(..) {
                // An outcome may have given it a turn already.
                let is_due = self
                    .slots
                    .get(key)
                    .is_some_and(|slot| std::mem::take(&mut slot.is_queued));
                if is_due {
                    self.give_turn(key, D::turn);
                }
            }
        }
        self.end();
    }

    fn wait(&mut self, events: &mut Events) {
        let timeout = if self.ready.is_empty() {
            let due = self.driver.next_due();
            due.map(|due| due.saturating_duration_since(Instant::now()))
        } else {
            Some(Duration::ZERO)
        };
        match self.poll.poll(events, timeout) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => events.clear(),
            Err(error) => {
                error!(%error, "cannot wait for connections");
                events.clear();
                std::thread::sleep(POLL_RETRY_DELAY);
            }
        }
    }

    /// Notes an event of a socket, and queues the connection if it waits for that.
    fn note(&mut self, key: ConnectionKey, readable: bool, ended: bool, writable: bool) {
        let Some(slot) = self.slots.get(key) else {
            return;
        };
        slot.readiness.readable |= readable;
        slot.readiness.ended |= ended;
        let is_due = match slot.interest {
            Interest::Read => readable,
            Interest::Write => writable,
            Interest::Nothing => false,
        };
        if is_due && !std::mem::replace(&mut slot.is_queued, true) {
            self.ready.push(key);
        }
    }

    fn read_letters(&mut self) {
        let mut letters = std::mem::take(&mut self.letters);
        self.mailbox.take(&mut letters);
        for connection in letters.adopted.drain(..) {
            self.adopt(connection);
        }
        for (key, connection) in letters.returned.drain(..) {
            match connection {
                Some(connection) => {
                    if let Some(slot) = self.slots.get(key) {
                        slot.connection = Some(connection);
                        slot.interest = Interest::Read;
                    }
                    self.wake(key);
                }
                None => drop(self.slots.remove(key)),
            }
        }
        let mut woken = std::mem::take(&mut letters.woken);
        for key in woken.drain(..) {
            self.wake(key);
        }
        letters.woken = woken;
        self.letters = letters;
    }

    fn adopt(&mut self, connection: Box<D::Connection>) {
        let both = mio::Interest::READABLE | mio::Interest::WRITABLE;
        let key = self.slots.insert(connection);
        let Some(slot) = self.slots.get(key) else { return };
        let registered = slot.connection.as_mut().map_or(Ok(()), |connection| {
            self.poll
                .registry()
                .register(D::socket(connection), Token(key.to_number()), both)
        });
        if let Err(error) = registered {
            error!(%error, "cannot watch a connection");
            if let Some(connection) = self.slots.remove(key) {
                self.driver.close(connection);
            }
            return;
        }
        slot.is_queued = true;
        self.ready.push(key);
    }

    fn wake(&mut self, key: ConnectionKey) {
        if let Some(slot) = self.slots.get(key) {
            slot.readiness.woken = true;
            // One that is away gets its turn when it is back.
            if slot.connection.is_some() && !std::mem::replace(&mut slot.is_queued, true) {
                self.ready.push(key);
            }
        }
    }

    fn give_turn(
        &mut self,
        key: ConnectionKey,
        go: impl FnOnce(&mut D, &mut D::Connection, &mut ConnectionTurn<'_, D::Connection>) -> NextTurn,
    ) {
        let Some(slot) = self.slots.get(key) else {
            return;
        };
        let Some(connection) = &mut slot.connection else {
            return;
        };
        let mut turn = ConnectionTurn {
            key,
            readiness: &mut slot.readiness,
            mailbox: &self.mailbox,
        };
        let driver = &mut self.driver;
        let next = catch_unwind(AssertUnwindSafe(|| go(driver, connection, &mut turn)));
        let Ok(next) = next else {
            // The message of the panic has been logged.
            error!("a connection is closed, its turn has panicked");
            drop(self.slots.remove(key));
            return;
        };
        match next {
            NextTurn::Read => slot.interest = Interest::Read,
            NextTurn::Write => slot.interest = Interest::Write,
            NextTurn::Outcome => slot.interest = Interest::Nothing,
            NextTurn::Others => {
                slot.interest = Interest::Read;
                if !std::mem::replace(&mut slot.is_queued, true) {
                    self.ready.push(key);
                }
            }
            NextTurn::Leave => {
                slot.interest = Interest::Nothing;
                if let Some(connection) = slot.connection.take() {
                    let absence = ConnectionAbsence::new(self.mailbox.clone(), key);
                    self.driver.detach(connection, absence);
                }
            }
            NextTurn::Close => {
                if let Some(connection) = self.slots.remove(key) {
                    self.driver.close(connection);
                }
            }
        }
    }

    /// Closes what is left. Connections that are away are dropped when they come back.
    fn end(&mut self) {
        self.mailbox.close();
        for connection in self.slots.drain() {
            self.driver.close(connection);
        }
    }
}

/// Closes the mailbox when its loop ends.
struct OpenMailbox<C>(Arc<Mailbox<C>>);

impl<C> Drop for OpenMailbox<C> {
    fn drop(&mut self) {
        self.0.close();
    }
}
