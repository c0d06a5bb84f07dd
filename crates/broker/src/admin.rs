//! What administrators see of the broker, and what they change of it.
//!
//! Lists copy references in slices, so that nobody waits for a list; rows are made, filtered and sorted outside of the
//! locks of the broker. One list is made at a time.

mod lists;
mod queues;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use fieldline_codec::topic::TopicFilter;
use fieldline_codec::{PublishPacket, QoS, ReasonCode, RetainHandling, SubscriptionOptions};
use fieldline_core::ports::{
    AppendError, AppendFuture, BrokerAdmin, BrokerAdminError, BrokerAdminResult, BrokerClientSubscription,
    BrokerClientTraffic, BrokerRetainedFilter, BrokerRetainedMessage, BrokerSessionCounts,
    BrokerSessionDetails, BrokerSessionFilter, BrokerSessionInfo, BrokerShareGroup, BrokerStatistics,
    BrokerSubscription, BrokerSubscriptionFilter,
};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::record::RecordBatch;
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::broker::Broker;
use crate::client::{ClientCounters, ConnectionInfo};
use crate::lifecycle::{DueWill, DueWills, ends_at};
use crate::log::{BrokerRecord, PublishedRecord, push};
use crate::message::BrokerMessage;
use crate::session::{BrokerSession, SessionInner, StoredSubscription};

/// Largest subscription identifier (MQTT 5 §3.8.2.1.2).
const MAX_SUBSCRIPTION_ID: u32 = 268_435_455;

/// The administration of a broker.
pub(crate) struct BrokerAdministration {
    broker: Arc<Broker>,
    /// One list at a time.
    turns: Arc<Semaphore>,
}

impl BrokerAdministration {
    pub(crate) fn new(broker: Arc<Broker>) -> Self {
        Self {
            broker,
            turns: Arc::new(Semaphore::new(1)),
        }
    }

    /// Makes a list on a thread that may take long.
    async fn list<T: Send + 'static>(
        &self,
        make: impl FnOnce(&Broker) -> BrokerAdminResult<T> + Send + 'static,
    ) -> BrokerAdminResult<T> {
        let stopping = || BrokerAdminError::Unavailable("The broker is stopping".to_owned());
        let turn = self.turns.clone().acquire_owned().await;
        let turn = turn.map_err(|_| stopping())?;
        let broker = self.broker.clone();
        let making = tokio::task::spawn_blocking(move || {
            let made = make(&broker);
            // The client may be gone, and the next list still waits for this one.
            drop(turn);
            made
        });
        making.await.map_err(|_| stopping())?
    }

    /// Waits until records are durable.
    async fn keep(&self, batch: &RecordBatch) -> BrokerAdminResult<()> {
        let kept = self.broker.append_durably(batch).await;
        kept.map_err(|error| BrokerAdminError::Unavailable(error.to_string()))
    }
}

/// The row of a session; the caller holds its lock.
fn info_of(session: &BrokerSession, inner: &SessionInner) -> BrokerSessionInfo {
    let connection = inner.connection.as_deref();
    let is_connected = inner.link.is_some();
    BrokerSessionInfo {
        client_id: session.client_id.clone(),
        session_id: connection_id(inner),
        is_connected,
        client_type: inner.client_type,
        subscriptions: inner.subscriptions.len(),
        connected_ms: connection.map_or(0, |connection| connection.connected_ms),
        disconnected_ms: if is_connected { 0 } else { inner.disconnected_ms },
        address: connection.and_then(|connection| connection.address),
        clean_start: connection.is_some_and(|connection| connection.clean_start),
        queued: queued(inner),
        dropped: session.counted().map_or(0, ClientCounters::dropped),
    }
}

fn connection_id(inner: &SessionInner) -> Uuid {
    inner.connection.as_deref().map_or(Uuid::nil(), |it| it.id)
}

fn queued(inner: &SessionInner) -> u64 {
    inner.queue.len() + inner.direct.len() as u64
}

fn shown(filter: &str, subscription: &StoredSubscription) -> BrokerSubscription {
    let StoredSubscription { options, id } = subscription;
    BrokerSubscription {
        filter: filter.into(),
        qos: options.qos as u8,
        no_local: options.no_local,
        retain_as_published: options.retain_as_published,
        retain_handling: options.retain_handling as u8,
        id: Some(*id).filter(|id| *id != 0),
    }
}

fn all_shown(inner: &SessionInner) -> Vec<BrokerSubscription> {
    let subscriptions = inner.subscriptions.iter();
    subscriptions
        .map(|(filter, subscription)| shown(filter, subscription))
        .collect()
}

fn retained_row(message: &BrokerMessage) -> BrokerRetainedMessage {
    let properties = message.properties.as_properties();
    BrokerRetainedMessage {
        topic: message.topic.clone(),
        payload: message.payload.clone(),
        qos: message.qos as u8,
        created_ms: message.created_ms,
        user_properties: properties
            .user_properties()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
    }
}

impl Broker {
    /// Ends the minute if it is over, and tells who listens what was in it.
    pub(crate) fn keep_minute(&self, now_ms: i64) {
        if self.stats.keep_minute(now_ms) {
            self.stats.minutes.send_replace(Some(self.statistics(now_ms)));
        }
    }

    fn statistics(&self, now_ms: i64) -> BrokerStatistics {
        let sessions = self.sessions.read().len() as u64;
        let subscriptions = self.subscriptions.read().count() as u64;
        let retained = self.retained.read().count() as u64;
        BrokerStatistics {
            sessions,
            subscriptions,
            retained,
            ..self.stats.last_minute(now_ms)
        }
    }

    fn session_of(&self, client_id: &str) -> Option<Arc<BrokerSession>> {
        self.sessions.read().get(client_id).cloned()
    }

    /// Removes the session of a client that is away; `due` gets its will, if that is still to be published. Returns the
    /// append of the record.
    fn remove_away(
        &self,
        client_id: &str,
        session_id: Option<Uuid>,
        due: &mut Vec<DueWill>,
    ) -> BrokerAdminResult<Result<AppendFuture, AppendError>> {
        let mut sessions = self.sessions.write();
        let session = sessions.get(client_id).cloned();
        let session = session.ok_or(BrokerAdminError::NoSession)?;
        let mut inner = session.lock();
        check_connection(&inner, session_id)?;
        if inner.link.is_some() {
            return Err(BrokerAdminError::Connected);
        }
        self.forget_due(&session, &inner);
        let will = inner.will.take();
        inner.will_due_ms = None;
        drop(inner);
        let mut batch = RecordBatch::new();
        self.end_session(&mut sessions, &session, &mut batch);
        let published = will.map(|will| will.published_at(self.clock.now_ms()));
        due.extend(published.map(|message| (session.clone(), message)));
        // While nobody can open a session, so that the records have the order of what has happened.
        let appended = self.append(&batch);
        drop(sessions);
        Ok(appended)
    }

    /// Makes these the subscriptions of a client; `batch` gets what has to be durable, also of what is done before an error.
    fn replace_subscriptions(
        &self,
        client_id: &str,
        subscriptions: &[BrokerSubscription],
        batch: &mut RecordBatch,
    ) -> BrokerAdminResult<()> {
        let session = self.session_of(client_id).ok_or(BrokerAdminError::NoSession)?;
        let most = self.options.max_subscriptions;
        if subscriptions.len() > most {
            return Err(BrokerAdminError::Invalid(format!(
                "A client may have {most} subscriptions at most"
            )));
        }
        let mut wanted: BTreeMap<&str, (TopicFilter<'_>, StoredSubscription)> = BTreeMap::new();
        for subscription in subscriptions {
            wanted.insert(&subscription.filter, self.checked(subscription)?);
        }
        let present: Vec<(Box<str>, StoredSubscription)> = {
            let inner = session.lock();
            let all = inner.subscriptions.iter();
            all.map(|(filter, subscription)| (filter.clone(), *subscription))
                .collect()
        };
        for (filter, subscription) in &present {
            let is_same = wanted.get(&**filter).map(|(_, wanted)| wanted == subscription);
            match is_same {
                None => {
                    self.unsubscribe(&session, filter, batch);
                }
                Some(true) => {
                    wanted.remove(&**filter);
                }
                Some(false) => {}
            }
        }
        for (filter, (parsed, subscription)) in wanted {
            self.subscribe(&session, filter, parsed, subscription, batch)
                .map_err(|_| BrokerAdminError::NoSession)?;
        }
        Ok(())
    }

    /// Parses a filter that clients may subscribe to.
    fn parsed<'a>(&self, filter: &'a str) -> BrokerAdminResult<TopicFilter<'a>> {
        let parsed = TopicFilter::parse(filter).map_err(|error| wrong_filter(filter, &error.to_string()))?;
        if !self.has_levels(parsed.filter) {
            return Err(wrong_filter(filter, "it has too many levels"));
        }
        if self.is_refused(parsed.filter) {
            return Err(wrong_filter(filter, "nobody may subscribe to it"));
        }
        Ok(parsed)
    }

    fn checked<'a>(
        &self,
        subscription: &'a BrokerSubscription,
    ) -> BrokerAdminResult<(TopicFilter<'a>, StoredSubscription)> {
        let filter = &subscription.filter;
        let invalid = |why: &str| wrong_filter(filter, why);
        let parsed = self.parsed(filter)?;
        if parsed.share_name.is_some() && subscription.no_local {
            return Err(invalid(
                "a shared subscription cannot leave out the client's own messages",
            ));
        }
        if subscription
            .id
            .is_some_and(|id| id == 0 || id > MAX_SUBSCRIPTION_ID)
        {
            return Err(invalid("its identifier is not between 1 and 268435455"));
        }
        let qos = QoS::from_u8(subscription.qos).ok_or_else(|| invalid("its QoS is not 0, 1 or 2"))?;
        let retain_handling = match subscription.retain_handling {
            0 => RetainHandling::Send,
            1 => RetainHandling::SendIfNew,
            2 => RetainHandling::DoNotSend,
            _ => return Err(invalid("its retain handling is not 0, 1 or 2")),
        };
        let stored = StoredSubscription {
            options: SubscriptionOptions {
                qos,
                no_local: subscription.no_local,
                retain_as_published: subscription.retain_as_published,
                retain_handling,
            },
            id: subscription.id.unwrap_or(0),
        };
        Ok((parsed, stored))
    }
}

fn wrong_filter(filter: &str, why: &str) -> BrokerAdminError {
    BrokerAdminError::Invalid(format!("Topic filter '{filter}': {why}"))
}

fn check_connection(inner: &SessionInner, session_id: Option<Uuid>) -> BrokerAdminResult<()> {
    match session_id {
        Some(id) if id != connection_id(inner) => Err(BrokerAdminError::NoSession),
        _ => Ok(()),
    }
}

#[async_trait]
impl BrokerAdmin for BrokerAdministration {
    async fn sessions(
        &self,
        filter: BrokerSessionFilter,
        link: PageLink,
    ) -> BrokerAdminResult<PageData<BrokerSessionInfo>> {
        self.list(move |broker| lists::sessions(broker, &filter, link))
            .await
    }

    fn session(&self, client_id: &str) -> Option<BrokerSessionDetails> {
        let session = self.broker.session_of(client_id)?;
        let inner = session.lock();
        let connection = inner.connection.as_deref();
        let details = BrokerSessionDetails {
            info: info_of(&session, &inner),
            expiry_s: inner.expiry_s,
            ends_ms: match inner.link {
                Some(_) => None,
                None => ends_at(&inner),
            },
            keep_alive_s: connection.map_or(0, |connection| connection.keep_alive_s),
            username: connection.and_then(|connection| connection.username.clone()),
            mqtt_version: connection.and_then(ConnectionInfo::version_name),
            subscriptions: all_shown(&inner),
        };
        Some(details)
    }

    fn session_counts(&self) -> BrokerSessionCounts {
        let all = self.broker.sessions.read().len() as u64;
        let connected = self.broker.stats.connected.load(Ordering::Relaxed).min(all);
        BrokerSessionCounts {
            connected,
            disconnected: all - connected,
        }
    }

    fn disconnect(&self, client_id: &str, session_id: Option<Uuid>) -> BrokerAdminResult<()> {
        let session = self.broker.session_of(client_id);
        let session = session.ok_or(BrokerAdminError::NoSession)?;
        let mut inner = session.lock();
        check_connection(&inner, session_id)?;
        inner.close_link(ReasonCode::AdministrativeAction);
        Ok(())
    }

    async fn remove_session(&self, client_id: &str, session_id: Option<Uuid>) -> BrokerAdminResult<()> {
        let mut due = DueWills::new(self.broker.clone());
        let appended = self.broker.remove_away(client_id, session_id, &mut due.wills)?;
        let outcome = match appended {
            Ok(append) => append.await,
            Err(error) => Err(error),
        };
        outcome.map_err(|error| BrokerAdminError::Unavailable(error.to_string()))
    }

    async fn subscriptions(
        &self,
        filter: BrokerSubscriptionFilter,
        link: PageLink,
    ) -> BrokerAdminResult<PageData<BrokerClientSubscription>> {
        self.list(move |broker| lists::subscriptions(broker, &filter, link))
            .await
    }

    fn subscriptions_of(&self, client_id: &str) -> Vec<BrokerSubscription> {
        let session = self.broker.session_of(client_id);
        session.map_or_else(Vec::new, |session| all_shown(&session.lock()))
    }

    async fn replace_subscriptions(
        &self,
        client_id: &str,
        subscriptions: Vec<BrokerSubscription>,
    ) -> BrokerAdminResult<()> {
        let mut batch = RecordBatch::new();
        let broker = &self.broker;
        let replaced = broker.replace_subscriptions(client_id, &subscriptions, &mut batch);
        self.keep(&batch).await?;
        replaced
    }

    async fn share_groups(
        &self,
        share_name: Option<String>,
        client_id: Option<String>,
        link: PageLink,
    ) -> BrokerAdminResult<PageData<BrokerShareGroup>> {
        self.list(move |broker| {
            lists::share_groups(broker, share_name.as_deref(), client_id.as_deref(), link)
        })
        .await
    }

    async fn retained(
        &self,
        filter: BrokerRetainedFilter,
        link: PageLink,
    ) -> BrokerAdminResult<PageData<BrokerRetainedMessage>> {
        self.list(move |broker| lists::retained(broker, &filter, link))
            .await
    }

    fn retained_message(&self, topic: &str) -> Option<BrokerRetainedMessage> {
        let message = self.broker.retained.read().get(topic).cloned()?;
        (!message.is_expired(self.broker.clock.now_ms())).then(|| retained_row(&message))
    }

    async fn delete_retained(&self, topic: &str) -> BrokerAdminResult<bool> {
        if self.retained_message(topic).is_none() {
            return Ok(false);
        }
        let publish = PublishPacket {
            retain: true,
            ..PublishPacket::new(topic, b"")
        };
        let message = Arc::new(BrokerMessage::of(&publish, topic, self.broker.clock.now_ms()));
        self.broker.retain(&message);
        // What the broker says of itself is stored nowhere.
        if !topic.starts_with('$') {
            let deleted = PublishedRecord {
                unreleased: None,
                is_retained: true,
                deliveries: Vec::new(),
                message,
            };
            let mut batch = RecordBatch::new();
            push(&BrokerRecord::Published(deleted), &mut Vec::new(), &mut batch);
            self.keep(&batch).await?;
        }
        Ok(true)
    }

    fn client_traffic(&self, client_id: &str) -> Option<BrokerClientTraffic> {
        let session = self.broker.session_of(client_id)?;
        let queued = queued(&session.lock());
        let counters = session.counted();
        Some(BrokerClientTraffic {
            received: counters.map_or([0; 3], ClientCounters::received),
            sent: counters.map_or([0; 3], ClientCounters::sent),
            dropped: counters.map_or(0, ClientCounters::dropped),
            queued,
        })
    }

    fn statistics(&self) -> BrokerStatistics {
        self.broker.statistics(self.broker.clock.now_ms())
    }
}
