//! Reads and writes of connections that have no buffer of their own.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use fieldline_model::record::RecordBatch;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Most bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// A batch that one large message has grown beyond this size gives the memory back, bytes.
const BATCH_BYTES: usize = 256 << 10;

/// A connection, with or without TLS.
pub(super) trait MqttStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> MqttStream for T {}

/// Buffers shared by all connections of a thread, each for the time of one read.
struct ThreadBuffers {
    input: Box<[u8]>,
    batch: RecordBatch,
}

thread_local! {
    static SCRATCH: RefCell<ThreadBuffers> =
        RefCell::new(ThreadBuffers { input: vec![0; READ_BYTES].into_boxed_slice(), batch: RecordBatch::new() });
}

/// Reads once and passes the input, with an empty batch, to `handle`. At the end of the stream the input is empty.
pub(super) fn poll_read<S: MqttStream, T>(
    stream: &mut S,
    context: &mut Context<'_>,
    handle: impl FnOnce(&[u8], &mut RecordBatch) -> T,
) -> Poll<io::Result<T>> {
    SCRATCH.with_borrow_mut(|scratch| {
        let mut buffer = ReadBuf::new(&mut scratch.input);
        ready!(Pin::new(stream).poll_read(context, &mut buffer))?;
        scratch.batch.clear();
        let result = handle(buffer.filled(), &mut scratch.batch);
        scratch.batch.shrink_to(BATCH_BYTES);
        Poll::Ready(Ok(result))
    })
}

/// Lends the thread's batch, emptied.
pub(super) fn with_batch<T>(handle: impl FnOnce(&mut RecordBatch) -> T) -> T {
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.batch.clear();
        handle(&mut scratch.batch)
    })
}

/// Writes all bytes and flushes them; `written` keeps the count between calls.
pub(super) fn poll_write_all<S: MqttStream>(
    stream: &mut S,
    context: &mut Context<'_>,
    bytes: &[u8],
    written: &mut u32,
) -> Poll<io::Result<()>> {
    while let Some(rest) = bytes.get(*written as usize..).filter(|rest| !rest.is_empty()) {
        match ready!(Pin::new(&mut *stream).poll_write(context, rest))? {
            0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            // The output of one read is far below 4 GiB.
            count => *written += count as u32,
        }
    }
    // With TLS, written bytes may still be in its buffer.
    Pin::new(stream).poll_flush(context)
}
