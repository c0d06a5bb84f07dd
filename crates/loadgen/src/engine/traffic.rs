//! Handles connections: opening, reading, writing, and closing.

use std::io::{self, ErrorKind};
use std::time::Duration;

use fieldline_codec::QoS;
use mio::{Interest, Token};

use super::client::ClientStage;
use super::mqtt::TELEMETRY;
use super::plan::{DeviceProtocol, LoadPace};
use super::run::REDIAL_AFTER;
use super::socket::ClientSocket;
use super::state::LoadPhase;
use super::{LoadEngine, http, micros, mqtt};
use crate::error::LoadError;

/// Longest incomplete reply that is kept, bytes.
const MAX_ANSWER: usize = 1 << 20;
const CLOSED: &str = "the server closed the connection";

impl LoadEngine {
    /// Begins to open a connection.
    pub(super) fn open(&mut self, index: usize) -> io::Result<()> {
        let Some(client) = self.clients.get_mut(index) else {
            return Ok(());
        };
        let tls = match &self.plan.protocol {
            DeviceProtocol::Mqtt { tls, .. } => tls.as_ref(),
            DeviceProtocol::Http { .. } => None,
        };
        let mut link = ClientSocket::open(self.plan.target, index, tls)?;
        let both = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(link.socket(), Token(index), both)?;
        client.socket = Some(link);
        client.stage = ClientStage::Opening;
        Ok(())
    }

    /// Handles an event of a connection.
    pub(super) fn handle(&mut self, index: usize, writable: bool, readable: bool, ended: bool) {
        if let Err(end) = self.advance(index, writable, readable, ended) {
            self.handle_loss(index, &end);
        }
    }

    /// Advances a connection. The error is the reason why it ended.
    fn advance(&mut self, index: usize, writable: bool, readable: bool, ended: bool) -> Result<(), String> {
        let Some(client) = self.clients.get_mut(index) else {
            return Ok(());
        };
        if client.stage == ClientStage::Opening {
            if !writable && !ended {
                return Ok(());
            }
            self.start_login(index)?;
        }
        let Some(client) = self.clients.get_mut(index) else {
            return Ok(());
        };
        if writable {
            client.flush()?;
        }
        if readable || ended || client.socket.as_ref().is_some_and(ClientSocket::is_tls) {
            self.read(index, ended)?;
        }
        self.take_turn(index);
        Ok(())
    }

    /// Starts the log-in of a connection, once TCP has opened it.
    fn start_login(&mut self, index: usize) -> Result<(), String> {
        let Some(client) = self.clients.get_mut(index) else {
            return Ok(());
        };
        if let Some(Ok(Some(error)) | Err(error)) =
            client.socket.as_mut().map(|link| link.socket().take_error())
        {
            return Err(error.to_string());
        }
        match &self.plan.protocol {
            DeviceProtocol::Mqtt { .. } => {
                client.stage = ClientStage::Greeting;
                let token = self.plan.tokens.get(index).map_or("", String::as_str);
                self.state.output.clear();
                mqtt::put_connect(token, self.plan.keep_alive(), &mut self.state.output)
                    .map_err(|error| error.to_string())?;
                client.write(&self.state.output)
            }
            DeviceProtocol::Http { .. } => {
                self.state.make_ready(client);
                Ok(())
            }
        }
    }

    fn read(&mut self, index: usize, ended: bool) -> Result<(), String> {
        let mut input = std::mem::take(&mut self.state.input);
        let result = self.read_into(index, &mut input, ended);
        self.state.input = input;
        result
    }

    fn read_into(&mut self, index: usize, input: &mut [u8], ended: bool) -> Result<(), String> {
        loop {
            let Some(client) = self.clients.get_mut(index) else {
                return Ok(());
            };
            // Handling the input may have closed it.
            let Some(link) = client.socket.as_mut() else {
                return Ok(());
            };
            // A short read has emptied the TCP socket, but not what TLS has buffered or what arrived with the end.
            let to_the_end = ended || link.is_tls();
            let read = match link.read(input) {
                Ok(0) => return Err(CLOSED.to_owned()),
                Ok(read) => read,
                // TLS may have to answer what it has read.
                Err(error) if error.kind() == ErrorKind::WouldBlock => return client.flush(),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.to_string()),
            };
            let emptied = read < input.len();
            self.handle_input(index, input.get(..read).unwrap_or_default())?;
            if emptied && !to_the_end {
                return Ok(());
            }
        }
    }

    /// Handles input from the server on a connection, and sends the messages that it makes room for.
    fn handle_input(&mut self, index: usize, input: &[u8]) -> Result<(), String> {
        let Some(client) = self.clients.get_mut(index) else {
            return Ok(());
        };
        let mut joined = std::mem::take(&mut client.partial_input);
        let whole = if joined.is_empty() {
            input
        } else {
            joined.extend_from_slice(input);
            joined.as_slice()
        };
        let now = micros(self.state.started.elapsed());
        let mut out = std::mem::take(&mut self.state.output);
        out.clear();
        let world = &mut self.state;
        let used = match &self.plan.protocol {
            DeviceProtocol::Mqtt { .. } => {
                mqtt::parse_packets(whole, &mut out, |heard| world.handle_reply(client, heard, now))
            }
            DeviceProtocol::Http { .. } => {
                http::parse_responses(whole, |heard| world.handle_reply(client, heard, now))
            }
        };
        self.state.output = out;
        let used = used.map_err(|error| error.to_string())?;
        let rest = whole.get(used..).unwrap_or_default();
        if rest.len() > MAX_ANSWER {
            return Err("an answer of the server is too long".to_owned());
        }
        if !rest.is_empty() {
            client.partial_input = rest.to_vec();
        }
        if matches!(self.plan.protocol, DeviceProtocol::Mqtt { .. }) {
            // The QoS 2 answers are sent with the next messages, in one write.
            self.fill_further(index);
        }
        Ok(())
    }

    /// Sends due messages of a connection, now or in its turn.
    pub(super) fn take_turn(&mut self, index: usize) {
        let waits = matches!(
            (self.plan.pace, &self.plan.protocol),
            (LoadPace::Open { .. }, DeviceProtocol::Http { .. })
        );
        if !waits {
            self.fill(index);
        } else if let Some(client) = self.clients.get_mut(index)
            && client.has_room()
        {
            // The schedule runs before the next wait, and sends overdue messages.
            self.state.queue(client, index);
        }
    }

    /// Sends one message outside of a load.
    pub(super) fn send(&mut self, index: usize, qos: QoS, message: &[u8]) -> Result<(), LoadError> {
        let Some(client) = self.clients.get_mut(index) else {
            return Ok(());
        };
        if !client.has_room() {
            return Ok(());
        }
        self.state.output.clear();
        let number = client.note_sent(micros(self.state.started.elapsed()));
        mqtt::put_message(TELEMETRY, qos, number, message, &mut self.state.output)?;
        match client.write(&self.state.output) {
            Ok(()) => self.count_flushed(index),
            Err(end) => self.handle_loss(index, &end),
        }
        Ok(())
    }

    /// Sends all due messages for which the connection has room, in one write.
    pub(super) fn fill(&mut self, index: usize) {
        self.state.output.clear();
        self.fill_further(index);
    }

    /// Sends the pending output and, in the same write, all due messages for which the connection has room.
    fn fill_further(&mut self, index: usize) {
        self.count_flushed(index);
        let Some(client) = self.clients.get_mut(index) else {
            return;
        };
        let world = &mut self.state;
        if client.stage == ClientStage::Closed {
            return;
        }
        let first = client.sent;
        if world.is_sending() && client.has_room() {
            let now = world.started.elapsed();
            while client.has_room() {
                let mark = match self.plan.pace {
                    LoadPace::Closed { .. } => micros(now),
                    LoadPace::Open { per_second } => match world.take_due(client, &self.plan, per_second) {
                        Some(mark) => mark,
                        None => break,
                    },
                };
                if let Err(error) = world.put_message(client, &self.plan, mark, now) {
                    let reason = error.to_string();
                    self.handle_loss(index, &reason);
                    return;
                }
            }
            world.totals.sent += client.sent - first;
        }
        if world.output.is_empty() {
            return;
        }
        if let Err(end) = client.write(&world.output) {
            self.handle_loss(index, &end);
            return;
        }
        self.count_flushed(index);
        if self.plan.is_unanswered()
            && matches!(self.plan.pace, LoadPace::Closed { .. })
            && let Some(client) = self.clients.get_mut(index)
            && client.has_room()
        {
            self.state.queue(client, index);
        }
    }

    /// Counts messages without replies, once the system has accepted all of them.
    fn count_flushed(&mut self, index: usize) {
        if let Some(client) = self.clients.get_mut(index)
            && self.plan.is_unanswered()
            && !client.has_unwritten()
        {
            self.state.count_written(client);
        }
    }

    /// Closes a connection. Its messages in flight have failed; during the load it is reopened.
    pub(super) fn handle_loss(&mut self, index: usize, reason: &str) {
        let Some(client) = self.clients.get_mut(index) else {
            return;
        };
        let (stage, was_served) = (client.stage, client.is_served);
        if stage == ClientStage::Closed {
            return;
        }
        let failed = client.close();
        let http = matches!(self.plan.protocol, DeviceProtocol::Http { .. });
        let world = &mut self.state;
        world.totals.failed += failed;
        if stage == ClientStage::Ready {
            world.connected = world.connected.saturating_sub(1);
        }
        if self.plan.is_unanswered() {
            world.reset_acknowledged(client);
        }
        if world.phase == LoadPhase::Quiet {
            world.count_refusal(reason);
            return;
        }
        // Servers close HTTP connections that are idle or have served enough requests.
        let is_orderly = http && failed == 0 && stage == ClientStage::Ready;
        if stage == ClientStage::Ready && !is_orderly {
            world.totals.lost += 1;
            world.totals.first_loss.get_or_insert_with(|| reason.to_owned());
        }
        if world.is_sending() {
            let pause = if is_orderly && was_served {
                Duration::ZERO
            } else {
                REDIAL_AFTER
            };
            world.redial(index, pause);
        }
    }
}
