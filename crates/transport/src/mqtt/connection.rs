//! The connection of a device that has logged in: its state, and the steps that wait for something else than its
//! socket. [`super::driver`] runs the other steps on an event loop.

use std::future::poll_fn;
use std::ops::Deref;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use fieldline_codec::ReasonCode;
use fieldline_core::logging::LogGate;
use fieldline_core::partial_budget::PartialBudget;
use fieldline_core::ports::{AppendError, AppendFuture};
use fieldline_devices::sessions::{CloseReason, SessionControl, SessionOrigin};
use fieldline_event_loop::Socket;
use tokio::sync::{Semaphore, SemaphorePermit};
use tracing::{debug, warn};

use super::gateway::GatewayMetrics;
use super::keepalive::{KEEP_ALIVE_SUSPENDED, KeepAliveGuard, KeepAliveMonitor};
use super::large_memory::LargeMemory;
use super::login::AuthenticatedDevice;
use super::packet_handler::{DeferredRequest, PacketHandler, ReadOutcome};
use crate::TransportServices;
use crate::metrics::{ConnectionMetrics, TransportMetrics};

static APPEND_GATE: LogGate = LogGate::new(2);
static REFRESH_GATE: LogGate = LogGate::new(2);

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

/// How far the connection is in its cycle: it reads once, waits until the records are durable, answers, and writes all
/// output, acknowledgements included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionPhase {
    /// It reads, or goes on with input that it has kept.
    Reading,
    /// It waits for its records.
    Committing,
    /// Its records are durable, as far as the device wants to know.
    Committed,
    /// What was read has been seen to; queued messages and the output are next.
    Answered,
    /// It waits until the device reads.
    Writing,
}

/// The side that ended a connection.
#[derive(Debug, Clone, Copy)]
pub(super) enum ConnectionEnd {
    /// The device, or the network.
    Peer,
    /// The server, with the reason code for a version 5 device.
    Server(ReasonCode),
}

/// The journal will take the records when there is room.
pub(super) type PendingAppend = Pin<Box<dyn Future<Output = Result<AppendFuture, AppendError>> + Send>>;

/// A step that another thread takes.
pub(super) enum AwayStep {
    /// The journal is behind; the records wait until it accepts them.
    Append(PendingAppend),
    /// A request is answered.
    Answer(Box<DeferredRequest>),
    /// The settings of the device are loaded again.
    Refresh,
}

/// The connection of a device that has logged in. An idle one takes this and what its parts point to.
pub(super) struct MqttConnection {
    pub(super) stream: Socket,
    // Declared after `stream`, so that the permit is returned after the stream was closed.
    pub(super) shared: ConnectionPermit,
    pub(super) handler: PacketHandler,
    _watch: KeepAliveGuard,
    pub(super) phase: ConnectionPhase,
    /// Whether the rest of earlier reads may hold a whole packet.
    pub(super) pending: bool,
    /// Records of the last read.
    pub(super) records: u32,
    /// What follows the last read, once its records are durable.
    pub(super) step: ReadOutcome,
    /// Bytes of the output that were written already.
    pub(super) written: usize,
    /// When a large message must have been read by the device.
    pub(super) write_deadline: Option<Box<Instant>>,
    pub(super) away: Option<Box<AwayStep>>,
    pub(super) end: Option<ConnectionEnd>,
}

impl MqttConnection {
    /// Registers the session and starts the keep-alive watch.
    pub(super) fn open(shared: ConnectionPermit, stream: Socket, admitted: AuthenticatedDevice) -> Self {
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
            // The answer to the log-in goes first.
            phase: ConnectionPhase::Answered,
            pending: true,
            records: 0,
            step: ReadOutcome::Continue,
            written: 0,
            write_deadline: None,
            away: None,
            end: None,
        }
    }

    /// Suspends keep-alive: while the server keeps the device waiting, the device's silence does not count.
    pub(super) fn suspend_keep_alive(&self) {
        self.handler.guard.control().mark_heard(KEEP_ALIVE_SUSPENDED);
    }

    pub(super) fn mark_heard(&self) {
        let now_s = self.shared.keep_alive.now_s();
        self.handler.guard.control().mark_heard(now_s);
    }

    /// Why the platform wants the connection to end, if it does.
    pub(super) fn closed(&self) -> Option<ConnectionEnd> {
        let reason = self.handler.guard.control().close_reason()?;
        Some(ConnectionEnd::Server(code_of(reason)))
    }

    /// Counts the records that the journal accepted. If it refused them, drops the output, so that nothing is
    /// acknowledged.
    pub(super) fn count(&mut self, outcome: Result<(), AppendError>) -> Result<(), ConnectionEnd> {
        let (records, metrics) = (u64::from(self.records), &self.shared.metrics);
        let Err(error) = outcome else {
            if records > 0 {
                metrics.messages.increment(records);
            }
            return Ok(());
        };
        metrics.refused_appends.increment(records);
        if let Some(suppressed) = APPEND_GATE.open() {
            warn!(%error, suppressed, "messages of a device were not taken, its connection is closed");
        }
        self.handler.out.clear();
        Err(ConnectionEnd::Server(ReasonCode::ImplementationSpecificError))
    }

    /// Returns how the connection ends when the pending output is dropped: after a partial packet, no DISCONNECT can
    /// follow.
    pub(super) const fn cut_off(&self, end: ConnectionEnd) -> ConnectionEnd {
        if self.written > 0 {
            ConnectionEnd::Peer
        } else {
            end
        }
    }

    /// Takes the step for which the connection has left its event loop.
    pub(super) async fn take_away_step(&mut self) {
        let Some(step) = self.away.take() else { return };
        let taken = match *step {
            AwayStep::Append(append) => self.wait_until_appended(append).await,
            AwayStep::Answer(question) => {
                self.step = Box::pin(self.handler.answer(&self.shared, question)).await;
                self.phase = ConnectionPhase::Answered;
                Ok(())
            }
            AwayStep::Refresh => self.refresh().await,
        };
        self.mark_heard();
        self.end = taken.err();
    }

    /// Waits until the journal has accepted the records and, if the device expects an acknowledgement, until they are
    /// durable. Ends early when the session is closed: records accepted by then stay in the journal, but are not
    /// acknowledged.
    async fn wait_until_appended(&mut self, append: PendingAppend) -> Result<(), ConnectionEnd> {
        let is_awaited = self.handler.has_answers();
        let outcome = {
            let appended = async {
                let append = append.await?;
                if is_awaited { append.await } else { Ok(()) }
            };
            let mut appended = pin!(appended);
            let control = self.handler.guard.control();
            poll_fn(|context| match appended.as_mut().poll(context) {
                Poll::Ready(outcome) => Poll::Ready(Ok(outcome)),
                Poll::Pending => match control.poll_close(context.waker()) {
                    Some(reason) => Poll::Ready(Err(ConnectionEnd::Server(code_of(reason)))),
                    None => Poll::Pending,
                },
            })
            .await
        };
        self.phase = ConnectionPhase::Committed;
        match outcome {
            Ok(outcome) => self.count(outcome),
            Err(end) => {
                self.handler.out.clear();
                Err(end)
            }
        }
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

    /// Sends the reason if the server ends the connection, ends the session, and closes the stream. There is no waiting
    /// for a peer that does not read.
    pub(super) fn close(mut self) {
        let subject = self.handler.device().subject;
        let end = self.end.unwrap_or(ConnectionEnd::Peer);
        self.handler.end_sub_sessions(&self.shared);
        debug!(device = %subject.entity.id, ?end, "session ended");
        if let ConnectionEnd::Server(code) = end {
            self.handler.out.clear();
            self.handler.session.disconnect(code, &mut self.handler.out);
            let _ = self.stream.write_all(&self.handler.out, &mut 0);
        }
        if self.handler.guard.end() {
            self.shared.services.activity.record_disconnect(subject);
        }
        self.stream.shut_down();
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
    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        // Each idle connection has one of these, in an allocation of its own.
        let size = size_of::<MqttConnection>();
        assert!(size <= 384, "{size} bytes");
    }
}
