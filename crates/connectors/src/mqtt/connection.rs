//! The task that owns the connection to a broker.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use fieldline_codec::session::{ClientEvent, ClientSession, Redelivery, SessionLimits};
use fieldline_codec::{ConnectPacket, PublishPacket, QoS, ReasonCode, decode_frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::client::PublishJob;
use super::endpoint::{BrokerStream, MqttEndpoint};
use crate::backoff::Backoff;

const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long the broker may take none of what is written to it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
const KEEP_ALIVE_SECS: u16 = 60;
/// So much is gathered before it is written.
const WRITE_BATCH: usize = 64 * 1024;

/// Why a connection ended.
enum BrokerDisconnect {
    /// Nobody holds the client any more.
    Closed,
    Lost(String),
}

impl From<io::Error> for BrokerDisconnect {
    fn from(error: io::Error) -> Self {
        Self::Lost(error.to_string())
    }
}

pub(super) struct BrokerConnection {
    endpoint: Arc<MqttEndpoint>,
    queue: mpsc::Receiver<Arc<PublishJob>>,
    session: ClientSession<Arc<PublishJob>>,
    started: Instant,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl BrokerConnection {
    pub(super) fn new(link: Arc<MqttEndpoint>, queue: mpsc::Receiver<Arc<PublishJob>>) -> Self {
        let session = ClientSession::new(link.version, SessionLimits::default());
        Self {
            endpoint: link,
            queue,
            session,
            started: Instant::now(),
            input: Vec::new(),
            output: Vec::new(),
        }
    }

    /// Keeps the connection up until the client is dropped.
    ///
    /// What is in flight when a connection is lost is sent again on the next one, and fails with the first attempt
    /// that brings none.
    pub(super) async fn run(mut self) {
        let mut refused = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut short_lived = Backoff::new(SHORTEST_PAUSE, LONGEST_PAUSE);
        let link = Arc::clone(&self.endpoint);
        loop {
            let failure = match timeout(link.dialer.connect_timeout, self.connect(&link)).await {
                Ok(Ok(stream)) => {
                    refused.reset();
                    let since = Instant::now();
                    match self.serve(stream).await {
                        BrokerDisconnect::Closed => return,
                        BrokerDisconnect::Lost(reason) => {
                            tracing::debug!(broker = link.dialer.broker(), reason, "lost MQTT broker");
                        }
                    }
                    if since.elapsed() >= FIRST_PAUSE {
                        short_lived.reset();
                    } else {
                        sleep(short_lived.pause()).await;
                    }
                    continue;
                }
                Ok(Err(error)) => error,
                Err(_) => "no connection in time".to_owned(),
            };
            tracing::debug!(
                broker = link.dialer.broker(),
                reason = failure,
                "no connection to MQTT broker"
            );
            if !self.pause(refused.pause(), &failure).await {
                return;
            }
        }
    }

    /// Fails what is in flight and what comes, for as long as the pause takes. `false` if the client is gone.
    async fn pause(&mut self, pause: Duration, failure: &str) -> bool {
        drop(self.session.take_state());
        let end = Instant::now() + pause;
        loop {
            tokio::select! {
                () = sleep_until(end) => return true,
                job = self.queue.recv() => match job {
                    Some(job) => job.finish(Err(format!("not connected: {failure}"))),
                    None => return false,
                },
            }
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    async fn connect(&mut self, link: &MqttEndpoint) -> Result<Box<dyn BrokerStream>, String> {
        self.input.clear();
        self.output.clear();
        let mut stream = link.dialer.dial().await.map_err(|error| error.to_string())?;
        let password = link.secret()?;
        let connect = ConnectPacket {
            clean_start: link.clean_session,
            keep_alive: KEEP_ALIVE_SECS,
            username: link.username.as_deref(),
            password: password.as_ref().map(|password| password.expose().as_bytes()),
            ..ConnectPacket::new(link.version, &link.client_id)
        };
        let now = self.now_ms();
        self.session
            .connect(&connect, now, &mut self.output)
            .map_err(|error| error.to_string())?;
        stream
            .write_all(&self.output)
            .await
            .map_err(|error| error.to_string())?;
        self.output.clear();
        while !self.session.is_connected() {
            let read = stream
                .read_buf(&mut self.input)
                .await
                .map_err(|error| error.to_string())?;
            if read == 0 {
                return Err("connection was closed instead of CONNACK".to_owned());
            }
            self.take_input().map_err(|end| match end {
                BrokerDisconnect::Lost(reason) => reason,
                BrokerDisconnect::Closed => "closed".to_owned(),
            })?;
        }
        Ok(stream)
    }

    /// Takes the packets that have come, and writes what answers them.
    fn take_input(&mut self) -> Result<(), BrokerDisconnect> {
        let mut used = 0;
        loop {
            let rest = self.input.get(used..).unwrap_or_default();
            let frame = decode_frame(rest, self.session.max_packet_size(), self.session.version())
                .map_err(|error| BrokerDisconnect::Lost(format!("broker sent no MQTT: {error}")))?;
            let Some((packet, length)) = frame else { break };
            let event = self.session.receive(&packet, &mut self.output);
            let answer = match event.map_err(|error| BrokerDisconnect::Lost(error.to_string()))? {
                ClientEvent::Refused(connack) => {
                    return Err(BrokerDisconnect::Lost(format!(
                        "connection refused: {}",
                        connack.code.name()
                    )));
                }
                ClientEvent::Disconnect(disconnect) => {
                    return Err(BrokerDisconnect::Lost(format!(
                        "broker disconnected: {}",
                        disconnect.code.name()
                    )));
                }
                ClientEvent::Acknowledged { code, message, .. } => {
                    let result = if code.is_error() {
                        Err(code.name().to_owned())
                    } else {
                        Ok(())
                    };
                    message.finish(result);
                    None
                }
                // An old session may have subscriptions; what they bring is taken and forgotten.
                ClientEvent::Publish(publish) | ClientEvent::PublishAgain(publish) => {
                    publish.packet_id.map(|id| (id, publish.qos))
                }
                _ => None,
            };
            let answered = match answer {
                Some((id, QoS::AtLeastOnce)) => {
                    self.session.puback(id, ReasonCode::Success, &mut self.output)
                }
                Some((id, _)) => self.session.pubrec(id, ReasonCode::Success, &mut self.output),
                None => Ok(()),
            };
            answered.map_err(|error| BrokerDisconnect::Lost(error.to_string()))?;
            used += length;
        }
        self.input.drain(..used);
        self.redeliver()
    }

    /// Sends again what was in flight on an earlier connection.
    fn redeliver(&mut self) -> Result<(), BrokerDisconnect> {
        let version = self.session.version();
        while let Some(redelivery) = self.session.next_redelivery(&mut self.output) {
            if let Redelivery::Publish {
                packet_id,
                qos,
                dup,
                message,
            } = redelivery
            {
                let publish = PublishPacket {
                    dup,
                    qos,
                    retain: message.retain,
                    packet_id: Some(packet_id),
                    ..PublishPacket::new(&message.topic, &message.payload)
                };
                publish
                    .encode(version, &mut self.output)
                    .map_err(|error| BrokerDisconnect::Lost(error.to_string()))?;
            }
        }
        Ok(())
    }

    async fn serve(&mut self, stream: Box<dyn BrokerStream>) -> BrokerDisconnect {
        let (mut reader, mut writer) = tokio::io::split(stream);
        loop {
            if !self.output.is_empty() {
                match timeout(WRITE_TIMEOUT, writer.write_all(&self.output)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => return error.into(),
                    Err(_) => return BrokerDisconnect::Lost("broker takes nothing".to_owned()),
                }
                self.output.clear();
                let now = self.now_ms();
                self.session.mark_sent(now);
            }
            let due = self.session.keep_alive_due_ms().unwrap_or(u64::MAX / 4);
            let step = tokio::select! {
                read = reader.read_buf(&mut self.input) => match read {
                    Ok(0) => Err(BrokerDisconnect::Lost("broker closed the connection".to_owned())),
                    Ok(_) => self.take_input(),
                    Err(error) => Err(error.into()),
                },
                job = self.queue.recv(), if self.session.can_send() => match job {
                    Some(job) => {
                        self.publish(job);
                        self.publish_waiting();
                        Ok(())
                    }
                    None => {
                        self.session.disconnect(ReasonCode::Success, &mut self.output);
                        let _ = timeout(WRITE_TIMEOUT, writer.write_all(&self.output)).await;
                        let _ = writer.shutdown().await;
                        Err(BrokerDisconnect::Closed)
                    }
                },
                () = sleep_until(self.started + Duration::from_millis(due)) => {
                    let now = self.now_ms();
                    self.session
                        .poll_keep_alive(now, &mut self.output)
                        .map_err(|error| BrokerDisconnect::Lost(error.to_string()))
                }
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    /// Takes more of what waits, so that it goes out in one write.
    fn publish_waiting(&mut self) {
        while self.session.can_send() && self.output.len() < WRITE_BATCH {
            let Ok(job) = self.queue.try_recv() else { return };
            self.publish(job);
        }
    }

    fn publish(&mut self, job: Arc<PublishJob>) {
        // Whoever has given up does not want it sent.
        if job.is_abandoned() {
            return;
        }
        let publish = PublishPacket {
            qos: QoS::AtLeastOnce,
            retain: job.retain,
            ..PublishPacket::new(&job.topic, &job.payload)
        };
        if let Err(error) = self.session.publish(&publish, Arc::clone(&job), &mut self.output) {
            job.finish(Err(error.to_string()));
        }
    }
}
