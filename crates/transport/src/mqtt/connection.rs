//! One connection of a device, from log-in to close.

use std::future::poll_fn;
use std::io;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use fieldline_codec::ReasonCode;
use fieldline_core::ingest::QueueProducer;
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{AppendError, AppendFuture};
use fieldline_devices::sessions::{CloseReason, SessionControl, SessionOrigin};
use fieldline_model::EntityKey;
use fieldline_model::record::RecordBatch;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{Semaphore, SemaphorePermit};
use tracing::{debug, warn};

use super::gateway::GatewayMetrics;
use super::keepalive::{KEEP_ALIVE_SUSPENDED, KeepAliveGuard, KeepAliveMonitor};
use super::large_memory::LargeMemory;
use super::login::AuthenticatedDevice;
use super::packet_handler::{PacketHandler, ReadOutcome};
use super::partial_budget::PartialBudget;
use super::stream::{MqttStream, poll_read, poll_write_all, with_batch};
use crate::TransportServices;
use crate::metrics::{ConnectionMetrics, TransportMetrics};

static APPEND_GATE: LogGate = LogGate::new(2);
static REFRESH_GATE: LogGate = LogGate::new(2);

/// Longest time for the TLS close and the shutdown of a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// State shared by all connections of the MQTT device server.
pub(super) struct MqttShared {
    pub(super) services: Arc<TransportServices>,
    pub(super) keep_alive: Arc<KeepAliveMonitor>,
    pub(super) partial_budget: Arc<PartialBudget>,
    pub(super) metrics: TransportMetrics,
    pub(super) gateway_metrics: Arc<GatewayMetrics>,
    pub(super) connections: ConnectionMetrics,
    /// One permit for each connection that may still be opened.
    pub(super) connection_permits: Semaphore,
    /// Largest packet with its fixed header, bytes.
    pub(super) max_packet: u32,
    /// Largest packet without its fixed header, bytes; this is the limit that devices are told.
    pub(super) max_content: u32,
    pub(super) inactivity_s: u32,
    /// Memory for large package chunks on their way to devices.
    pub(super) large_memory: Arc<LargeMemory>,
}

/// One of the permitted open connections; given back when dropped.
pub(super) struct ConnectionPermit(Arc<MqttShared>);

impl ConnectionPermit {
    /// Takes over a permit of [`MqttShared::connection_permits`].
    pub(super) fn take(shared: &Arc<MqttShared>, permit: SemaphorePermit<'_>) -> Self {
        // A kept permit would take three times the memory.
        permit.forget();
        shared.connections.accepted.increment(1);
        shared.connections.open.increment(1);
        Self(shared.clone())
    }
}

impl Deref for ConnectionPermit {
    type Target = MqttShared;

    fn deref(&self) -> &MqttShared {
        &self.0
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.connections.open.decrement(1);
        self.connection_permits.add_permits(1);
    }
}

/// Serves a connection from log-in to close. `introduction` logs the device in and yields its connection; it is boxed
/// so that its room is freed after log-in.
///
/// While a device is idle, the future of this function is all that its connection takes: the lasting state and the
/// little that every message needs. Rare steps are boxed while they run.
pub(super) async fn serve_connection<S, F>(introduction: Pin<Box<F>>)
where
    S: MqttStream,
    F: Future<Output = Option<MqttConnection<S>>>,
{
    let Some(mut connection) = introduction.await else {
        return;
    };
    let mut served = connection.flush().await;
    let end = loop {
        match served {
            Ok(()) => served = connection.run_cycle().await,
            Err(end) => break end,
        }
    };
    Box::pin(connection.close(end)).await;
}

/// The outcome of one read.
struct ReadCycle {
    append: PendingAppend,
    step: ReadOutcome,
    records: u32,
    /// Whether something was read: a cycle that only delivers to the device does not prove that the device is there.
    has_read: bool,
}

/// The state of the records of one read cycle.
enum PendingAppend {
    Nothing,
    /// Appended; the flush to disk is still to come.
    Append(AppendFuture),
    /// The journal is behind; the records wait here until it accepts them.
    Waiting(Pin<Box<dyn Future<Output = Result<AppendFuture, AppendError>> + Send>>),
    Refused(Box<AppendError>),
}

impl PendingAppend {
    /// Appends the records to the journal without waiting.
    fn of(uplink: &QueueProducer, queue: Option<&str>, subject: EntityKey, batch: &mut RecordBatch) -> Self {
        if batch.is_empty() {
            return Self::Nothing;
        }
        let routed = queue.map(|queue| uplink.queue_for(subject.tenant, Some(queue)));
        let uplink = routed.as_deref().unwrap_or(uplink);
        match uplink.try_append(subject, batch) {
            Ok(append) => Self::Append(append),
            Err(AppendError::Busy | AppendError::TooLarge { .. }) => {
                let (uplink, batch) = (uplink.clone(), std::mem::take(batch));
                Self::Waiting(Box::pin(async move { uplink.append(subject, &batch).await }))
            }
            Err(error) => Self::Refused(Box::new(error)),
        }
    }

    /// Waits until the journal has accepted the records and, if the device expects an acknowledgement, until they are
    /// durable.
    fn poll(&mut self, context: &mut Context<'_>, until_durable: bool) -> Poll<Result<(), AppendError>> {
        if let Self::Waiting(waiting) = self {
            *self = Self::Append(ready!(waiting.as_mut().poll(context))?);
        }
        match self {
            Self::Append(append) if until_durable => Pin::new(append).poll(context),
            Self::Refused(error) => Poll::Ready(Err(AppendError::clone(error))),
            Self::Nothing | Self::Append(_) | Self::Waiting(_) => Poll::Ready(Ok(())),
        }
    }
}

/// The side that ended a connection.
#[derive(Debug)]
enum ConnectionEnd {
    /// The device, or the network.
    Peer,
    /// The server, with the reason code for a version 5 device.
    Server(ReasonCode),
}

/// The connection of a device that has logged in.
pub(super) struct MqttConnection<S> {
    stream: S,
    // Declared after `stream`, so that the permit is returned after the stream was closed.
    shared: ConnectionPermit,
    handler: PacketHandler,
    _watch: KeepAliveGuard,
    /// Bytes of the output that were written already.
    written: u32,
    /// Whether the rest of earlier reads may hold a whole packet.
    pending: bool,
}

impl<S: MqttStream> MqttConnection<S> {
    /// Registers the session and starts the keep-alive watch.
    pub(super) fn open(shared: ConnectionPermit, stream: S, admitted: AuthenticatedDevice) -> Self {
        let device = admitted.device.clone();
        let subject = device.subject;
        let control = Arc::new(SessionControl::default());
        let origin = SessionOrigin {
            since_ms: shared.services.clock.now_ms(),
            ..admitted.origin
        };
        let sessions = &shared.services.sessions;
        let session = sessions.open_from(device, control.clone(), origin);
        let (allowed_s, reason) = match admitted.keep_alive_s {
            0 => (shared.inactivity_s, CloseReason::Inactive),
            seconds => ((u32::from(seconds) * 3).div_ceil(2), CloseReason::KeepAlive),
        };
        let watch = shared.keep_alive.watch(control, allowed_s, reason);
        shared.services.activity.record_connect(subject);
        Self {
            stream,
            handler: PacketHandler::new(admitted, session, shared.partial_budget.share()),
            shared,
            _watch: watch,
            written: 0,
            pending: true,
        }
    }

    /// Runs one cycle: reads once, waits for durability, and writes all output, acknowledgements included.
    async fn run_cycle(&mut self) -> Result<(), ConnectionEnd> {
        let mut turn = poll_fn(|context| self.poll_cycle(context)).await?;
        self.handler.follow_subscriptions(&self.shared);
        if turn.has_read {
            self.suspend_keep_alive();
            let durable = poll_fn(|context| self.poll_durable(&mut turn.append, context)).await;
            self.mark_heard();
            self.count(turn.records, durable)?;
        }
        if let ReadOutcome::Answer(question) = turn.step {
            self.pending = true;
            self.suspend_keep_alive();
            turn.step = Box::pin(self.handler.answer(&self.shared, question)).await;
            self.mark_heard();
        }
        if self.handler.can_deliver() {
            self.handler.deliver(&self.shared);
        }
        match self.handler.cold.time_to_write() {
            None => self.flush().await?,
            Some(patience) => Box::pin(self.flush_within(patience)).await?,
        }
        match turn.step {
            ReadOutcome::End(None) => return Err(ConnectionEnd::Peer),
            ReadOutcome::End(Some(code)) => return Err(ConnectionEnd::Server(code)),
            ReadOutcome::Continue | ReadOutcome::Answer(_) => {}
        }
        if self.handler.device().is_stale() {
            Box::pin(self.refresh()).await?;
        }
        Ok(())
    }

    /// Suspends keep-alive: while the server keeps the device waiting, the device's silence does not count.
    fn suspend_keep_alive(&self) {
        self.handler.guard.control().mark_heard(KEEP_ALIVE_SUSPENDED);
    }

    fn mark_heard(&self) {
        let now_s = self.shared.keep_alive.now_s();
        self.handler.guard.control().mark_heard(now_s);
    }

    /// Reads once, or goes on with buffered input, and appends the records to the journal.
    fn poll_cycle(&mut self, context: &mut Context<'_>) -> Poll<Result<ReadCycle, ConnectionEnd>> {
        let shared: &MqttShared = &self.shared;
        let incoming = &mut self.handler;
        if std::mem::take(&mut self.pending) {
            let turn = with_batch(|batch| {
                let step = incoming.resume(shared, batch);
                ReadCycle::of(shared, incoming, batch, step)
            });
            return Poll::Ready(Ok(turn));
        }
        if let Some(end) = poll_closed(incoming.guard.control(), context) {
            return Poll::Ready(Err(end));
        }
        let read = poll_read(&mut self.stream, context, |input, batch| {
            if input.is_empty() {
                return Err(ConnectionEnd::Peer);
            }
            if incoming.device().is_stale() {
                // The device is stale: buffer the input until the current settings are loaded.
                incoming.buffer_input(input);
                self.pending = true;
                return Ok(ReadCycle::of(shared, incoming, batch, ReadOutcome::Continue));
            }
            let step = incoming.receive(shared, input, batch);
            Ok(ReadCycle::of(shared, incoming, batch, step))
        });
        match read {
            Poll::Ready(read) => Poll::Ready(read.unwrap_or(Err(ConnectionEnd::Peer))),
            Poll::Pending if self.handler.can_deliver() => Poll::Ready(Ok(ReadCycle::IDLE)),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Waits until the journal has accepted the records, and until they are durable if the device expects an
    /// acknowledgement. Ends early when the session is closed: records accepted by then stay in the journal, but are
    /// not acknowledged.
    fn poll_durable(
        &self,
        taken: &mut PendingAppend,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), ReadCycleFailure>> {
        match taken.poll(context, self.handler.has_answers()) {
            Poll::Ready(outcome) => Poll::Ready(outcome.map_err(ReadCycleFailure::Refused)),
            Poll::Pending => match poll_closed(self.handler.guard.control(), context) {
                Some(end) => Poll::Ready(Err(ReadCycleFailure::Closed(end))),
                None => Poll::Pending,
            },
        }
    }

    /// Counts the records that the journal accepted. If it refused them, drops the output, so that nothing is
    /// acknowledged.
    fn count(&mut self, records: u32, durable: Result<(), ReadCycleFailure>) -> Result<(), ConnectionEnd> {
        let metrics = &self.shared.metrics;
        let end = match durable {
            Ok(()) => {
                if records > 0 {
                    metrics.messages.increment(u64::from(records));
                }
                return Ok(());
            }
            Err(ReadCycleFailure::Closed(end)) => end,
            Err(ReadCycleFailure::Refused(error)) => {
                metrics.refused_appends.increment(u64::from(records));
                if let Some(suppressed) = APPEND_GATE.open() {
                    warn!(%error, suppressed, "messages of a device were not taken, its connection is closed");
                }
                ConnectionEnd::Server(ReasonCode::ImplementationSpecificError)
            }
        };
        self.handler.out.clear();
        Err(end)
    }

    /// Writes the pending output. Ends when the session is closed, because a peer that does not read would block the
    /// write for ever.
    fn flush(&mut self) -> impl Future<Output = Result<(), ConnectionEnd>> {
        poll_fn(|context| {
            if !self.handler.has_answers() {
                return Poll::Ready(Ok(()));
            }
            let written = match self.poll_write(context) {
                Poll::Ready(written) => written.map_err(|_| ConnectionEnd::Peer),
                Poll::Pending => match poll_closed(self.handler.guard.control(), context) {
                    Some(end) => Err(self.cut_off(end)),
                    None => return Poll::Pending,
                },
            };
            self.handler.clear_out();
            self.written = 0;
            Poll::Ready(written)
        })
    }

    /// Like [`Self::flush`], for a large message: its memory is scarce, so the device must read it within `patience`.
    async fn flush_within(&mut self, patience: Duration) -> Result<(), ConnectionEnd> {
        // Nothing is read from the device meanwhile.
        self.suspend_keep_alive();
        let written = tokio::time::timeout(patience, self.flush()).await;
        self.mark_heard();
        if let Ok(written) = written {
            return written;
        }
        debug!(device = %self.handler.device().id, "a large message is read too slowly");
        let end = self.cut_off(ConnectionEnd::Server(ReasonCode::QuotaExceeded));
        self.handler.clear_out();
        self.written = 0;
        Err(end)
    }

    /// Returns how the connection ends when the pending output is dropped: after a partial packet, no DISCONNECT can
    /// follow.
    fn cut_off(&self, end: ConnectionEnd) -> ConnectionEnd {
        if self.written > 0 {
            ConnectionEnd::Peer
        } else {
            end
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        poll_write_all(&mut self.stream, context, &self.handler.out, &mut self.written)
    }

    /// Loads changes of the device and its profiles.
    async fn refresh(&mut self) -> Result<(), ConnectionEnd> {
        let device = self.handler.device().clone();
        if let Err(error) = self.shared.services.directory.refresh(&device).await
            && let Some(suppressed) = REFRESH_GATE.open()
        {
            warn!(%error, suppressed, "cannot read a device's settings again, going on with the old ones");
        }
        if device.is_revoked() {
            return Err(ConnectionEnd::Server(code_of(CloseReason::CredentialsChanged)));
        }
        self.handler.settings = device.settings();
        if let Some(gateway) = self.handler.cold.gateway_mut() {
            gateway.outdate();
        }
        Ok(())
    }

    /// Sends the reason if the server ends the connection, ends the session, and closes the stream.
    async fn close(&mut self, end: ConnectionEnd) {
        let subject = self.handler.device().subject;
        self.handler.end_sub_sessions(&self.shared);
        debug!(device = %subject.entity.id, ?end, "session ended");
        if let ConnectionEnd::Server(code) = end {
            self.written = 0;
            self.handler.out.clear();
            self.handler.session.disconnect(code, &mut self.handler.out);
            // Tries once: there is no waiting for a peer that does not read.
            poll_fn(|context| {
                let _ = self.poll_write(context);
                Poll::Ready(())
            })
            .await;
        }
        if self.handler.guard.end() {
            self.shared.services.activity.record_disconnect(subject);
        }
        // The TLS close does not wait for such a peer, either.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.stream.shutdown()).await;
    }
}

/// The reason why records were not settled.
enum ReadCycleFailure {
    /// The journal refused them.
    Refused(AppendError),
    /// The session was closed first.
    Closed(ConnectionEnd),
}

/// Returns the end of the session if it was closed; otherwise registers the task to be woken when it is.
fn poll_closed(control: &SessionControl, context: &Context<'_>) -> Option<ConnectionEnd> {
    let reason = control.poll_close(context.waker())?;
    Some(ConnectionEnd::Server(code_of(reason)))
}

impl ReadCycle {
    /// A cycle that read nothing.
    const IDLE: Self = Self {
        append: PendingAppend::Nothing,
        step: ReadOutcome::Continue,
        records: 0,
        has_read: false,
    };

    /// Appends the records of a read to the journal without waiting.
    fn of(shared: &MqttShared, incoming: &PacketHandler, batch: &mut RecordBatch, step: ReadOutcome) -> Self {
        let (records, points) = (batch.count(), batch.points());
        let taken = PendingAppend::of(
            &shared.services.producer,
            incoming.settings.queue.as_deref(),
            incoming.device().subject,
            batch,
        );
        if !matches!(taken, PendingAppend::Refused(_)) {
            incoming.device().count_sent(records, points);
        }
        Self {
            append: taken,
            step,
            records,
            has_read: true,
        }
    }
}

/// The reason code that a version 5 device gets when its session is closed.
const fn code_of(reason: CloseReason) -> ReasonCode {
    match reason {
        CloseReason::Replaced => ReasonCode::SessionTakenOver,
        CloseReason::CredentialsChanged => ReasonCode::AdministrativeAction,
        CloseReason::KeepAlive => ReasonCode::KeepAliveTimeout,
        CloseReason::Inactive => ReasonCode::MaximumConnectTime,
        CloseReason::Shutdown => ReasonCode::ServerShuttingDown,
        CloseReason::TooSlow => ReasonCode::QuotaExceeded,
        CloseReason::CallTimeout | CloseReason::Administrator => ReasonCode::AdministrativeAction,
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        const fn size_of_future<A, F>(_: &impl FnOnce(A) -> F) -> usize {
            size_of::<F>()
        }
        // With the runtime's overhead per task this makes 512 bytes, and the allocator's next size is 640. Each idle
        // connection has one such task. (An unoptimised build needs 8 bytes more.)
        let size = size_of_future(&serve_connection::<TcpStream, std::future::Ready<_>>);
        assert!(size <= 416, "{size} bytes");
    }
}
