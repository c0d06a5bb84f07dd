//! One connection of a device, from CONNACK to its end.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use fieldline_codec::ReasonCode;
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{Append, AppendError};
use fieldline_core::sessions::{CloseReason, SessionControl};
use fieldline_model::record::RecordBatch;
use tokio::io::AsyncWriteExt as _;
use tracing::{debug, warn};

use super::incoming::{Incoming, Step};
use super::keepalive::{KeepAlive, WAITING};
use super::login::Admitted;
use super::partial::PartialBudget;
use super::stream::{Stream, WriteEnd, poll_read, with_batch, write_all};
use crate::Services;
use crate::metrics::Metrics;

static APPEND_GATE: LogGate = LogGate::new(2);
static REFRESH_GATE: LogGate = LogGate::new(2);

/// How long the end of a connection may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// What all connections of the MQTT device server share.
pub(super) struct Shared {
    pub(super) services: Arc<Services>,
    pub(super) keep_alive: Arc<KeepAlive>,
    pub(super) partial: Arc<PartialBudget>,
    pub(super) metrics: Metrics,
    /// Largest packet, fixed header included.
    pub(super) max_packet: u32,
    /// Largest packet without its fixed header, as devices are told.
    pub(super) max_content: u32,
    pub(super) inactivity_s: u32,
}

/// What one read led to.
struct Turn {
    taken: Taken,
    step: Step,
    records: u32,
}

/// What became of the records of a turn.
enum Taken {
    Nothing,
    /// On its way to the disk.
    Append(Append),
    /// The journal is catching up: the records have to wait here.
    Waiting(Box<RecordBatch>),
    Refused(AppendError),
}

/// Serves a device that was let in until the connection ends.
pub(super) async fn serve<S: Stream>(stream: &mut S, shared: &Shared, admitted: Admitted) {
    let control = Arc::new(SessionControl::default());
    let device = admitted.device.clone();
    let subject = device.subject;
    let session = shared.services.sessions.open(device, control.clone());
    let (allowed_s, reason) = match admitted.keep_alive_s {
        0 => (shared.inactivity_s, CloseReason::Inactive),
        seconds => ((u32::from(seconds) * 3).div_ceil(2), CloseReason::KeepAlive),
    };
    let watch = shared.keep_alive.watch(control.clone(), allowed_s, reason);
    shared.services.activity.connected(subject);

    let mut connection = Connection {
        shared,
        control: &control,
        incoming: Incoming::new(admitted, shared.partial.share()),
        pending: true,
    };
    let end = connection.run(stream).await;
    debug!(device = %subject.entity.id, ?end, "session ended");

    drop((watch, session));
    if !shared
        .services
        .sessions
        .is_connected(fieldline_model::DeviceId(subject.entity.id))
    {
        shared.services.activity.disconnected(subject);
    }
    // A peer that does not read is not waited for.
    let _ = tokio::time::timeout(FAREWELL, stream.shutdown()).await;
}

/// How a connection ended.
#[derive(Debug)]
enum End {
    /// By the device, or by the network.
    Peer,
    /// By the server, with what a version 5 device is told.
    Server(ReasonCode),
}

impl From<WriteEnd> for End {
    fn from(end: WriteEnd) -> Self {
        match end {
            WriteEnd::Lost => Self::Peer,
            WriteEnd::Closed(reason) => Self::Server(code_of(reason)),
        }
    }
}

struct Connection<'a> {
    shared: &'a Shared,
    control: &'a SessionControl,
    incoming: Incoming,
    /// Whether what is left of earlier reads may hold a whole packet.
    pending: bool,
}

impl Connection<'_> {
    async fn run<S: Stream>(&mut self, stream: &mut S) -> End {
        let end = loop {
            if let Err(end) = self.turn(stream).await {
                break end;
            }
        };
        if let End::Server(code) = end {
            let mut farewell = Vec::new();
            self.incoming.session.disconnect(code, &mut farewell);
            // One try: a peer that does not read is not waited for.
            let _ = write_now(stream, &farewell).await;
        }
        end
    }

    /// Reads once and sees everything that came through, acknowledgements included.
    async fn turn<S: Stream>(&mut self, stream: &mut S) -> Result<(), End> {
        if self.pending && !self.incoming.has_answers() {
            self.pending = false;
            let turn = with_batch(|batch| {
                let step = self.incoming.resume(self.shared, batch);
                self.take(batch, step)
            });
            return self.finish(stream, turn).await;
        }
        if self.incoming.has_answers() {
            self.flush(stream).await?;
            return Ok(());
        }
        let turn = poll_fn(|context| {
            if let Some(reason) = self.control.poll_close(context.waker()) {
                return Poll::Ready(Err(End::Server(code_of(reason))));
            }
            poll_read(stream, context, |input, batch| {
                if input.is_empty() {
                    return Err(End::Peer);
                }
                if self.incoming.device.is_stale() {
                    // What came is handled by the settings that are in force now.
                    self.incoming.keep(input);
                    self.pending = true;
                    return Ok(self.take(batch, Step::Continue));
                }
                let step = self.incoming.receive(self.shared, input, batch);
                Ok(self.take(batch, step))
            })
            .map(|read| read.unwrap_or(Err(End::Peer)))
        })
        .await?;
        self.control.heard(self.shared.keep_alive.now_s());
        self.finish(stream, turn).await
    }

    /// Hands the records to the journal, without waiting.
    fn take(&self, batch: &mut RecordBatch, step: Step) -> Turn {
        let records = batch.count();
        let taken = if batch.is_empty() {
            Taken::Nothing
        } else {
            match self
                .shared
                .services
                .uplink
                .try_append(self.incoming.device.subject, batch)
            {
                Ok(append) => Taken::Append(append),
                Err(AppendError::Busy) => Taken::Waiting(Box::new(std::mem::take(batch))),
                Err(error) => Taken::Refused(error),
            }
        };
        Turn { taken, step, records }
    }

    async fn finish<S: Stream>(&mut self, stream: &mut S, turn: Turn) -> Result<(), End> {
        self.control.heard(WAITING);
        let durable = unless_closed(self.control, self.make_durable(turn.taken)).await;
        self.control.heard(self.shared.keep_alive.now_s());
        if let Err(error) = durable.inspect_err(|_| self.incoming.out.clear())? {
            self.shared
                .metrics
                .refused_appends
                .increment(u64::from(turn.records));
            if let Some(suppressed) = APPEND_GATE.open() {
                warn!(%error, suppressed, "messages of a device were not taken, its connection is closed");
            }
            self.incoming.out.clear();
            return Err(End::Server(ReasonCode::ImplementationSpecificError));
        }
        if turn.records > 0 {
            self.shared.metrics.messages.increment(u64::from(turn.records));
        }
        let end = match turn.step {
            Step::Continue => None,
            Step::Answer(question) => {
                self.pending = true;
                self.incoming.answer(self.shared, question).await;
                None
            }
            Step::End(None) => Some(End::Peer),
            Step::End(Some(code)) => Some(End::Server(code)),
        };
        self.flush(stream).await?;
        if let Some(end) = end {
            return Err(end);
        }
        self.refresh().await
    }

    /// Waits until the records are durable if the device waits for an acknowledgement.
    async fn make_durable(&self, taken: Taken) -> Result<(), AppendError> {
        let append = match taken {
            Taken::Nothing => return Ok(()),
            Taken::Refused(error) => return Err(error),
            Taken::Append(append) => append,
            Taken::Waiting(batch) => {
                self.shared
                    .services
                    .uplink
                    .append(self.incoming.device.subject, &batch)
                    .await?
            }
        };
        if self.incoming.has_answers() {
            append.await
        } else {
            Ok(())
        }
    }

    async fn flush<S: Stream>(&mut self, stream: &mut S) -> Result<(), End> {
        if self.incoming.out.is_empty() {
            return Ok(());
        }
        let result = write_all(stream, &self.incoming.out, self.control).await;
        self.incoming.clear_out();
        result.map_err(End::from)
    }

    /// Follows changes of the device and its profiles.
    async fn refresh(&mut self) -> Result<(), End> {
        if !self.incoming.device.is_stale() {
            return Ok(());
        }
        let device = self.incoming.device.clone();
        if let Err(error) = self.shared.services.directory.refresh(&device).await
            && let Some(suppressed) = REFRESH_GATE.open()
        {
            warn!(%error, suppressed, "cannot read a device's settings again, going on with the old ones");
        }
        if device.is_revoked() {
            return Err(End::Server(code_of(CloseReason::CredentialsChanged)));
        }
        self.incoming.settings = device.settings();
        Ok(())
    }
}

/// Waits for something unless the session is told to close first. What the journal has taken by then stays taken, but is not
/// acknowledged.
async fn unless_closed<T>(control: &SessionControl, work: impl Future<Output = T>) -> Result<T, End> {
    let mut work = std::pin::pin!(work);
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(Ok(result)),
        Poll::Pending => match control.poll_close(context.waker()) {
            Some(reason) => Poll::Ready(Err(End::Server(code_of(reason)))),
            None => Poll::Pending,
        },
    })
    .await
}

/// What a version 5 device is told when its session is closed.
const fn code_of(reason: CloseReason) -> ReasonCode {
    match reason {
        CloseReason::Replaced => ReasonCode::SessionTakenOver,
        CloseReason::CredentialsChanged => ReasonCode::AdministrativeAction,
        CloseReason::KeepAlive => ReasonCode::KeepAliveTimeout,
        CloseReason::Inactive => ReasonCode::MaximumConnectTime,
        CloseReason::Shutdown => ReasonCode::ServerShuttingDown,
    }
}

/// Writes what the socket takes at once.
async fn write_now<S: Stream>(stream: &mut S, bytes: &[u8]) -> std::io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    poll_fn(
        |context| match std::pin::Pin::new(&mut *stream).poll_write(context, bytes) {
            Poll::Ready(result) => Poll::Ready(result.map(|_| ())),
            Poll::Pending => Poll::Ready(Ok(())),
        },
    )
    .await?;
    poll_fn(
        |context| match std::pin::Pin::new(&mut *stream).poll_flush(context) {
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => Poll::Ready(Ok(())),
        },
    )
    .await
}
