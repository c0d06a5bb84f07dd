//! What administrators see of the MQTT broker, and what they change of it.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use fieldline_model::page::{PageData, PageLink};
use uuid::Uuid;

use super::{BrokerClientType, BrokerQueueAdmin};

/// Where the administration of the broker is found once the broker runs; empty while it is off.
pub type BrokerAdminSlot = Arc<OnceLock<Arc<dyn BrokerAdmin>>>;

/// Why something is not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BrokerAdminError {
    /// The client has no session, or another one.
    #[error("No such client session")]
    NoSession,
    /// Only the session of a client that is away can be removed.
    #[error("Client is currently connected")]
    Connected,
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The broker cannot do it now.
    #[error("{0}")]
    Unavailable(String),
}

/// Result of an administrator's request.
pub type BrokerAdminResult<T> = Result<T, BrokerAdminError>;

/// The session of a client. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerSessionInfo {
    /// The client identifier.
    pub client_id: Arc<str>,
    /// Id of the connection, or of the last one.
    pub session_id: Uuid,
    /// Whether the client is connected.
    pub is_connected: bool,
    /// What kind of client it is.
    pub client_type: BrokerClientType,
    /// How many subscriptions it has.
    pub subscriptions: usize,
    /// When it has connected; 0 if that is not known.
    pub connected_ms: i64,
    /// When its connection has ended; 0 while it is connected.
    pub disconnected_ms: i64,
    /// Where it has connected from.
    pub address: Option<IpAddr>,
    /// Whether it asked for a session without a past.
    pub clean_start: bool,
    /// Messages that wait for it, or for its acknowledgement.
    pub queued: u64,
    /// Messages that were dropped for it since the broker or its session began.
    pub dropped: u64,
}

/// The session of a client with all that is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerSessionDetails {
    /// What a list has of it.
    pub info: BrokerSessionInfo,
    /// Seconds for which it outlives its connection.
    pub expiry_s: u32,
    /// When it ends, milliseconds since 1970; `None` while the client is connected, and if it never ends.
    pub ends_ms: Option<i64>,
    /// The keep-alive, seconds.
    pub keep_alive_s: u16,
    /// The user name that the client has sent.
    pub username: Option<Box<str>>,
    /// The version of the protocol, such as `3.1.1`.
    pub mqtt_version: Option<&'static str>,
    /// Its subscriptions, by filter.
    pub subscriptions: Vec<BrokerSubscription>,
}

/// A subscription of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerSubscription {
    /// The filter, with the share name if it is shared.
    pub filter: Box<str>,
    /// The highest quality of service, 0 to 2.
    pub qos: u8,
    /// Whether it leaves out the client's own messages.
    pub no_local: bool,
    /// Whether messages keep the retain flag with which they were published.
    pub retain_as_published: bool,
    /// Which retained messages it gets, 0 to 2 (MQTT 5 §3.8.3.1).
    pub retain_handling: u8,
    /// The subscription identifier.
    pub id: Option<u32>,
}

/// A subscription in a list of those of all clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerClientSubscription {
    /// The client identifier.
    pub client_id: Arc<str>,
    /// The subscription.
    pub subscription: BrokerSubscription,
}

/// A shared subscription with its members of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerShareGroup {
    /// The share name.
    pub share_name: Box<str>,
    /// The filter without the share name.
    pub filter: Box<str>,
    /// What kind of clients its members are.
    pub client_type: BrokerClientType,
    /// Its members, with whether they are connected; of many, the first.
    pub members: Vec<(Arc<str>, bool)>,
}

/// A retained message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerRetainedMessage {
    /// The topic.
    pub topic: Box<str>,
    /// The payload.
    pub payload: Box<[u8]>,
    /// The quality of service that it was published with, 0 to 2.
    pub qos: u8,
    /// When it was published, milliseconds since 1970; 0 if that is not known.
    pub created_ms: i64,
    /// Its user properties.
    pub user_properties: Vec<(Box<str>, Box<str>)>,
}

/// How a number is compared with another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum BrokerCountOrder {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
}

impl BrokerCountOrder {
    /// Whether `count` compares in this way with `with`.
    pub const fn holds(self, count: usize, with: usize) -> bool {
        match self {
            Self::Equal => count == with,
            Self::NotEqual => count != with,
            Self::Greater => count > with,
            Self::Less => count < with,
            Self::GreaterOrEqual => count >= with,
            Self::LessOrEqual => count <= with,
        }
    }
}

/// Which sessions a list has; those of which nothing is said are all there. Texts are found in any case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BrokerSessionFilter {
    /// Whether the client is connected.
    pub is_connected: Option<bool>,
    /// What kind of client it is.
    pub client_type: Option<BrokerClientType>,
    /// Whether it asked for a session without a past.
    pub clean_start: Option<bool>,
    /// How many subscriptions it has.
    pub subscriptions: Option<(BrokerCountOrder, usize)>,
    /// A part of its address.
    pub address: Option<String>,
    /// When it has connected, or when its connection has ended if it is away: first and last millisecond.
    pub between_ms: Option<(i64, i64)>,
}

/// Which subscriptions a list has; those of which nothing is said are all there. Texts are found in any case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BrokerSubscriptionFilter {
    /// A part of the client identifier.
    pub client_id: Option<String>,
    /// A part of the filter.
    pub filter: Option<String>,
    /// A topic that the filter matches.
    pub topic: Option<String>,
    /// Qualities of service; all if there are none.
    pub qos: Vec<u8>,
    /// Whether it leaves out the client's own messages.
    pub no_local: Option<bool>,
    /// Whether messages keep the retain flag with which they were published.
    pub retain_as_published: Option<bool>,
    /// Which retained messages it gets; all if there are none.
    pub retain_handling: Vec<u8>,
    /// The subscription identifier.
    pub id: Option<u32>,
}

/// Which retained messages a list has; those of which nothing is said are all there. Texts are found in any case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BrokerRetainedFilter {
    /// A part of the topic.
    pub topic: Option<String>,
    /// A part of the payload as text.
    pub payload: Option<String>,
    /// Qualities of service; all if there are none.
    pub qos: Vec<u8>,
    /// When it was published: first and last millisecond.
    pub between_ms: Option<(i64, i64)>,
}

/// What a client has sent and received since the broker or its session began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BrokerClientTraffic {
    /// Messages that it has published, by quality of service.
    pub received: [u64; 3],
    /// Messages that it was sent, by quality of service.
    pub sent: [u64; 3],
    /// Messages that were dropped for it.
    pub dropped: u64,
    /// Messages that wait for it, or for its acknowledgement.
    pub queued: u64,
}

/// Sessions of the broker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BrokerSessionCounts {
    /// Those whose clients are connected.
    pub connected: u64,
    /// Those whose clients are away.
    pub disconnected: u64,
}

/// What the broker has done in the last minute of the clock that is over, and what it has now. The first minute begins with
/// the broker; until it is over, what counts is what was done in it so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BrokerStatistics {
    /// When that minute was over, or what time it is in the first one, milliseconds since 1970.
    pub at_ms: i64,
    /// Messages that clients have published.
    pub incoming: u64,
    /// Messages that clients were sent.
    pub outgoing: u64,
    /// Messages that were dropped, or that nobody had subscribed to.
    pub dropped: u64,
    /// Bytes of the payloads that clients have published.
    pub inbound_bytes: u64,
    /// Bytes of the payloads that clients were sent.
    pub outbound_bytes: u64,
    /// Sessions, those of clients that are away included.
    pub sessions: u64,
    /// Subscriptions.
    pub subscriptions: u64,
    /// Retained messages.
    pub retained: u64,
}

/// The administration of the broker.
///
/// Lists are sorted by client identifier or topic where the link says nothing else, and refuse properties that they do
/// not sort by. The text of the link is looked for in client identifiers, or in topics.
#[async_trait]
pub trait BrokerAdmin: BrokerQueueAdmin {
    /// A page of the sessions.
    async fn sessions(
        &self,
        filter: BrokerSessionFilter,
        link: PageLink,
    ) -> BrokerAdminResult<PageData<BrokerSessionInfo>>;

    /// The session of a client.
    fn session(&self, client_id: &str) -> Option<BrokerSessionDetails>;

    /// How many sessions there are.
    fn session_counts(&self) -> BrokerSessionCounts;

    /// Ends the connection of a client, with its will; does nothing if it is away. With `session_id`, only of that
    /// connection.
    fn disconnect(&self, client_id: &str, session_id: Option<Uuid>) -> BrokerAdminResult<()>;

    /// Removes the session of a client that is away, with its subscriptions and its queue. With `session_id`, only if
    /// that was its last connection.
    async fn remove_session(&self, client_id: &str, session_id: Option<Uuid>) -> BrokerAdminResult<()>;

    /// A page of the subscriptions of all clients.
    async fn subscriptions(
        &self,
        filter: BrokerSubscriptionFilter,
        link: PageLink,
    ) -> BrokerAdminResult<PageData<BrokerClientSubscription>>;

    /// The subscriptions of a client, by filter; none if it has no session.
    fn subscriptions_of(&self, client_id: &str) -> Vec<BrokerSubscription>;

    /// Makes these the subscriptions of a client, all or none. Its topic rules do not count, and it is sent no retained
    /// messages for them.
    async fn replace_subscriptions(
        &self,
        client_id: &str,
        subscriptions: Vec<BrokerSubscription>,
    ) -> BrokerAdminResult<()>;

    /// A page of the shared subscriptions whose share name and one of whose members have these texts. The text of the
    /// link is looked for in filters.
    async fn share_groups(
        &self,
        share_name: Option<String>,
        client_id: Option<String>,
        link: PageLink,
    ) -> BrokerAdminResult<PageData<BrokerShareGroup>>;

    /// A page of the retained messages that have not expired.
    async fn retained(
        &self,
        filter: BrokerRetainedFilter,
        link: PageLink,
    ) -> BrokerAdminResult<PageData<BrokerRetainedMessage>>;

    /// The retained message of a topic, unless it has expired.
    fn retained_message(&self, topic: &str) -> Option<BrokerRetainedMessage>;

    /// Deletes the retained message of a topic; returns whether there was one. Subscribers are told nothing.
    async fn delete_retained(&self, topic: &str) -> BrokerAdminResult<bool>;

    /// What a client has sent and received; `None` if it has no session.
    fn client_traffic(&self, client_id: &str) -> Option<BrokerClientTraffic>;

    /// What the broker has done lately.
    fn statistics(&self) -> BrokerStatistics;
}
