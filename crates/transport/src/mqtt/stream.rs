//! Reading and writing of connections without a buffer of their own.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use fieldline_model::record::RecordBatch;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What one read takes at most.
const READ_BYTES: usize = 64 << 10;

/// A batch that has grown beyond this by one large message gives the memory back.
const BATCH_BYTES: usize = 256 << 10;

/// A connection, with or without TLS.
pub(super) trait MqttStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> MqttStream for T {}

/// What all connections of a thread share while they handle one read.
struct ThreadBuffers {
    input: Box<[u8]>,
    batch: RecordBatch,
}

thread_local! {
    static SCRATCH: RefCell<ThreadBuffers> =
        RefCell::new(ThreadBuffers { input: vec![0; READ_BYTES].into_boxed_slice(), batch: RecordBatch::new() });
}

/// Reads once and hands what came, with an empty batch, to `handle`. An end of the stream is an empty read.
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

/// Lends the batch of the thread, empty.
pub(super) fn with_batch<T>(handle: impl FnOnce(&mut RecordBatch) -> T) -> T {
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.batch.clear();
        handle(&mut scratch.batch)
    })
}

/// Writes all bytes and sees them on their way; `written` counts them from one call to the next.
pub(super) fn poll_write_all<S: MqttStream>(
    stream: &mut S,
    context: &mut Context<'_>,
    bytes: &[u8],
    written: &mut u32,
) -> Poll<io::Result<()>> {
    while let Some(rest) = bytes.get(*written as usize..).filter(|rest| !rest.is_empty()) {
        match ready!(Pin::new(&mut *stream).poll_write(context, rest))? {
            0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            // What one read leads to is far below 4 GiB.
            count => *written += count as u32,
        }
    }
    // With TLS, what was written may still wait here.
    Pin::new(stream).poll_flush(context)
}
