//! What other threads tell a loop.

use std::sync::Arc;
use std::task::Wake;

use mio::Waker;
use parking_lot::Mutex;

use crate::slots::ConnectionKey;

/// The way into a loop from other threads. The loop is woken once for everything that comes before it looks.
pub(crate) struct Mailbox<C> {
    letters: Mutex<Letters<C>>,
    waker: Waker,
}

/// What has come since the loop last looked.
pub(crate) struct Letters<C> {
    pub(crate) adopted: Vec<Box<C>>,
    /// Connections that come back; `None` if they have ended meanwhile.
    pub(crate) returned: Vec<(ConnectionKey, Option<Box<C>>)>,
    pub(crate) woken: Vec<ConnectionKey>,
    pub(crate) is_stopping: bool,
    /// Whether the loop was woken and has not looked yet.
    is_signalled: bool,
    /// Whether the loop has ended, so that nobody will ever look.
    is_over: bool,
}

impl<C> Default for Letters<C> {
    fn default() -> Self {
        Self {
            adopted: Vec::new(),
            returned: Vec::new(),
            woken: Vec::new(),
            is_stopping: false,
            is_signalled: false,
            is_over: false,
        }
    }
}

impl<C> Mailbox<C> {
    pub(crate) fn new(waker: Waker) -> Self {
        Self {
            letters: Mutex::default(),
            waker,
        }
    }

    fn post(&self, write: impl FnOnce(&mut Letters<C>)) {
        let mut letters = self.letters.lock();
        if letters.is_over {
            // What the letter brings is dropped without the lock: its end may want to post something, too.
            drop(letters);
            return;
        }
        write(&mut letters);
        let is_first = !std::mem::replace(&mut letters.is_signalled, true);
        drop(letters);
        if is_first {
            // It fails only where a wake-up is pending already.
            let _ = self.waker.wake();
        }
    }

    pub(crate) fn adopt(&self, connection: Box<C>) {
        self.post(|letters| letters.adopted.push(connection));
    }

    pub(crate) fn wake_connection(&self, key: ConnectionKey) {
        self.post(|letters| letters.woken.push(key));
    }

    pub(crate) fn stop(&self) {
        self.post(|letters| letters.is_stopping = true);
    }

    /// Takes what has come, in exchange for empty letters.
    pub(crate) fn take(&self, into: &mut Letters<C>) {
        let mut letters = self.letters.lock();
        std::mem::swap(&mut *letters, into);
        letters.is_stopping = into.is_stopping;
        letters.is_signalled = false;
    }

    /// Takes nothing any more, and drops what nobody has taken.
    pub(crate) fn close(&self) {
        let mut rest = Letters {
            is_over: true,
            ..Letters::default()
        };
        std::mem::swap(&mut *self.letters.lock(), &mut rest);
    }
}

/// Wakes the loop itself, so that its driver looks at what it owes.
impl<C: Send + 'static> Wake for Mailbox<C> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.post(|_| {});
    }
}

/// Wakes one connection.
pub(crate) struct ConnectionWaker<C> {
    pub(crate) mailbox: Arc<Mailbox<C>>,
    pub(crate) key: ConnectionKey,
}

impl<C: Send + 'static> Wake for ConnectionWaker<C> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.mailbox.wake_connection(self.key);
    }
}

/// The place that a loop keeps for a connection that is away. Dropping it tells the loop that the connection is gone.
pub struct ConnectionAbsence<C> {
    mailbox: Arc<Mailbox<C>>,
    key: Option<ConnectionKey>,
}

impl<C> ConnectionAbsence<C> {
    pub(crate) const fn new(mailbox: Arc<Mailbox<C>>, key: ConnectionKey) -> Self {
        Self {
            mailbox,
            key: Some(key),
        }
    }

    /// Brings the connection back; its next turn finds it woken.
    pub fn end(mut self, connection: Box<C>) {
        if let Some(key) = self.key.take() {
            self.mailbox
                .post(|letters| letters.returned.push((key, Some(connection))));
        }
    }
}

impl<C> Drop for ConnectionAbsence<C> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.mailbox.post(|letters| letters.returned.push((key, None)));
        }
    }
}
