//! The side of the client that rule nodes see.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::config::MqttConfig;
use super::connection::BrokerConnection;
use super::endpoint::MqttEndpoint;
use crate::config::ConnectorConfigError;
use crate::egress::Egress;
use crate::outcome::{ConnectorError, ConnectorOutcome};
use crate::rest::plain_text;

/// How many messages may wait for the connection.
const MAX_QUEUED: usize = 1000;
/// How long the broker may take to acknowledge a message, beyond the time to connect.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(35);

/// A message on its way to the connection.
#[derive(Debug)]
pub(super) struct PublishJob {
    pub(super) topic: String,
    pub(super) payload: Vec<u8>,
    pub(super) retain: bool,
    reply: Mutex<Option<oneshot::Sender<Result<(), String>>>>,
}

impl PublishJob {
    /// Tells how it went to whoever waits; only the first call counts.
    pub(super) fn finish(&self, result: Result<(), String>) {
        if let Some(reply) = self.reply.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Whoever waited may have given up.
            let _ = reply.send(result);
        }
    }

    /// Whether nobody waits for it any more.
    pub(super) fn is_abandoned(&self) -> bool {
        let reply = self.reply.lock().unwrap_or_else(PoisonError::into_inner);
        reply.as_ref().is_none_or(oneshot::Sender::is_closed)
    }
}

/// Publishes with QoS 1 over one connection, which is kept up in the background.
#[derive(Debug)]
pub struct MqttClient {
    jobs: mpsc::Sender<Arc<PublishJob>>,
    broker: String,
    retain: bool,
    plain_text: bool,
    send_timeout: Duration,
}

impl MqttClient {
    /// Makes a client and begins to connect. `service_id` names this node of the platform; it becomes the suffix of
    /// the client identifier where the configuration asks for one.
    pub fn open(
        config: &MqttConfig,
        service_id: &str,
        egress: &Egress,
    ) -> Result<Self, ConnectorConfigError> {
        let link = config.endpoint(service_id, egress)?;
        Ok(Self::from_endpoint(
            link,
            config.retained_message,
            config.parse_to_plain_text,
        ))
    }

    pub(crate) fn from_endpoint(link: MqttEndpoint, retain: bool, plain_text: bool) -> Self {
        let (jobs, queue) = mpsc::channel(MAX_QUEUED);
        let broker = link.dialer.broker();
        let patience = link.dialer.connect_timeout + ACKNOWLEDGE_TIMEOUT;
        tokio::spawn(BrokerConnection::new(Arc::new(link), queue).run());
        Self {
            jobs,
            broker,
            retain,
            plain_text,
            send_timeout: patience,
        }
    }

    /// Publishes a message and waits until the broker has acknowledged it.
    ///
    /// While the broker cannot be reached, messages fail at once; while the connection is coming about, they wait.
    pub async fn send(&self, topic: &str, body: &str) -> Result<ConnectorOutcome, ConnectorError> {
        if !fieldline_codec::topic::is_valid_name(topic) {
            return Err(ConnectorError::with_error_metadata(format!(
                "'{topic}' is not a topic to publish to"
            )));
        }
        let payload = if self.plain_text {
            plain_text(body)
        } else {
            body.to_owned()
        };
        let (reply, answer) = oneshot::channel();
        let job = Arc::new(PublishJob {
            topic: topic.to_owned(),
            payload: payload.into_bytes(),
            retain: self.retain,
            reply: Mutex::new(Some(reply)),
        });
        let delivery = async {
            self.jobs
                .send(job)
                .await
                .map_err(|_| "client is closed".to_owned())?;
            answer
                .await
                .unwrap_or_else(|_| Err("connection was lost before the message was acknowledged".to_owned()))
        };
        match tokio::time::timeout(self.send_timeout, delivery).await {
            Ok(Ok(())) => Ok(ConnectorOutcome::default()),
            Ok(Err(error)) => Err(ConnectorError::with_error_metadata(format!(
                "MQTT broker at {}: {error}",
                self.broker
            ))),
            Err(_) => Err(ConnectorError::with_error_metadata(format!(
                "MQTT broker at {}: message was not acknowledged in time",
                self.broker
            ))),
        }
    }
}
