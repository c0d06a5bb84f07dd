//! What happens on the connections: opening, reading, writing, and their end.

use std::io::ErrorKind;

use fieldline_codec::QoS;
use mio::{Interest, Token};

use super::client::{Client, Stage};
use super::link::Link;
use super::mqtt::TELEMETRY;
use super::plan::{Pace, Protocol};
use super::{Engine, Heard, http, micros, mqtt};
use crate::error::LoadError;

/// Answers longer than this are not kept until they are whole.
const MAX_ANSWER: usize = 1 << 20;

impl Engine {
    pub(super) fn open(&mut self, index: usize) -> Result<(), LoadError> {
        let Some(client) = self.clients.get_mut(index) else {
            return Ok(());
        };
        let tls = match &self.plan.protocol {
            Protocol::Mqtt { tls, .. } => tls.as_ref(),
            Protocol::Http { .. } => None,
        };
        let mut link = Link::open(self.plan.target, index, tls)
            .map_err(|error| LoadError::Engine(format!("connection {index}: {error}")))?;
        self.poll
            .registry()
            .register(
                link.socket(),
                Token(index),
                Interest::READABLE | Interest::WRITABLE,
            )
            .map_err(|error| LoadError::Engine(format!("epoll: {error}")))?;
        client.link = Some(link);
        client.stage = Stage::Opening;
        Ok(())
    }

    pub(super) fn handle(&mut self, index: usize, writable: bool, readable: bool, ended: bool) {
        let result = self.advance(index, writable, readable, ended);
        if let Err(end) = result {
            self.lose(index, &end);
        }
    }

    /// Follows what an event says of a connection; the error says why it ended.
    fn advance(&mut self, index: usize, writable: bool, readable: bool, ended: bool) -> Result<(), String> {
        let Some(client) = self.clients.get_mut(index) else {
            return Ok(());
        };
        if client.stage == Stage::Opening && writable {
            let Some(link) = client.link.as_mut() else {
                return Ok(());
            };
            if let Ok(Some(error)) | Err(error) = link.socket().take_error() {
                return Err(error.to_string());
            }
            client.stage = Stage::Greeting;
            match &self.plan.protocol {
                Protocol::Mqtt { .. } => {
                    let token = self.plan.tokens.get(index).map_or("", String::as_str);
                    mqtt::put_connect(token, self.plan.keep_alive(), &mut client.out)
                        .map_err(|error| error.to_string())?;
                }
                Protocol::Http { .. } => {
                    client.stage = Stage::Ready;
                    self.world.connected += 1;
                    self.next_request(index);
                }
            }
        }
        if writable {
            let client = self.clients.get_mut(index).ok_or_else(String::new)?;
            flush(client)?;
        }
        if readable || ended {
            self.read(index, ended)?;
        }
        if self.clients.get(index).is_some_and(|client| client.owed > 0) {
            self.fill(index);
        }
        Ok(())
    }

    fn read(&mut self, index: usize, ended: bool) -> Result<(), String> {
        let mut input = std::mem::take(&mut self.world.input);
        let result = self.read_into(index, &mut input, ended);
        self.world.input = input;
        result
    }

    fn read_into(&mut self, index: usize, input: &mut [u8], ended: bool) -> Result<(), String> {
        loop {
            let Some(client) = self.clients.get_mut(index) else {
                return Ok(());
            };
            let Some(link) = client.link.as_mut() else {
                return Ok(());
            };
            let more = ended || link.may_hold_more();
            let read = match link.read(input) {
                Ok(0) => return Err("the server closed the connection".to_owned()),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return flush(client),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.to_string()),
            };
            let full = read == input.len();
            self.hear(index, input.get(..read).unwrap_or_default())?;
            if !full && !more {
                return Ok(());
            }
        }
    }

    /// Handles what the server sent on a connection, and sends what it makes room for.
    fn hear(&mut self, index: usize, input: &[u8]) -> Result<(), String> {
        let Some(client) = self.clients.get_mut(index) else {
            return Ok(());
        };
        let mut joined = std::mem::take(&mut client.rest);
        let whole = if joined.is_empty() {
            input
        } else {
            joined.extend_from_slice(input);
            joined.as_slice()
        };
        let mut used = 0;
        match &self.plan.protocol {
            Protocol::Mqtt { .. } => {
                let now = micros(self.world.started.elapsed());
                let world = &mut self.world;
                let mut out = std::mem::take(&mut client.out);
                used = mqtt::hear(whole, &mut out, |heard, _| world.note(client, heard, now))
                    .map_err(|error| error.to_string())?;
                client.out = out;
            }
            Protocol::Http { .. } => {
                let now = micros(self.world.started.elapsed());
                let mut closes = false;
                loop {
                    let world = &mut self.world;
                    let taken = http::hear(whole.get(used..).unwrap_or_default(), |heard| {
                        closes |= matches!(heard, Heard::Answered { closes: true, .. });
                        world.note(client, heard, now)
                    })
                    .map_err(|error| error.to_string())?;
                    if taken == 0 {
                        break;
                    }
                    used += taken;
                }
                if closes {
                    return Err("the server closed the connection".to_owned());
                }
            }
        }
        let rest = whole.get(used..).unwrap_or_default();
        if rest.len() > MAX_ANSWER {
            return Err("an answer of the server is too long".to_owned());
        }
        if !rest.is_empty() {
            client.rest = rest.to_vec();
        }
        match self.plan.protocol {
            Protocol::Mqtt { .. } => self.fill(index),
            Protocol::Http { .. } if used > 0 => self.next_request(index),
            Protocol::Http { .. } => {}
        }
        Ok(())
    }

    /// Lets an HTTP connection without a request send the next one, or wait for its time.
    fn next_request(&mut self, index: usize) {
        if matches!(self.plan.pace, Pace::Closed { .. }) {
            self.fill(index);
        } else {
            self.world.idle.push(index as u32);
            // What is overdue is sent by the schedule, which runs before the next wait.
        }
    }

    /// Sends one message that belongs to no load.
    pub(super) fn send(&mut self, index: usize, qos: QoS, message: &[u8]) -> Result<(), LoadError> {
        let Some(client) = self.clients.get_mut(index) else {
            return Ok(());
        };
        if client.stage != Stage::Ready {
            return Ok(());
        }
        self.world.output.clear();
        let number = client.note_sent(micros(self.world.started.elapsed()));
        mqtt::put_message(TELEMETRY, qos, number, message, &mut self.world.output)?;
        let result = write(client, &self.world.output);
        if qos == QoS::AtMostOnce {
            client.note_answered();
        }
        if let Err(end) = result {
            self.lose(index, &end);
        }
        Ok(())
    }

    /// Sends what a connection owes and has room for, in one write.
    pub(super) fn fill(&mut self, index: usize) {
        let Some(client) = self.clients.get_mut(index) else {
            return;
        };
        let world = &mut self.world;
        if !world.sending {
            return;
        }
        let now = world.started.elapsed();
        world.output.clear();
        let first = client.sent;
        while client.has_room() {
            let mark = match self.plan.pace {
                Pace::Closed { .. } => micros(now),
                Pace::Open { per_second } => match world.due(client, &self.plan, per_second) {
                    Some(mark) => mark,
                    None => break,
                },
            };
            if let Err(error) = world.put_message(client, &self.plan, mark, now) {
                let reason = error.to_string();
                self.lose(index, &reason);
                return;
            }
        }
        let count = client.sent - first;
        if count == 0 {
            return;
        }
        world.totals.sent += count;
        let unacknowledged = matches!(
            &self.plan.protocol,
            Protocol::Mqtt {
                qos: QoS::AtMostOnce,
                ..
            }
        );
        if let Err(end) = write(client, &world.output) {
            self.lose(index, &end);
            return;
        }
        if unacknowledged {
            let done = micros(world.started.elapsed());
            while let Some(mark) = client.note_answered() {
                world.succeed(client.device, mark, done);
            }
        }
    }

    /// Ends a connection. Over HTTP it is opened again; a refused or lost one of MQTT is not.
    pub(super) fn lose(&mut self, index: usize, reason: &str) {
        let Some(client) = self.clients.get_mut(index) else {
            return;
        };
        if matches!(client.stage, Stage::Lost | Stage::Closed) {
            return;
        }
        let established = client.stage == Stage::Ready;
        let http = matches!(self.plan.protocol, Protocol::Http { .. });
        let failed = client.close(if http && established {
            Stage::Closed
        } else {
            Stage::Lost
        });
        let world = &mut self.world;
        world.totals.failed += failed;
        if established {
            world.connected = world.connected.saturating_sub(1);
            if http {
                world.idle.retain(|idle| *idle as usize != index);
                if let Err(error) = self.open(index) {
                    self.world.refuse(&error.to_string());
                }
            } else {
                world.refuse(reason);
            }
            if failed > 0 || !http {
                self.world.totals.lost += 1;
            }
        } else {
            world.refuse(reason);
        }
    }
}

/// Writes what the system takes, and keeps the rest.
fn write(client: &mut Client, bytes: &[u8]) -> Result<(), String> {
    let Some(link) = client.link.as_mut() else {
        return Ok(());
    };
    let mut written = 0;
    while written < bytes.len() {
        match link.write(bytes.get(written..).unwrap_or_default()) {
            Ok(count) => written += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                client
                    .out
                    .extend_from_slice(bytes.get(written..).unwrap_or_default());
                return Ok(());
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    match link.flush() {
        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// Writes what was kept.
fn flush(client: &mut Client) -> Result<(), String> {
    if client.out.is_empty() {
        return match client.link.as_mut().map(Link::flush) {
            Some(Err(error)) if error.kind() != ErrorKind::WouldBlock => Err(error.to_string()),
            _ => Ok(()),
        };
    }
    let bytes = std::mem::take(&mut client.out);
    write(client, &bytes)
}
