//! What is known of a client beside its session: its last connection, and how much it has sent and received.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldline_codec::{ConnectPacket, MqttProtocolVersion, QoS};
use uuid::Uuid;

use crate::wire::{RowReader, put_bytes};

const CLEAN_START: u8 = 1;
const USERNAME: u8 = 2;

/// The connection that a client has, or the last one that it had.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ConnectionInfo {
    pub(crate) id: Uuid,
    /// Milliseconds since 1970.
    pub(crate) connected_ms: i64,
    pub(crate) address: Option<IpAddr>,
    pub(crate) username: Option<Box<str>>,
    pub(crate) keep_alive_s: u16,
    pub(crate) clean_start: bool,
    pub(crate) version: Option<MqttProtocolVersion>,
}

impl ConnectionInfo {
    /// Takes the connection of a client that has sent CONNECT from an address at `now_ms`.
    pub(crate) fn of(connect: &ConnectPacket<'_>, address: IpAddr, keep_alive_s: u16, now_ms: i64) -> Self {
        Self {
            id: Uuid::new_v4(),
            connected_ms: now_ms,
            address: Some(address.to_canonical()),
            username: connect.username.map(Into::into),
            keep_alive_s,
            clean_start: connect.clean_start,
            version: Some(connect.version()),
        }
    }

    /// The version of the protocol as administrators see it.
    pub(crate) const fn version_name(&self) -> Option<&'static str> {
        match self.version {
            Some(MqttProtocolVersion::V31) => Some("3.1"),
            Some(MqttProtocolVersion::V311) => Some("3.1.1"),
            Some(MqttProtocolVersion::V5) => Some("5.0"),
            None => None,
        }
    }

    /// Appends the connection.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.id.as_bytes());
        out.extend_from_slice(&self.connected_ms.to_le_bytes());
        out.extend_from_slice(&self.keep_alive_s.to_le_bytes());
        let clean_start = if self.clean_start { CLEAN_START } else { 0 };
        let username = if self.username.is_some() { USERNAME } else { 0 };
        out.push(clean_start | username);
        out.push(match self.version {
            None => 0,
            Some(MqttProtocolVersion::V31) => 3,
            Some(MqttProtocolVersion::V311) => 4,
            Some(MqttProtocolVersion::V5) => 5,
        });
        match self.address {
            None => put_bytes(&[], out),
            Some(IpAddr::V4(address)) => put_bytes(&address.octets(), out),
            Some(IpAddr::V6(address)) => put_bytes(&address.octets(), out),
        }
        put_bytes(self.username.as_deref().unwrap_or_default().as_bytes(), out);
    }

    /// Reads a connection.
    pub(crate) fn decode(reader: &mut RowReader<'_>) -> Option<Self> {
        let id = Uuid::from_slice(reader.take(16)?).ok()?;
        let (connected_ms, keep_alive_s) = (reader.i64()?, reader.u16()?);
        let flags = reader.u8()?;
        let version = match reader.u8()? {
            0 => None,
            3 => Some(MqttProtocolVersion::V31),
            4 => Some(MqttProtocolVersion::V311),
            5 => Some(MqttProtocolVersion::V5),
            _ => return None,
        };
        let octets = reader.bytes()?;
        let address: Option<IpAddr> = match octets.len() {
            0 => None,
            4 => Some(<[u8; 4]>::try_from(octets).ok()?.into()),
            _ => Some(<[u8; 16]>::try_from(octets).ok()?.into()),
        };
        let username = reader.text()?;
        Some(Self {
            id,
            connected_ms,
            address,
            username: (flags & USERNAME != 0).then(|| username.into()),
            keep_alive_s,
            clean_start: flags & CLEAN_START != 0,
            version,
        })
    }
}

/// Counts the messages of a client.
#[derive(Debug, Default)]
pub(crate) struct ClientCounters {
    received: [AtomicU64; 3],
    sent: [AtomicU64; 3],
    dropped: AtomicU64,
}

fn read(counters: &[AtomicU64; 3]) -> [u64; 3] {
    counters.each_ref().map(|counter| counter.load(Ordering::Relaxed))
}

impl ClientCounters {
    /// Counts a message that the client has published.
    pub(crate) fn count_received(&self, qos: QoS) {
        if let Some(counter) = self.received.get(qos as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts messages that the client was sent, by quality of service.
    pub(crate) fn count_sent(&self, sent: [u64; 3]) {
        for (counter, sent) in self.sent.iter().zip(sent) {
            if sent > 0 {
                counter.fetch_add(sent, Ordering::Relaxed);
            }
        }
    }

    /// Counts a message that was dropped for the client.
    pub(crate) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Messages that the client has published, by quality of service.
    pub(crate) fn received(&self) -> [u64; 3] {
        read(&self.received)
    }

    /// Messages that the client was sent, by quality of service.
    pub(crate) fn sent(&self) -> [u64; 3] {
        read(&self.sent)
    }

    /// Messages that were dropped for the client.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_read_as_they_were_written() {
        let known = ConnectionInfo {
            id: Uuid::new_v4(),
            connected_ms: 17,
            address: Some(IpAddr::from([127, 0, 0, 1])),
            username: Some("".into()),
            keep_alive_s: 60,
            clean_start: true,
            version: Some(MqttProtocolVersion::V311),
        };
        let other = ConnectionInfo {
            address: Some(IpAddr::from([1; 16])),
            username: Some("me".into()),
            ..known
        };
        for info in [known, other, ConnectionInfo::default()] {
            let mut row = Vec::new();
            info.encode(&mut row);
            assert_eq!(ConnectionInfo::decode(&mut RowReader(&row)), Some(info));
            for end in 0..row.len() {
                assert_eq!(ConnectionInfo::decode(&mut RowReader(&row[..end])), None);
            }
        }
    }
}
