//! The side of the client that rule nodes see.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use rskafka::BackoffConfig;
use rskafka::client::error::{Error as KafkaError, ProtocolError};
use rskafka::client::partition::UnknownTopicHandling;
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::Record;
use tokio::sync::{Mutex, Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

use super::config::{HeaderCharset, KafkaConfig};
use super::partition_sender::{PartitionSender, QueuedKafkaRecord};
use super::partitioner::Partitioner;
use super::properties::ProducerProperties;
use super::relay::SocksRelay;
use crate::backoff::Backoff;
use crate::config::{ConnectorConfig, ConnectorConfigError};
use crate::egress::Egress;
use crate::outcome::{ConnectorError, ConnectorFault, ConnectorOutcome, entry};

/// How many topics are known at a time; a pattern may make up any number of them.
const MAX_TOPICS: usize = 256;
/// How long the partitions of a topic are believed.
const TOPIC_LIFETIME: Duration = Duration::from_secs(300);
/// How long a topic may take to come about, where the cluster makes it.
const CREATION_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a topic that was not found is not looked for again.
const MISSING_LIFETIME: Duration = Duration::from_secs(10);
/// How many messages of a partition may wait.
const MAX_QUEUED: usize = 10_000;
/// What a message costs beyond its bytes.
const OVERHEAD: usize = 70;
/// Prefix of the headers that carry metadata.
const HEADER_PREFIX: &str = "tb_msg_md_";

/// Sends messages as one Kafka node is configured. It connects with the first message.
#[derive(Debug)]
pub struct KafkaClient {
    brokers: Vec<String>,
    client_id: String,
    properties: ProducerProperties,
    tls: Option<Arc<rustls::ClientConfig>>,
    egress: Egress,
    headers: Option<HeaderCharset>,
    memory: Arc<Semaphore>,
    connection: Mutex<KafkaConnection>,
    topics: StdMutex<HashMap<String, Arc<TopicWorkers>>>,
}

struct KafkaConnection {
    client: Option<Arc<Client>>,
    /// What its connections go through, unless everything may be reached.
    relay: Option<Arc<SocksRelay>>,
    backoff: Backoff,
    /// Until when nobody tries to connect, and why.
    failed: Option<(Instant, String)>,
    /// Topics that were not found, until when nobody looks for them again, and why.
    missing: HashMap<String, (Instant, KafkaFailure)>,
}

/// Why a message is not in the cluster.
#[derive(Clone)]
struct KafkaFailure {
    fault: ConnectorFault,
    message: String,
}

impl From<String> for KafkaFailure {
    /// A failure of the cluster, or of the way to it.
    fn from(message: String) -> Self {
        let fault = ConnectorFault::Service;
        Self { fault, message }
    }
}

impl std::fmt::Debug for KafkaConnection {
    /// Leaves out the client, which would show its password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KafkaConnection")
            .field("connected", &self.client.is_some())
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct TopicWorkers {
    partitioner: Partitioner,
    workers: Vec<(i32, mpsc::Sender<QueuedKafkaRecord>)>,
    known_since: Instant,
}

impl KafkaClient {
    /// Makes a client. `name` tells this producer from others at the brokers.
    pub fn new(config: &KafkaConfig, name: &str, egress: &Egress) -> Result<Self, ConnectorConfigError> {
        config.validate()?;
        let properties = ProducerProperties::of(config)?;
        let headers = if config.add_metadata_key_values_as_kafka_headers {
            Some(HeaderCharset::parse(&config.kafka_headers_charset)?)
        } else {
            None
        };
        let memory = properties.buffer_memory.clamp(1, Semaphore::MAX_PERMITS);
        Ok(Self {
            brokers: config.brokers()?,
            client_id: properties.client_id.clone().unwrap_or_else(|| name.to_owned()),
            tls: properties.tls()?.map(Arc::new),
            egress: egress.clone(),
            headers,
            memory: Arc::new(Semaphore::new(memory)),
            connection: Mutex::new(KafkaConnection {
                client: None,
                relay: None,
                backoff: Backoff::new(Duration::from_secs(1), Duration::from_secs(60)),
                failed: None,
                missing: HashMap::new(),
            }),
            topics: StdMutex::default(),
            properties,
        })
    }

    /// Sends a message and waits until the cluster has it. `metadata` becomes headers if the configuration says so.
    pub async fn send(
        &self,
        topic: &str,
        key: Option<&str>,
        body: &str,
        metadata: &[(String, String)],
    ) -> Result<ConnectorOutcome, ConnectorError> {
        match timeout(self.send_timeout(), self.deliver(topic, key, body, metadata)).await {
            Ok(Ok((partition, offset))) => Ok(ConnectorOutcome::with_metadata(vec![
                entry("offset", offset.to_string()),
                entry("partition", partition.to_string()),
                entry("topic", topic),
            ])),
            Ok(Err(error)) => Err(ConnectorError::with_error_metadata(error.message).with_fault(error.fault)),
            Err(_) => Err(ConnectorError::with_error_metadata(
                "message was not delivered in time",
            )),
        }
    }

    fn send_timeout(&self) -> Duration {
        self.properties.max_block + self.properties.delivery_timeout
    }

    async fn deliver(
        &self,
        topic: &str,
        key: Option<&str>,
        body: &str,
        metadata: &[(String, String)],
    ) -> Result<(i32, i64), KafkaFailure> {
        let record = self.record(key, body, metadata);
        let size = record.approximate_size() + OVERHEAD;
        let limit = self
            .properties
            .max_request_size
            .min(self.properties.buffer_memory);
        if size > limit {
            return Err(KafkaFailure {
                fault: ConnectorFault::Message,
                message: format!("message has {size} bytes, more than the {limit} allowed"),
            });
        }
        let permits = u32::try_from(size).unwrap_or(u32::MAX);
        let memory = Arc::clone(&self.memory).acquire_many_owned(permits);
        let permit = timeout(self.properties.max_block, memory)
            .await
            .map_err(|_| "no room in the buffer in time".to_owned())?
            .map_err(|_| "client is closed".to_owned())?;
        let found = timeout(self.properties.max_block, self.topic(topic))
            .await
            .map_err(|_| format!("topic {topic} was not found in time"))??;
        let index = found
            .partitioner
            .choose(key, size, self.properties.batch_size, found.workers.len());
        let (partition, worker) = found
            .workers
            .get(index)
            .ok_or_else(|| format!("topic {topic} has no partitions"))?;
        let (reply, answer) = oneshot::channel();
        let entry = QueuedKafkaRecord {
            record,
            size,
            permit,
            reply,
        };
        worker
            .send(entry)
            .await
            .map_err(|_| "client is closed".to_owned())?;
        let offset = answer.await.map_err(|_| "client is closed".to_owned())??;
        Ok((*partition, offset))
    }

    fn record(&self, key: Option<&str>, body: &str, metadata: &[(String, String)]) -> Record {
        let headers = match self.headers {
            Some(charset) => metadata
                .iter()
                .map(|(key, value)| (format!("{HEADER_PREFIX}{key}"), charset.encode(value)))
                .collect(),
            None => std::collections::BTreeMap::new(),
        };
        Record {
            key: key.map(|key| key.as_bytes().to_vec()),
            value: Some(body.as_bytes().to_vec()),
            headers,
            timestamp: chrono::Utc::now(),
        }
    }

    fn cached_topic(&self, name: &str) -> Option<Arc<TopicWorkers>> {
        let topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        topics
            .get(name)
            .filter(|topic| topic.known_since.elapsed() < TOPIC_LIFETIME)
            .cloned()
    }

    async fn topic(&self, name: &str) -> Result<Arc<TopicWorkers>, KafkaFailure> {
        if let Some(topic) = self.cached_topic(name) {
            return Ok(topic);
        }
        // Who holds the link looks for all who wait.
        let mut link = self.connection.lock().await;
        if let Some(topic) = self.cached_topic(name) {
            return Ok(topic);
        }
        let client = self.client(&mut link).await?;
        if let Some((until, reason)) = link.missing.get(name)
            && Instant::now() < *until
        {
            return Err(reason.clone());
        }
        let partitions = match self.partitions(&client, name).await {
            Ok(partitions) => partitions,
            Err(error) => {
                link.missing.retain(|_, (until, _)| Instant::now() < *until);
                if link.missing.len() < MAX_TOPICS {
                    let until = Instant::now() + MISSING_LIFETIME;
                    link.missing.insert(name.to_owned(), (until, error.clone()));
                }
                return Err(error);
            }
        };
        let before = self
            .topics
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .cloned();
        let topic = Arc::new(self.start(
            (&client, link.relay.as_ref()),
            name,
            partitions,
            before.as_deref(),
        ));
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        if topics.len() >= MAX_TOPICS {
            let oldest = topics.iter().min_by_key(|(_, topic)| topic.known_since);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                topics.remove(&oldest);
            }
        }
        topics.insert(name.to_owned(), Arc::clone(&topic));
        Ok(topic)
    }

    async fn client(&self, link: &mut KafkaConnection) -> Result<Arc<Client>, String> {
        if let Some(client) = &link.client {
            return Ok(Arc::clone(client));
        }
        if let Some((until, reason)) = &link.failed
            && Instant::now() < *until
        {
            return Err(format!("not connected: {reason}"));
        }
        let built = match timeout(self.properties.request_timeout, self.build(link)).await {
            Ok(result) => result,
            Err(_) => Err(with_reason("no connection in time", link.relay.as_deref())),
        };
        match built {
            Ok(client) => {
                link.backoff.reset();
                link.failed = None;
                Ok(Arc::clone(link.client.insert(Arc::new(client))))
            }
            Err(error) => {
                link.failed = Some((Instant::now() + link.backoff.pause(), error.clone()));
                Err(format!("not connected: {error}"))
            }
        }
    }

    async fn build(&self, link: &mut KafkaConnection) -> Result<Client, String> {
        let mut builder = ClientBuilder::new(self.brokers.clone())
            .client_id(self.client_id.as_str())
            .backoff_config(BackoffConfig {
                init_backoff: Duration::from_millis(100),
                max_backoff: Duration::from_secs(10),
                base: 2.0,
                deadline: Some(self.request_deadline()),
            });
        if let Some(tls) = &self.tls {
            builder = builder.tls_config(Arc::clone(tls));
        }
        if let Some(sasl) = self.properties.sasl() {
            builder = builder.sasl_config(sasl);
        }
        if !self.egress.is_open() {
            self.check_brokers().await?;
            let relay = SocksRelay::open(self.egress.clone()).await;
            let relay = Arc::new(relay.map_err(|error| error.to_string())?);
            builder = builder.socks5_proxy(relay.address());
            link.relay = Some(relay);
        }
        builder
            .build()
            .await
            .map_err(|error| with_reason(&error.to_string(), link.relay.as_deref()))
    }

    /// Fails at once where none of the brokers may be reached; the library would try for as long as it may.
    async fn check_brokers(&self) -> Result<(), String> {
        let mut refused = None;
        for broker in &self.brokers {
            let (host, port) = broker.rsplit_once(':').unwrap_or((broker, ""));
            // The library takes what stands before the first colon for the host.
            if host.contains(':') {
                return Err(format!("'{broker}' is an IPv6 address, which needs a name here"));
            }
            match self
                .egress
                .addresses(host, port.parse().unwrap_or_default())
                .await
            {
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => refused = Some(error),
                _ => return Ok(()),
            }
        }
        refused.map_or(Ok(()), |error| Err(error.to_string()))
    }

    /// How long a request is tried.
    fn request_deadline(&self) -> Duration {
        if self.properties.retries == 0 {
            self.properties.request_timeout
        } else {
            self.properties.delivery_timeout
        }
    }

    /// Finds the partitions of a topic; where the cluster makes topics by itself, it does so here.
    async fn partitions(&self, client: &Client, name: &str) -> Result<Vec<i32>, KafkaFailure> {
        if let Some(partitions) = list_partitions(client, name).await? {
            return Ok(partitions);
        }
        let deadline = Instant::now() + CREATION_TIMEOUT;
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
        loop {
            // Asking for the topic makes it, but it takes a while until all of it is there.
            let asked = client
                .partition_client(name, 0, UnknownTopicHandling::Error)
                .await;
            if let Err(error) = asked {
                let pause = backoff.pause();
                if Instant::now() + pause > deadline {
                    return Err(KafkaFailure {
                        fault: match &error {
                            KafkaError::ServerError {
                                protocol_error: ProtocolError::UnknownTopicOrPartition,
                                ..
                            } => ConnectorFault::Destination,
                            _ => ConnectorFault::Service,
                        },
                        message: format!("topic {name}: {error}"),
                    });
                }
                sleep(pause).await;
            } else if let Some(partitions) = list_partitions(client, name).await? {
                return Ok(partitions);
            }
        }
    }

    /// Starts a worker for each partition that has none yet; one worker keeps the order of its messages.
    fn start(
        &self,
        (client, relay): (&Arc<Client>, Option<&Arc<SocksRelay>>),
        name: &str,
        partitions: Vec<i32>,
        before: Option<&TopicWorkers>,
    ) -> TopicWorkers {
        let workers = partitions.into_iter().map(|partition| {
            let running = before.and_then(|topic| topic.workers.iter().find(|(id, _)| *id == partition));
            if let Some((_, sender)) = running {
                return (partition, sender.clone());
            }
            let (sender, queue) = mpsc::channel(MAX_QUEUED);
            let worker = PartitionSender {
                client: Arc::clone(client),
                relay: relay.cloned(),
                topic: name.to_owned(),
                partition,
                batch_size: self.properties.batch_size.min(self.properties.max_request_size),
                linger: self.properties.linger,
                timeout: self.request_deadline(),
                compression: self.properties.compression,
                queue,
            };
            tokio::spawn(worker.run());
            (partition, sender)
        });
        TopicWorkers {
            partitioner: Partitioner::default(),
            workers: workers.collect(),
            known_since: Instant::now(),
        }
    }
}

/// An error with what the relay knows of it.
pub(super) fn with_reason(error: &str, relay: Option<&SocksRelay>) -> String {
    match relay.and_then(SocksRelay::failure) {
        Some(reason) => format!("{error}: {reason}"),
        None => error.to_owned(),
    }
}

async fn list_partitions(client: &Client, name: &str) -> Result<Option<Vec<i32>>, String> {
    let topics = client.list_topics().await.map_err(|error| error.to_string())?;
    Ok(topics
        .into_iter()
        .find(|topic| topic.name == name && !topic.partitions.is_empty())
        .map(|topic| topic.partitions.into_iter().collect()))
}
