//! Queue of log lines for standard error, which may be closed, full, or a pipe that nobody reads.
//!
//! ```text
//! threads that log ──► queue, bounded ──► a thread of its own ──► standard error
//! ```
//!
//! Only that thread ever blocks on standard error or sees its errors. A pipe that nobody reads blocks it; then the
//! queue fills and further lines are dropped. They are counted, and their number is logged once lines can be written
//! again.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::Unit;
use parking_lot::{Condvar, Mutex};

/// Most bytes of lines in the queue.
const MAX_WAITING: usize = 4 << 20;
/// How often the loss of lines is reported.
const LOSS_REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// Lines that did not fit into the queue or could not be written.
const LOST: &str = "fieldline_log_lost_lines_total";

/// Returns standard error without the lock of the standard library, which a thread blocked on its reader would hold;
/// `None` if the process has no standard error.
pub(super) fn standard_error() -> Option<File> {
    let own = io::stderr().as_fd().try_clone_to_owned();
    own.ok().map(File::from)
}

#[derive(Default)]
struct LogBuffer {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Lines that were dropped and not reported yet.
    lost: u64,
    /// Whether the thread is writing lines.
    is_writing: bool,
}

#[derive(Default)]
struct SharedLogBuffer {
    queue: Mutex<LogBuffer>,
    /// Signals that there are lines to write.
    filled: Condvar,
    /// Signals that everything is written.
    emptied: Condvar,
}

impl SharedLogBuffer {
    /// Queues a line if there is room for it.
    fn put(&self, line: &[u8]) {
        let mut queue = self.queue.lock();
        if queue.bytes + line.len() > MAX_WAITING {
            queue.lost += 1;
            drop(queue);
            // Counted here and not where lines are written: that thread may be blocked.
            count_lost(1);
            return;
        }
        queue.bytes += line.len();
        queue.lines.push_back(line.to_vec());
        drop(queue);
        self.filled.notify_one();
    }
}

/// The queue of log lines; its thread runs as long as the process.
pub(super) struct LogThread(Arc<SharedLogBuffer>);

impl LogThread {
    /// Starts the thread. If it cannot be started, all lines are lost.
    pub(super) fn start(out: impl Write + Send + 'static) -> Self {
        let shared: Arc<SharedLogBuffer> = Arc::default();
        let mut output = LogOutput {
            out,
            is_torn: false,
            lost: 0,
        };
        let queue = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("log".to_owned());
        let _ = thread.spawn(move || output.run(&queue));
        Self(shared)
    }

    /// Returns a writer for one thread.
    pub(super) fn writer(&self) -> LogLineWriter {
        LogLineWriter(Arc::clone(&self.0))
    }

    /// Waits at most `patience` until all lines are written.
    pub(super) fn flush(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        let mut queue = self.0.queue.lock();
        while !queue.lines.is_empty() || queue.is_writing {
            if self.0.emptied.wait_until(&mut queue, deadline).timed_out() {
                return;
            }
        }
    }
}

/// Queues one line per write, and never fails.
pub(super) struct LogLineWriter(Arc<SharedLogBuffer>);

impl Write for LogLineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.put(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Output of the log thread.
struct LogOutput<W> {
    out: W,
    /// Whether the last line was cut off before its end.
    is_torn: bool,
    lost: u64,
}

impl<W: Write> LogOutput<W> {
    fn run(&mut self, shared: &SharedLogBuffer) {
        metrics::describe_counter!(LOST, Unit::Count, "Log lines that could not be written");
        let mut told: Option<Instant> = None;
        loop {
            let (lines, lost) = {
                let mut queue = shared.queue.lock();
                queue.is_writing = false;
                while queue.lines.is_empty() {
                    shared.emptied.notify_all();
                    shared.filled.wait(&mut queue);
                }
                queue.is_writing = true;
                queue.bytes = 0;
                (std::mem::take(&mut queue.lines), std::mem::take(&mut queue.lost))
            };
            let before = self.lost;
            let mut has_written = false;
            for line in lines {
                has_written |= self.write(&line);
            }
            count_lost(self.lost - before);
            self.lost += lost;
            if self.lost > 0 && has_written && told.is_none_or(|told| told.elapsed() >= LOSS_REPORT_INTERVAL)
            {
                told = Some(Instant::now());
                tracing::warn!(
                    lines = std::mem::take(&mut self.lost),
                    "log lines were lost, standard error did not take them"
                );
            }
        }
    }

    /// Writes a line, or counts it as lost; returns whether it was written.
    fn write(&mut self, line: &[u8]) -> bool {
        if self.is_torn && self.out.write_all(b"\n").is_ok() {
            self.is_torn = false;
        }
        let mut rest = line;
        while !rest.is_empty() {
            match self.out.write(rest) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => {
                    self.lost += 1;
                    self.is_torn |= rest.len() < line.len();
                    return false;
                }
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            }
        }
        true
    }
}

/// Looks the counter up each time: the recorder may be installed after the first line.
fn count_lost(lines: u64) {
    if lines > 0 {
        metrics::counter!(LOST).increment(lines);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A writer that waits for a permission before each write, and records what was written.
    struct Gate {
        answers: Receiver<io::Result<usize>>,
        seen: SyncSender<Vec<u8>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = self.answers.recv().unwrap_or(Ok(bytes.len()))?.min(bytes.len());
            let _ = self.seen.send(bytes[..count].to_vec());
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gate() -> (Gate, SyncSender<io::Result<usize>>, Receiver<Vec<u8>>) {
        let (answer, answers) = sync_channel(1000);
        let (seen, sight) = sync_channel(1000);
        (Gate { answers, seen }, answer, sight)
    }

    #[test]
    fn a_reader_that_does_not_read_holds_nobody_up_and_what_does_not_fit_is_counted() {
        let (out, answer, sight) = gate();
        let lines = LogThread::start(out);
        // The thread has started on a batch of one line and is blocked in the middle of it.
        answer.send(Ok(1)).unwrap();
        lines.writer().write_all(b"[]").unwrap();
        assert_eq!(sight.recv_timeout(PATIENCE).unwrap(), b"[");
        let line = vec![b'x'; 64 << 10];
        for _ in 0..1000 {
            lines.writer().write_all(&line).unwrap();
        }
        let (waiting, lost) = {
            let queue = lines.0.queue.lock();
            (queue.lines.len(), queue.lost)
        };
        assert_eq!((waiting, lost), (64, 1000 - 64));
        lines.flush(Duration::from_millis(1));
        // Once the output takes data again, the queued lines come.
        drop(answer);
        assert_eq!(sight.recv_timeout(PATIENCE).unwrap(), b"]");
        assert_eq!(sight.recv_timeout(PATIENCE).unwrap(), line);
        lines.flush(PATIENCE);
        assert_eq!(lines.0.queue.lock().bytes, 0);
    }

    #[test]
    fn a_line_that_was_torn_by_a_full_disk_does_not_run_into_the_next_one() {
        let (out, answer, sight) = gate();
        let mut output = LogOutput {
            out,
            is_torn: false,
            lost: 0,
        };
        answer.send(Ok(2)).unwrap();
        answer.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
        assert!(!output.write(b"first\n"));
        assert_eq!(output.lost, 1);
        drop(answer);
        assert!(output.write(b"second\n"));
        let all: Vec<u8> = sight.try_iter().flatten().collect();
        assert_eq!(all, b"fi\nsecond\n");
    }
}
