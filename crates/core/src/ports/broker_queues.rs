//! What Kafka would show of a broker like this one: its node, its queues as topics, and who consumes them.

use async_trait::async_trait;
use fieldline_model::page::{PageData, PageLink};

use super::BrokerAdminResult;

/// The ports that clients of the broker connect to, of those that listen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BrokerListenerPorts {
    /// Without TLS.
    pub tcp: Option<u16>,
    /// With TLS.
    pub tls: Option<u16>,
    /// Over WebSocket.
    pub websocket: Option<u16>,
    /// Over WebSocket with TLS.
    pub websocket_tls: Option<u16>,
}

/// The node of the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokerNode {
    /// Where it listens.
    pub ports: BrokerListenerPorts,
    /// Largest packet of a client without the fixed header, bytes.
    pub max_packet: u64,
    /// Whether clients have credentials for the broker, which authentication providers check.
    pub asks_providers: bool,
}

/// A queue of the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerQueueTopic {
    /// Its name.
    pub name: String,
    /// Bytes of what is in it.
    pub bytes: u64,
}

/// Who consumes a queue of the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerConsumerGroup {
    /// The name.
    pub name: String,
    /// How many consume it now: one or none.
    pub members: u32,
    /// What waits in the queue.
    pub lag: u64,
}

/// The queues of the broker.
///
/// They are those of sessions of APPLICATION clients that outlive their connections, and the journal of the broker. Lists
/// are sorted by name where the link says nothing else, and refuse properties that they do not sort by. The text of the
/// link is looked for in names.
#[async_trait]
pub trait BrokerQueueAdmin: Send + Sync {
    /// The node.
    fn node(&self) -> BrokerNode;

    /// Checks a topic filter without a share name, which clients of the broker are to subscribe to.
    ///
    /// # Errors
    /// It is none, or nobody may subscribe to it.
    fn check_filter(&self, filter: &str) -> BrokerAdminResult<()>;

    /// Bytes of the files of the broker.
    async fn disk_bytes(&self) -> BrokerAdminResult<u64>;

    /// A page of the queues. Of a queue with very many stored messages, bytes are estimated by the first of them.
    async fn queue_topics(&self, link: PageLink) -> BrokerAdminResult<PageData<BrokerQueueTopic>>;

    /// A page of those who consume them.
    async fn consumer_groups(&self, link: PageLink) -> BrokerAdminResult<PageData<BrokerConsumerGroup>>;

    /// The one of this name.
    async fn consumer_group(&self, name: &str) -> BrokerAdminResult<Option<BrokerConsumerGroup>>;
}
