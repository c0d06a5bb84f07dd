//! What the MQTT broker stands on: its store beside its journal, and who may connect.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use fieldline_model::entity::MqttClientType;

use super::{Offset, StoreResult};

/// A table of the broker's store. Keys are sorted by their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BrokerTable {
    /// Sessions, with their subscriptions.
    Sessions,
    /// How far the queue of each session is.
    Cursors,
    /// Messages that wait for a session.
    Queued,
    /// Retained messages, by their topic.
    Retained,
}

impl BrokerTable {
    /// All tables.
    pub const ALL: [Self; 4] = [Self::Sessions, Self::Cursors, Self::Queued, Self::Retained];
}

/// Changes that are stored together.
#[derive(Debug, Default)]
pub struct BrokerChanges {
    /// Rows to write: table, key and value; those without a value are deleted.
    pub rows: Vec<(BrokerTable, Vec<u8>, Option<Vec<u8>>)>,
    bytes: usize,
    /// The position in the journal before which all records are part of the store.
    pub position: Option<Offset>,
}

impl BrokerChanges {
    /// Writes a row.
    pub fn put(&mut self, table: BrokerTable, key: impl Into<Vec<u8>>, value: Vec<u8>) {
        let key = key.into();
        self.bytes += key.len() + value.len();
        self.rows.push((table, key, Some(value)));
    }

    /// Bytes of the keys and values to write.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Deletes a row, if it exists.
    pub fn delete(&mut self, table: BrokerTable, key: impl Into<Vec<u8>>) {
        self.rows.push((table, key.into(), None));
    }
}

/// A store of rows sorted by key. Calls wait for the disk.
pub trait BrokerStore: Send + Sync {
    /// The position stored last.
    fn position(&self) -> StoreResult<Option<Offset>>;

    /// Stores all changes or none. They survive a crash of the machine once this returns.
    fn apply(&self, changes: &BrokerChanges) -> StoreResult<()>;

    /// Passes the rows of a range of keys to `visit`, in order, until it returns `false`.
    fn scan(
        &self,
        table: BrokerTable,
        keys: Range<&[u8]>,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> StoreResult<()>;

    /// Bytes of its files.
    fn disk_bytes(&self) -> StoreResult<u64>;
}

/// A client that wants to connect to the broker.
#[derive(Debug, Clone, Copy)]
pub struct BrokerLogin<'a> {
    /// The client identifier.
    pub client_id: &'a str,
    /// The user name.
    pub username: Option<&'a str>,
    /// The password.
    pub password: Option<&'a [u8]>,
    /// The certificates it presented, leaf first, in DER.
    pub certificates: Option<&'a [Vec<u8>]>,
    /// Whether it uses TLS.
    pub is_tls: bool,
    /// Where it comes from.
    pub address: IpAddr,
}

/// Why a client may not connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokerRefusal {
    /// Nobody has these credentials.
    Unknown,
    /// The credentials cannot be looked up now.
    Unavailable,
    /// The client is blocked.
    Banned,
    /// Nobody knows the authentication method that the client wants.
    UnknownMethod,
}

/// What kind of client somebody is. It comes from the credentials, never from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BrokerClientType {
    /// One of many, with a queue of limited length.
    #[default]
    Device,
    /// One of few, whose queue may hold millions of messages.
    Application,
}

impl From<MqttClientType> for BrokerClientType {
    fn from(kind: MqttClientType) -> Self {
        match kind {
            MqttClientType::Device => Self::Device,
            MqttClientType::Application => Self::Application,
        }
    }
}

/// Decides about topics and filters.
pub trait TopicRules: Send + Sync {
    /// Whether a client may publish on a topic.
    fn may_publish(&self, topic: &str) -> bool;

    /// Whether a client may subscribe to a filter; `filter` comes without the share name.
    fn may_subscribe(&self, filter: &str) -> bool;
}

/// What a client may do that was let in.
#[derive(Clone, Default)]
pub struct ClientGrant {
    /// What kind of client it is.
    pub client_type: BrokerClientType,
    /// Its topics; `None` for all.
    pub rules: Option<Arc<dyn TopicRules>>,
}

/// A client that has to answer before it is let in (MQTT 5 §4.12).
pub trait AuthExchange: Send {
    /// Takes the client's next message.
    ///
    /// # Errors
    /// The client is refused.
    fn receive(&mut self, message: &[u8]) -> Result<AuthStep, BrokerRefusal>;
}

/// What follows a message of an exchange.
pub enum AuthStep {
    /// The client has to answer this.
    Continue(Vec<u8>),
    /// It is let in, and is told this.
    Granted(ClientGrant, Vec<u8>),
}

/// An exchange that has begun, and the message to send.
pub type BegunExchange = (Box<dyn AuthExchange>, Vec<u8>);

/// Decides who may connect to the broker.
#[async_trait]
pub trait ClientAuthenticator: Send + Sync {
    /// Lets a client in or not.
    async fn authenticate(&self, login: BrokerLogin<'_>) -> Result<ClientGrant, BrokerRefusal>;

    /// Begins the exchange of an authentication method with the first message of a client.
    async fn begin_exchange(
        &self,
        _login: BrokerLogin<'_>,
        _method: &str,
        _message: &[u8],
    ) -> Result<BegunExchange, BrokerRefusal> {
        Err(BrokerRefusal::UnknownMethod)
    }
}
