//! A connection that fails if the peer does not read.

use std::future::Future as _;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream that fails when writing makes no progress for `timeout`, however long the whole write takes. It drops
/// `_held` with itself, even after an upgrade to another protocol.
pub(super) struct WriteTimeoutStream<S, H> {
    stream: S,
    _held: H,
    timeout: Duration,
    /// Set while waiting for the peer.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S, H> WriteTimeoutStream<S, H> {
    pub(super) fn new(stream: S, patience: Duration, held: H) -> Self {
        Self {
            stream,
            _held: held,
            timeout: patience,
            stalled: None,
        }
    }

    fn watch<T>(&mut self, context: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.stalled = None;
            return progress;
        }
        let patience = self.timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        stalled
            .as_mut()
            .poll(context)
            .map(|()| Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read")))
    }
}

impl<S: AsyncRead + Unpin, H: Unpin> AsyncRead for WriteTimeoutStream<S, H> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin, H: Unpin> AsyncWrite for WriteTimeoutStream<S, H> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(context, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // A socket has nothing to flush: a successful flush says nothing about the peer and must not stop the timer.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
    }

    #[test]
    fn writing_to_a_peer_that_does_not_read_fails_after_a_while() {
        runtime().block_on(async {
            let (ours, mut theirs) = tokio::io::duplex(64);
            let mut ours = WriteTimeoutStream::new(ours, Duration::from_millis(20), ());
            let error = ours.write_all(&[7; 65]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            let mut arrived = [0; 64];
            theirs.read_exact(&mut arrived).await.unwrap();
            assert_eq!(arrived, [7; 64]);
        });
    }

    #[test]
    fn a_peer_that_reads_slowly_gets_everything_however_long_it_takes() {
        runtime().block_on(async {
            let (ours, mut theirs) = tokio::io::duplex(8);
            let patience = Duration::from_millis(600);
            let mut ours = WriteTimeoutStream::new(ours, patience, ());
            let started = std::time::Instant::now();
            let reading = tokio::spawn(async move {
                let mut arrived = [0; 64];
                for part in arrived.chunks_mut(8) {
                    sleep(patience / 6).await;
                    theirs.read_exact(part).await.unwrap();
                }
                arrived
            });
            ours.write_all(&[7; 64]).await.unwrap();
            assert_eq!(reading.await.unwrap(), [7; 64]);
            assert!(
                started.elapsed() > patience,
                "the whole took longer than one write may"
            );
        });
    }
}
