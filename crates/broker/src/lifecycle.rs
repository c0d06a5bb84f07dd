//! Sessions begin, are taken over, and end; so do their subscriptions and wills.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fieldline_codec::topic::TopicFilter;
use fieldline_codec::{PacketId, ReasonCode};
use fieldline_core::ports::{AppendError, AppendFuture, BrokerClientType, TopicRules};
use fieldline_model::record::RecordBatch;
use tokio::runtime::Handle;

use crate::broker::{Broker, SessionMap};
use crate::client::ConnectionInfo;
use crate::congestion::end_congestion;
use crate::log::{BrokerRecord, OpenedRecord, push};
use crate::message::BrokerMessage;
use crate::packets::BATCH_BYTES;
use crate::queue::MessageQueue;
use crate::session::{
    BrokerSession, ClientLink, NEVER_EXPIRES, SessionInner, SessionMember, StoredSubscription, StoredWill,
};
use crate::subscriptions::Subscriber;

/// Wills that become durable together.
const WILLS_AT_A_TIME: usize = 500;

/// A client that has been let in.
pub(crate) struct OpenRequest {
    /// Its topics; `None` for all.
    pub(crate) rules: Option<Arc<dyn TopicRules>>,
    pub(crate) client_type: BrokerClientType,
    pub(crate) client_id: Arc<str>,
    pub(crate) clean_start: bool,
    /// Seconds for which its session outlives its connection.
    pub(crate) expiry_s: u32,
    pub(crate) will: Option<StoredWill>,
    pub(crate) connection: ConnectionInfo,
}

/// The session of a client that has been let in.
pub(crate) struct OpenedSession {
    pub(crate) session: Arc<BrokerSession>,
    pub(crate) epoch: u64,
    /// Whether there was a session that goes on.
    pub(crate) is_present: bool,
    /// What has to be durable before the client is told.
    pub(crate) append: Option<AppendFuture>,
}

/// Why a session was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// There are as many as the settings allow.
    TooMany,
    /// The journal does not take the records now.
    JournalBehind,
}

impl From<AppendError> for OpenError {
    fn from(_: AppendError) -> Self {
        Self::JournalBehind
    }
}

impl OpenRequest {
    /// Whether the client may have these subscriptions.
    fn may_have(&self, subscriptions: &BTreeMap<Box<str>, StoredSubscription>) -> bool {
        may_have(self.rules.as_deref(), subscriptions)
    }
}

/// Whether rules permit all of these subscriptions.
pub(crate) fn may_have(
    rules: Option<&dyn TopicRules>,
    subscriptions: &BTreeMap<Box<str>, StoredSubscription>,
) -> bool {
    let Some(rules) = rules else { return true };
    subscriptions
        .keys()
        .all(|filter| TopicFilter::parse(filter).is_ok_and(|parsed| rules.may_subscribe(parsed.filter)))
}

/// How a connection has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientEnd {
    /// Whether the will is to be published.
    pub(crate) publishes_will: bool,
    /// Another session expiry interval, of DISCONNECT.
    pub(crate) expiry_s: Option<u32>,
}

/// A will that is due, with the session that publishes it.
pub(crate) type DueWill = (Arc<BrokerSession>, Arc<BrokerMessage>);

/// Wills that are due; they are published when this is dropped, whatever has become of what made them due.
pub(crate) struct DueWills {
    broker: Arc<Broker>,
    pub(crate) wills: Vec<DueWill>,
}

impl DueWills {
    pub(crate) const fn new(broker: Arc<Broker>) -> Self {
        Self {
            broker,
            wills: Vec::new(),
        }
    }
}

impl Drop for DueWills {
    fn drop(&mut self) {
        if self.wills.is_empty() {
            return;
        }
        let (broker, wills) = (self.broker.clone(), std::mem::take(&mut self.wills));
        // Without a runtime the process ends, and the wills are published after its next start.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { broker.publish_wills(wills).await });
        }
    }
}

impl Broker {
    /// Opens the session of a client, taking over one that another connection has. `due` gets the wills of what has
    /// ended.
    ///
    /// # Errors
    /// There is no room for another session, or the journal does not take the records now.
    pub(crate) fn open(
        &self,
        request: OpenRequest,
        due: &mut Vec<DueWill>,
    ) -> Result<OpenedSession, OpenError> {
        let mut batch = RecordBatch::new();
        let mut sessions = self.sessions.write();
        let known = sessions.get(&request.client_id).cloned();
        let most = self.options.max_sessions;
        if known.is_none() && most > 0 && sessions.len() >= most {
            return Err(OpenError::TooMany);
        }
        let resumed = known.filter(|session| {
            let mut inner = session.lock();
            // One whose client has asked for its end ends with the connection, also by being taken over.
            // Neither does one go on whose subscriptions its client may not have any more, or has never had the right to.
            let goes_on = session.is_persistent()
                && inner.expiry_s > 0
                && !request.clean_start
                && request.may_have(&inner.subscriptions);
            self.forget_due(session, &inner);
            // The will of a session that goes on in time is not published.
            let will = inner.will.take();
            inner.will_due_ms = None;
            if let Some(will) = will.filter(|will| !goes_on || will.delay_s == 0) {
                due.push((session.clone(), inner.begin_will(will, self.clock.now_ms())));
            }
            if !goes_on {
                drop(inner);
                self.end_session(&mut sessions, session, &mut batch);
            }
            goes_on
        });
        let is_present = resumed.is_some();
        let session = resumed.unwrap_or_else(|| {
            let number = self.next_session.fetch_add(1, Ordering::Relaxed);
            let queue = MessageQueue::default();
            let session = BrokerSession::new(number, request.client_id.clone(), request.expiry_s, queue);
            sessions.insert(request.client_id.clone(), session.clone());
            session
        });
        let mut inner = session.lock();
        let was_persistent = session.is_persistent();
        if let Some(old) = inner.link.take() {
            // It finds that its session has another connection.
            old.waker.inspect(|waker| waker.wake_by_ref());
        } else {
            self.away.lock().remove(&session.number);
        }
        inner.epoch += 1;
        inner.link = Some(ClientLink {
            epoch: inner.epoch,
            waker: None,
            is_signalled: false,
            close: None,
            // What a bridge does not get, another broker does not get.
            outgoing: match session.is_bridge() {
                true => None,
                false => self.limits.outgoing_of_client(),
            },
        });
        inner.direct.clear();
        inner.direct_bytes = 0;
        inner.expiry_s = request.expiry_s;
        inner.client_type = request.client_type;
        inner.will = request.will;
        inner.connection = Some(Box::new(request.connection));
        inner.is_changed = true;
        session.set_connected(true);
        // Until it ends, a session that was kept stays so: what waits in it is not lost by a change of its expiry.
        session.set_expiry(if was_persistent { 1 } else { request.expiry_s });
        self.note(&session, &mut inner);
        if session.is_persistent() {
            let opened = OpenedRecord {
                session: session.number,
                client_id: (&*request.client_id).into(),
                client_type: request.client_type,
                expiry_s: request.expiry_s,
                will: inner.will.clone(),
                connection: inner.connection.clone(),
            };
            push(&BrokerRecord::Opened(opened), &mut Vec::new(), &mut batch);
        }
        let epoch = inner.epoch;
        drop(inner);
        self.stats.connected.fetch_add(1, Ordering::Relaxed);
        let mut append = None;
        if !batch.is_empty() {
            // While nobody can open or close a session, so that the records have the order of what has happened.
            let appended = self.append(&batch);
            drop(sessions);
            match appended {
                Ok(appended) => append = Some(appended),
                Err(error) => {
                    let end = ClientEnd {
                        publishes_will: false,
                        expiry_s: None,
                    };
                    self.close(&session, epoch, end, due);
                    return Err(error.into());
                }
            }
        }
        Ok(OpenedSession {
            session,
            epoch,
            is_present,
            append,
        })
    }

    /// Ends the connection of a session, unless another one has taken it over.
    pub(crate) fn close(
        &self,
        session: &Arc<BrokerSession>,
        epoch: u64,
        end: ClientEnd,
        due: &mut Vec<DueWill>,
    ) {
        self.stats.connected.fetch_sub(1, Ordering::Relaxed);
        let mut batch = RecordBatch::new();
        let mut sessions = self.sessions.write();
        let mut inner = session.lock();
        if inner.link.as_ref().is_none_or(|link| link.epoch != epoch) {
            return;
        }
        let now_ms = self.clock.now_ms();
        inner.link = None;
        end_congestion(session, &mut inner);
        inner.direct.clear();
        inner.direct_bytes = 0;
        session.set_connected(false);
        if let Some(expiry_s) = end.expiry_s {
            inner.expiry_s = expiry_s;
        }
        session.set_expiry(inner.expiry_s);
        inner.disconnected_ms = now_ms;
        inner.is_changed = true;
        if !end.publishes_will {
            inner.will = None;
        }
        let expiry_s = inner.expiry_s;
        if let Some(will) = inner.will.take() {
            let delay_s = will.delay_s.min(expiry_s);
            if delay_s == 0 {
                due.push((session.clone(), inner.begin_will(will, now_ms)));
            } else {
                inner.will = Some(will);
                inner.will_due_ms = Some(now_ms + i64::from(delay_s) * 1_000);
            }
        }
        if expiry_s == 0 {
            drop(inner);
            self.end_session(&mut sessions, session, &mut batch);
        } else {
            self.note(session, &mut inner);
            let closed = BrokerRecord::Closed {
                session: session.number,
                at_ms: now_ms,
                expiry_s,
                // A will that leaves now does so again after a crash that comes before it is durable.
                will_due_ms: inner.leaving_will.as_ref().map(|_| now_ms).or(inner.will_due_ms),
            };
            push(&closed, &mut Vec::new(), &mut batch);
            self.watch_away(session, &inner);
            drop(inner);
        }
        // Where the journal does not take it, the next checkpoint stores it.
        let _ = self.append(&batch);
        drop(sessions);
    }

    /// Notes when something is due for a session that is away; the caller holds its lock.
    pub(crate) fn watch_away(&self, session: &Arc<BrokerSession>, inner: &SessionInner) {
        let times = [inner.will_due_ms, ends_at(inner)].into_iter().flatten();
        self.due.lock().extend(times.map(|at_ms| (at_ms, session.number)));
        self.away.lock().insert(session.number, session.clone());
    }

    /// Forgets when something is due for a session; the caller holds its lock and changes it only after that.
    pub(crate) fn forget_due(&self, session: &BrokerSession, inner: &SessionInner) {
        let mut due = self.due.lock();
        for at_ms in [inner.will_due_ms, ends_at(inner)].into_iter().flatten() {
            due.remove(&(at_ms, session.number));
        }
    }

    /// Ends a session with all that it has. Its queue is emptied at the next checkpoint.
    pub(crate) fn end_session(
        &self,
        sessions: &mut SessionMap,
        session: &Arc<BrokerSession>,
        batch: &mut RecordBatch,
    ) {
        if let Some(current) = sessions.get(&session.client_id)
            && Arc::ptr_eq(current, session)
        {
            sessions.remove(&session.client_id);
        }
        self.away.lock().remove(&session.number);
        let mut inner = session.lock();
        self.forget_due(session, &inner);
        inner.is_removed = true;
        session.set_connected(false);
        if let Some(old) = inner.link.take() {
            old.waker.inspect(|waker| waker.wake_by_ref());
        }
        let subscriptions = std::mem::take(&mut inner.subscriptions);
        if !subscriptions.is_empty() {
            let mut trie = self.subscriptions.write();
            for filter in subscriptions.keys() {
                if let Ok(filter) = TopicFilter::parse(filter) {
                    trie.remove(filter, session.number);
                }
            }
        }
        let numbers = inner.queue.clear();
        end_congestion(session, &mut inner);
        inner.direct.clear();
        if session.may_be_stored() {
            push(
                &BrokerRecord::Removed {
                    session: session.number,
                },
                &mut Vec::new(),
                batch,
            );
            self.unstored.lock().removed.push((session.number, numbers));
        }
    }

    /// Adds a subscription; returns whether the session had none for the filter.
    ///
    /// # Errors
    /// The session has too many, or has ended.
    pub(crate) fn subscribe(
        &self,
        session: &Arc<BrokerSession>,
        filter: &str,
        parsed: TopicFilter<'_>,
        subscription: StoredSubscription,
        batch: &mut RecordBatch,
    ) -> Result<bool, ReasonCode> {
        let mut inner = session.lock();
        let is_new = !inner.subscriptions.contains_key(filter);
        if inner.is_removed || (is_new && inner.subscriptions.len() >= self.options.max_subscriptions) {
            return Err(ReasonCode::QuotaExceeded);
        }
        inner.subscriptions.insert(filter.into(), subscription);
        let subscriber = Subscriber {
            member: SessionMember(session.clone()),
            options: subscription.options,
            id: subscription.id,
        };
        self.subscriptions.write().insert(parsed, subscriber);
        if session.is_persistent() {
            inner.is_changed = true;
            self.note(session, &mut inner);
            let subscribed = BrokerRecord::Subscribed {
                session: session.number,
                filter: filter.into(),
                subscription,
            };
            push(&subscribed, &mut Vec::new(), batch);
        }
        Ok(is_new)
    }

    /// Removes a subscription; returns whether there was one.
    pub(crate) fn unsubscribe(
        &self,
        session: &Arc<BrokerSession>,
        filter: &str,
        batch: &mut RecordBatch,
    ) -> bool {
        let mut inner = session.lock();
        if inner.subscriptions.remove(filter).is_none() {
            return false;
        }
        if let Ok(parsed) = TopicFilter::parse(filter) {
            self.subscriptions.write().remove(parsed, session.number);
        }
        if session.is_persistent() {
            inner.is_changed = true;
            self.note(session, &mut inner);
            let unsubscribed = BrokerRecord::Unsubscribed {
                session: session.number,
                filter: filter.into(),
            };
            push(&unsubscribed, &mut Vec::new(), batch);
        }
        true
    }

    /// Notes that a client has released a message of QoS 2; the caller holds the lock of its session.
    pub(crate) fn note_released(
        &self,
        session: &Arc<BrokerSession>,
        inner: &mut SessionInner,
        id: PacketId,
        batch: &mut RecordBatch,
    ) {
        inner.remove_unreleased(id);
        self.note(session, inner);
        let released = BrokerRecord::Released {
            session: session.number,
            packet_id: id,
        };
        push(&released, &mut Vec::new(), batch);
    }

    /// Publishes the wills and ends the sessions that are due.
    pub(crate) fn run_due(self: &Arc<Self>) {
        let now_ms = self.clock.now_ms();
        let mut due = DueWills::new(self.clone());
        let mut wills = Vec::new();
        let mut batch = RecordBatch::new();
        loop {
            let number = {
                let mut due = self.due.lock();
                match due.first() {
                    Some((at_ms, _)) if *at_ms <= now_ms => {}
                    _ => break,
                }
                let Some((_, number)) = due.pop_first() else { break };
                number
            };
            let Some(session) = self.away.lock().get(&number).cloned() else {
                continue;
            };
            let mut sessions = self.sessions.write();
            let mut inner = session.lock();
            if inner.link.is_some() || inner.is_removed {
                continue;
            }
            if inner.will_due_ms.is_some_and(|at_ms| at_ms <= now_ms) {
                inner.will_due_ms = None;
                inner.is_changed = true;
                self.note(&session, &mut inner);
                if let Some(will) = inner.will.take() {
                    wills.push((session.clone(), inner.begin_will(will, now_ms)));
                }
            }
            if ends_at(&inner).is_some_and(|at_ms| at_ms <= now_ms) {
                drop(inner);
                self.end_session(&mut sessions, &session, &mut batch);
            }
        }
        if !batch.is_empty() {
            // Where the journal does not take it, the next checkpoint stores it.
            let _ = self.append(&batch);
        }
        due.wills = wills;
    }

    /// Publishes wills.
    pub(crate) async fn publish_wills(self: &Arc<Self>, wills: Vec<DueWill>) {
        let mut rest = &wills[..];
        while !rest.is_empty() {
            let (some, behind) = rest.split_at(wills_at_a_time(rest));
            rest = behind;
            if !self.publish_own(some).await {
                // They are published after the next start.
                continue;
            }
            for (session, published) in some {
                let mut inner = session.lock();
                if inner.end_will(published) {
                    inner.is_changed = true;
                    self.note(session, &mut inner);
                }
            }
        }
    }
}

/// How many of the first wills become durable together; one at least, if there is one.
fn wills_at_a_time(wills: &[DueWill]) -> usize {
    let mut bytes = 0;
    let fit = wills.iter().take(WILLS_AT_A_TIME).take_while(|(_, message)| {
        let has_room = bytes < BATCH_BYTES;
        bytes += message.memory();
        has_room
    });
    fit.count()
}

/// When a session that is away ends; milliseconds since 1970.
pub(crate) fn ends_at(inner: &SessionInner) -> Option<i64> {
    (inner.expiry_s != NEVER_EXPIRES).then(|| {
        inner
            .disconnected_ms
            .saturating_add(i64::from(inner.expiry_s) * 1_000)
    })
}

#[cfg(test)]
mod tests {
    use fieldline_codec::QoS;

    use super::*;
    use crate::options::Options;
    use crate::testing::{BrokerFixture, message};

    #[test]
    fn wills_are_published_together_up_to_a_size() {
        let session = BrokerFixture::new(Options::default()).open("c", 60).session;
        let wills = |count: usize, bytes: usize| -> Vec<DueWill> {
            let will = message("a", &vec![0; bytes], QoS::AtLeastOnce);
            (0..count).map(|_| (session.clone(), will.clone())).collect()
        };
        assert_eq!(wills_at_a_time(&wills(2 * WILLS_AT_A_TIME, 10)), WILLS_AT_A_TIME);
        assert_eq!(wills_at_a_time(&wills(20, BATCH_BYTES / 4)), 4);
        assert_eq!(wills_at_a_time(&wills(20, 2 * BATCH_BYTES)), 1);
    }

    #[test]
    fn the_end_of_a_will_is_not_that_of_the_next_one() {
        let session = BrokerFixture::new(Options::default()).open("c", 60).session;
        let mut inner = session.lock();
        let will = |payload: &[u8]| StoredWill {
            message: message("a", payload, QoS::AtLeastOnce),
            delay_s: 0,
            expiry_s: Some(5),
        };
        let first = inner.begin_will(will(b"1"), 1_000);
        assert_eq!((first.created_ms, first.expires_ms), (1_000, Some(6_000)));
        let second = inner.begin_will(will(b"2"), 2_000);
        assert!(!inner.end_will(&first) && inner.leaving_will.is_some());
        assert!(inner.end_will(&second) && inner.leaving_will.is_none());
    }
}
