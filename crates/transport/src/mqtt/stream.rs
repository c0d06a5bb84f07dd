//! Reading and writing of connections without a buffer of their own.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use fieldline_core::sessions::{CloseReason, SessionControl};
use fieldline_model::record::RecordBatch;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What one read takes at most.
const READ_BYTES: usize = 64 << 10;

/// A batch that has grown beyond this by one large message gives the memory back.
const BATCH_BYTES: usize = 256 << 10;

/// A connection, with or without TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// What all connections of a thread share while they handle one read.
struct Scratch {
    input: Box<[u8]>,
    batch: RecordBatch,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> =
        RefCell::new(Scratch { input: vec![0; READ_BYTES].into_boxed_slice(), batch: RecordBatch::new() });
}

/// Reads once and hands what came, with an empty batch, to `handle`. An end of the stream is an empty read.
pub(super) fn poll_read<S: Stream, T>(
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

/// Writes all bytes; ends early when the session is told to close, since a peer that does not read would hold it for ever.
pub(super) async fn write_all<S: Stream>(
    stream: &mut S,
    mut bytes: &[u8],
    control: &SessionControl,
) -> Result<(), WriteEnd> {
    while !bytes.is_empty() {
        let written = poll_fn(
            |context| match Pin::new(&mut *stream).poll_write(context, bytes) {
                Poll::Ready(result) => Poll::Ready(result.map_err(|_| WriteEnd::Lost)),
                Poll::Pending => match control.poll_close(context.waker()) {
                    Some(reason) => Poll::Ready(Err(WriteEnd::Closed(reason))),
                    None => Poll::Pending,
                },
            },
        )
        .await?;
        if written == 0 {
            return Err(WriteEnd::Lost);
        }
        bytes = bytes.get(written..).unwrap_or_default();
    }
    // With TLS, what was written may still wait here.
    poll_fn(|context| match Pin::new(&mut *stream).poll_flush(context) {
        Poll::Ready(result) => Poll::Ready(result.map_err(|_| WriteEnd::Lost)),
        Poll::Pending => match control.poll_close(context.waker()) {
            Some(reason) => Poll::Ready(Err(WriteEnd::Closed(reason))),
            None => Poll::Pending,
        },
    })
    .await
}

/// Why writing ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteEnd {
    /// The connection is gone.
    Lost,
    /// The session was told to close.
    Closed(CloseReason),
}
