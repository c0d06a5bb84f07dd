//! Several loops that share the connections of a server.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::Handle;

use crate::event_loop::{ConnectionDriver, EventLoop, LoopHandle};

/// Running loops, which get the connections in turn. Dropping it closes them and ends the threads.
pub struct EventLoopGroup<C: Send + 'static> {
    loops: Vec<EventLoop<C>>,
    /// Counts connections, to spread them over the loops.
    adopted: AtomicUsize,
}

impl<C: Send + 'static> EventLoopGroup<C> {
    /// Starts so many loops, or for 0 as many as the processors can serve beside the rest: loops take two thirds of the
    /// processor time of a message, what stores it the other. Code that a turn runs may start tasks of the runtime in
    /// whose context this is called.
    ///
    /// # Errors
    /// The system has no more threads, files or memory.
    pub fn start<D>(
        name: &str,
        wanted: usize,
        driver: impl Fn(&LoopHandle<C>, Handle) -> D,
    ) -> io::Result<Self>
    where
        D: ConnectionDriver<Connection = C>,
    {
        let count = match wanted {
            0 => (std::thread::available_parallelism().map_or(1, usize::from) * 2 / 3).max(1),
            wanted => wanted,
        };
        let start = |number| {
            let entered = Handle::current();
            EventLoop::start(
                &format!("{name}-{number}"),
                |handle| driver(handle, Handle::current()),
                move |run| {
                    let _context = entered.enter();
                    run();
                },
            )
        };
        Ok(Self {
            loops: (0..count).map(start).collect::<io::Result<_>>()?,
            adopted: AtomicUsize::new(0),
        })
    }

    /// Gives a connection to one of the loops.
    pub fn adopt(&self, connection: Box<C>) {
        let number = self.adopted.fetch_add(1, Ordering::Relaxed);
        if let Some(next) = self.loops.get(number % self.loops.len().max(1)) {
            next.handle().adopt(connection);
        }
    }
}
