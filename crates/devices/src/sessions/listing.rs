//! The sessions of devices as an operator sees them.

use std::net::IpAddr;

use fieldline_model::{DeviceId, EntityKey, TenantId};
use uuid::Uuid;

use super::{CloseReason, OpenSession, SessionRegistry};
use crate::downlink::Subscriptions;

/// How a device is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SessionProtocol {
    /// Nobody has said.
    #[default]
    Unknown,
    /// MQTT.
    Mqtt,
    /// MQTT over TLS.
    Mqtts,
    /// CoAP.
    Coap,
    /// CoAP over DTLS.
    Coaps,
}

impl SessionProtocol {
    /// Its name in capitals.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::Mqtt => "MQTT",
            Self::Mqtts => "MQTTS",
            Self::Coap => "COAP",
            Self::Coaps => "COAPS",
        }
    }
}

/// Where a session comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionOrigin {
    /// How it is connected.
    pub protocol: SessionProtocol,
    /// Its address, as far as the network says.
    pub address: Option<IpAddr>,
    /// The gateway that it is behind.
    pub gateway: Option<DeviceId>,
    /// When it began, milliseconds.
    pub since_ms: i64,
}

/// An open session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its identity, as long as it is open.
    pub id: Uuid,
    /// Where it comes from.
    pub origin: SessionOrigin,
    /// It is told of shared attributes.
    pub subscribes_attributes: bool,
    /// It takes calls.
    pub subscribes_rpc: bool,
    /// What waits to be sent to it, bytes.
    pub waiting_bytes: usize,
}

impl SessionRegistry {
    /// The open sessions of a device, oldest first. Requests that wait for one thing are none.
    pub fn list(&self, subject: EntityKey) -> Vec<SessionInfo> {
        let device = DeviceId(subject.entity.id);
        let shard = self.shard(device).lock();
        let of_device = shard.get(&device).map_or(&[][..], Vec::as_slice);
        of_device
            .iter()
            .filter(|session| session.lasts() && session.device.subject == subject)
            .map(|session| SessionInfo {
                id: self.id_of(session),
                origin: session.origin,
                subscribes_attributes: session.control.is_subscribed(Subscriptions::ATTRIBUTES),
                subscribes_rpc: session.control.is_subscribed(Subscriptions::RPC),
                waiting_bytes: session.control.waiting_bytes(),
            })
            .collect()
    }

    /// How many sessions the devices of a tenant have.
    pub fn count_of(&self, tenant: TenantId) -> usize {
        self.open_of.lock().get(&tenant).copied().unwrap_or(0)
    }

    /// Ends the sessions of a device, or the one with that identity, and what waits for something. Returns how many
    /// sessions it has ended.
    pub fn end(&self, subject: EntityKey, id: Option<Uuid>) -> usize {
        let device = DeviceId(subject.entity.id);
        let ended: Vec<_> = {
            let shard = self.shard(device).lock();
            let of_device = shard.get(&device).map_or(&[][..], Vec::as_slice);
            of_device
                .iter()
                .filter(|session| session.device.subject == subject)
                .filter(|session| id.is_none_or(|id| session.lasts() && self.id_of(session) == id))
                .map(|session| (session.control.clone(), session.lasts()))
                .collect()
        };
        let close = |control: &super::SessionControl| control.close(CloseReason::Administrator);
        ended.iter().for_each(|(control, _)| close(control));
        ended.iter().filter(|(_, lasts)| *lasts).count()
    }

    fn id_of(&self, session: &OpenSession) -> Uuid {
        Uuid::from_u64_pair(self.run, session.number)
    }
}
