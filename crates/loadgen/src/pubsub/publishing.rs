//! What publishers send, and when.

use std::time::Duration;

use fieldline_codec::QoS;

use super::client::{ClientRole, UnacknowledgedMessage};
use super::config::{PubSubConfig, PubSubMode};
use super::engine::{PubSubEngine, RunPhase};
use super::message::{MessageStamp, UNCOUNTED};
use super::packets;
use crate::engine::{micros, now_ms, packet_id};

/// Bytes that a publisher writes at once, about.
const MOST_OUTPUT: usize = 256 << 10;

impl PubSubEngine<'_> {
    /// Begins to publish.
    pub(super) fn begin(&mut self) {
        self.phase = RunPhase::Publishing;
        self.began = self.epoch.elapsed();
        if self.is_closed_loop() {
            for index in self.publishers.clone() {
                self.fill(index);
            }
        }
    }

    /// Messages that were not acknowledged yet.
    pub(super) fn unacknowledged(&self) -> u64 {
        let publishers = self.clients.get(self.publishers.clone()).unwrap_or_default();
        publishers
            .iter()
            .map(|client| client.in_flight.len() as u64)
            .sum()
    }

    /// Whether each publisher has published all that it is to publish.
    pub(super) fn has_published_all(&self) -> bool {
        let PubSubMode::Retained(each) = self.config.mode else {
            return false;
        };
        let publishers = self.clients.get(self.publishers.clone()).unwrap_or_default();
        publishers.iter().all(|client| client.next_number >= each)
    }

    /// Whether messages are sent as fast as they are acknowledged.
    pub(super) fn is_closed_loop(&self) -> bool {
        self.settings.in_flight.is_some() || matches!(self.config.mode, PubSubMode::Retained(_))
    }

    /// Begins to send so many messages of each publisher that are not counted.
    pub(super) fn begin_warm_up(&mut self, each: u32) {
        self.phase = RunPhase::WarmingUp;
        for index in self.publishers.clone() {
            if let Some(client) = self.clients.get_mut(index) {
                client.uncounted = each;
            }
            self.fill(index);
        }
    }

    /// Whether each publisher has sent what is not counted.
    pub(super) fn is_warm(&self) -> bool {
        let publishers = self.clients.get(self.publishers.clone()).unwrap_or_default();
        publishers.iter().all(|client| client.uncounted == 0)
    }

    /// Begins to clear what the publishers' topics retain. The last message of each is acknowledged, and with it those
    /// before it.
    pub(super) fn begin_to_clear_retained(&mut self, each: u32) {
        self.phase = RunPhase::CleaningUp;
        let version = self.settings.version;
        for index in self.publishers.clone() {
            self.output.clear();
            let Some(client) = self.clients.get_mut(index) else {
                continue;
            };
            let packet = client.take_packet();
            for number in 0..each {
                let topic = retained_topic(&client.topic, number);
                let qos = match number + 1 == each {
                    true => QoS::AtLeastOnce,
                    false => QoS::AtMostOnce,
                };
                // The same topic was encoded before.
                let _ = packets::put_publish(
                    &topic,
                    b"",
                    qos,
                    packet_id(packet),
                    true,
                    version,
                    &mut self.output,
                );
            }
            client.in_flight.push_back(UnacknowledgedMessage {
                packet,
                number: UNCOUNTED,
                due_us: 0,
            });
            if let Err(reason) = client.write(&self.output) {
                self.handle_loss(index, &reason);
            }
        }
    }

    /// A message is acknowledged, or with QoS 0 written.
    pub(super) fn count_acknowledged(&mut self, publisher: u32, message: &UnacknowledgedMessage) {
        if message.number == UNCOUNTED {
            return;
        }
        self.counts.acknowledged += 1;
        let now = micros(self.epoch.elapsed());
        self.acknowledgement.record(now.saturating_sub(message.due_us));
        if let Some(set) = self.acknowledged.get_mut(publisher as usize) {
            set.insert(message.number);
        }
    }

    /// With QoS 0, messages count as acknowledged once the system has accepted all of them.
    pub(super) fn count_written(&mut self, index: usize) {
        let Some(client) = self.clients.get_mut(index) else {
            return;
        };
        let ClientRole::Publisher(publisher) = client.role else {
            return;
        };
        let is_unanswered = self.config.qos().0 == QoS::AtMostOnce && self.phase != RunPhase::CleaningUp;
        if !is_unanswered || client.has_unwritten() || client.in_flight.is_empty() {
            return;
        }
        let written = std::mem::take(&mut client.in_flight);
        for message in &written {
            self.count_acknowledged(publisher, message);
        }
    }

    /// Sends what a publisher has to send and has room for, in one write.
    pub(super) fn fill(&mut self, index: usize) {
        if !matches!(self.phase, RunPhase::Publishing | RunPhase::WarmingUp) {
            return;
        }
        self.output.clear();
        let filled = self.encode_due(index);
        let Some(client) = self.clients.get_mut(index) else {
            return;
        };
        let result = filled.and_then(|()| match self.output.is_empty() {
            true => Ok(()),
            false => client.write(&self.output),
        });
        if let Err(reason) = result {
            self.handle_loss(index, &reason);
            return;
        }
        // What one write was too short for, and in closed loop without answers the next messages.
        let is_unanswered = self.config.qos().0 == QoS::AtMostOnce && self.is_closed_loop();
        let has_more = self.output.len() >= MOST_OUTPUT || is_unanswered && !self.output.is_empty();
        if let Some(client) = self.clients.get_mut(index)
            && has_more
            && !client.is_queued
        {
            client.is_queued = true;
            self.turns.push_back(index);
        }
        self.count_written(index);
    }

    /// Encodes what a publisher has to send and has room for.
    fn encode_due(&mut self, index: usize) -> Result<(), String> {
        let qos = self.config.qos().0;
        let is_warming_up = self.phase == RunPhase::WarmingUp;
        let (each, is_retained) = match self.config.mode {
            PubSubMode::Retained(each) => (each, true),
            PubSubMode::Live | PubSubMode::Offline => (UNCOUNTED - 1, false),
        };
        let is_closed_loop = self.is_closed_loop();
        let now = self.epoch.elapsed();
        let burst = self.settings.in_flight.map_or(usize::MAX, usize::from);
        let Some(client) = self.clients.get_mut(index) else {
            return Ok(());
        };
        let ClientRole::Publisher(publisher) = client.role else {
            return Ok(());
        };
        while client.has_room(qos) && client.in_flight.len() < burst && self.output.len() < MOST_OUTPUT {
            let is_due = match is_warming_up {
                true => client.uncounted > 0,
                false => client.next_number < each && (is_closed_loop || client.owed > 0),
            };
            if !is_due {
                break;
            }
            let (number, due_us) = if is_warming_up {
                client.uncounted -= 1;
                (UNCOUNTED, 0)
            } else {
                let number = client.next_number;
                client.next_number += 1;
                self.counts.sent += 1;
                if is_closed_loop {
                    (number, micros(now))
                } else {
                    client.owed -= 1;
                    (
                        number,
                        micros(self.began) + due_us(self.config, publisher, number),
                    )
                }
            };
            let stamp = MessageStamp {
                run: self.run,
                publisher,
                number,
                due_us,
            };
            let message = self.template.write(now_ms(), &stamp);
            let packet = client.take_packet();
            let is_retained = is_retained && !is_warming_up;
            let topic = match is_retained {
                true => &retained_topic(&client.topic, number),
                false => &client.topic,
            };
            let version = self.settings.version;
            packets::put_publish(
                topic,
                message,
                qos,
                packet_id(packet),
                is_retained,
                version,
                &mut self.output,
            )?;
            client.in_flight.push_back(UnacknowledgedMessage {
                packet,
                number,
                due_us,
            });
        }
        Ok(())
    }

    /// Tells publishers of messages that are due; returns the time until the next one is.
    pub(super) fn schedule(&mut self) -> Duration {
        let publishers = self.publishers.len() as u64;
        if self.is_closed_loop() || publishers == 0 {
            return Duration::MAX;
        }
        let rate = self.config.rate * publishers as f64;
        let all = (self.config.seconds_to_run * rate).ceil() as u64;
        let elapsed = self.epoch.elapsed().saturating_sub(self.began);
        let due = ((elapsed.as_secs_f64() * rate) as u64 + 1).min(all);
        while self.scheduled < due {
            let index = self.publishers.start + (self.scheduled % publishers) as usize;
            self.scheduled += 1;
            if let Some(client) = self.clients.get_mut(index) {
                client.owed += 1;
            }
            self.fill(index);
        }
        if self.scheduled >= all {
            return Duration::MAX;
        }
        Duration::try_from_secs_f64(self.scheduled as f64 / rate)
            .unwrap_or(Duration::MAX)
            .saturating_sub(self.epoch.elapsed().saturating_sub(self.began))
    }

    /// Messages that were due and never sent.
    pub(super) fn unsent(&self) -> u64 {
        let publishers = self.clients.get(self.publishers.clone()).unwrap_or_default();
        publishers.iter().map(|client| u64::from(client.owed)).sum()
    }
}

/// When a message is due, microseconds since the load began: publishers take turns.
fn due_us(config: &PubSubConfig, publisher: u32, number: u32) -> u64 {
    let publishers = config.publishers() as f64;
    let place = f64::from(number) * publishers + f64::from(publisher);
    (place / (publishers * config.rate) * 1e6) as u64
}

/// The topic of a message that is retained.
fn retained_topic(topic: &str, number: u32) -> String {
    format!("{topic}/{number}")
}
