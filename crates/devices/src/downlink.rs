//! What the platform sends to devices, and the one way to their sessions.

use std::sync::Arc;

use bytes::Bytes;
use fieldline_model::json;
use fieldline_model::kv;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{DeviceId, EntityKey, EntityType, TenantId};
use uuid::Uuid;

/// Something for a device. Cheap to copy: its sessions share what it holds.
#[derive(Debug, Clone)]
pub enum Downlink {
    /// Shared attributes have changed; for sessions that want attributes.
    Attributes(Arc<AttributeUpdate>),
    /// A call; for sessions that want calls.
    Call(Arc<ToDeviceRpc>),
    /// The answer to a call that the session has made, with the number that the device gave it.
    Answer(i32, Arc<str>),
}

impl Downlink {
    /// What a session has to want to be sent this; an answer goes to the session that has asked.
    pub(crate) const fn subscription_bits(&self) -> u8 {
        match self {
            Self::Attributes(_) => Subscriptions::ATTRIBUTES.0,
            Self::Call(_) => Subscriptions::RPC.0,
            Self::Answer(..) => u8::MAX,
        }
    }

    /// About how much memory it takes, bytes.
    pub(crate) fn weight(&self) -> usize {
        let content = match self {
            Self::Attributes(update) => update.weight(),
            Self::Call(call) => call.weight(),
            Self::Answer(_, body) => body.len(),
        };
        size_of::<Self>() + content
    }
}

/// What a session wants to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Subscriptions(pub(crate) u8);

impl Subscriptions {
    /// Nothing.
    pub const NOTHING: Self = Self(0);
    /// Changes of shared attributes.
    pub const ATTRIBUTES: Self = Self(1);
    /// Calls.
    pub const RPC: Self = Self(2);

    /// Both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of the others are among these.
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }
}

/// Shared attributes of a device that have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeUpdate {
    /// New values, packed as in [`fieldline_model::kv`].
    Saved(Bytes),
    /// Names of those that are gone.
    Deleted(Vec<String>),
}

impl AttributeUpdate {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Saved(values) => values.is_empty(),
            Self::Deleted(keys) => keys.is_empty(),
        }
    }

    /// `{"key": value, …}`, or `{"deleted": ["key", …]}`.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        match self {
            Self::Saved(values) => {
                if kv::write_object(values, &mut out).is_err() {
                    // They were packed by this program: what cannot be read back is not shown in half.
                    "{}".clone_into(&mut out);
                }
            }
            Self::Deleted(keys) => {
                out.push_str("{\"deleted\":[");
                for (index, key) in keys.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    json::write_string(key, &mut out);
                }
                out.push_str("]}");
            }
        }
        out
    }

    fn weight(&self) -> usize {
        match self {
            Self::Saved(values) => values.len(),
            Self::Deleted(keys) => keys.iter().map(|key| size_of::<String>() + key.len()).sum(),
        }
    }
}

/// A call to a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToDeviceRpc {
    /// Its identity.
    pub id: Uuid,
    /// Tenant of the device.
    pub tenant: TenantId,
    /// The device.
    pub device: DeviceId,
    /// The number that the device answers it with.
    pub number: i32,
    /// What the device shall do.
    pub method: String,
    /// JSON text of the parameters.
    pub params: String,
    /// When it expires, milliseconds.
    pub expires_ms: i64,
    /// No answer is expected.
    pub oneway: bool,
    /// It is kept until the device has taken it, or it expires.
    pub persistent: bool,
}

impl ToDeviceRpc {
    /// About how much memory it takes, bytes.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>() + self.method.len() + self.params.len()
    }

    /// `{"method": …, "params": …}`.
    pub fn to_json(&self) -> String {
        let mut out = String::from("{");
        self.write_fields(&mut out);
        out.push('}');
        out
    }

    /// `{"id": …, "method": …, "params": …}`, for devices that are told the number in the body.
    pub fn to_numbered_json(&self) -> String {
        let mut out = format!("{{\"id\":{},", self.number);
        self.write_fields(&mut out);
        out.push('}');
        out
    }

    fn write_fields(&self, out: &mut String) {
        out.push_str("\"method\":");
        json::write_string(&self.method, out);
        out.push_str(",\"params\":");
        match serde_json::from_str::<&serde_json::value::RawValue>(&self.params) {
            Ok(_) => out.push_str(&self.params),
            // Plain text is a text to the device.
            Err(_) => json::write_string(&self.params, out),
        }
    }
}

/// The way to the sessions of devices, wherever they are.
pub trait DeviceLink: Send + Sync {
    /// Hands something to all sessions of a device that want it, without waiting: each has a bounded buffer of its own, and
    /// one whose buffer is full is closed. Sessions of another tenant are none of the device. Returns how many have taken it.
    fn send(&self, subject: EntityKey, downlink: &Downlink) -> usize;

    /// Tells a device that its shared attributes have changed. Other scopes and other entities are nobody's business.
    fn attributes_changed(&self, subject: EntityKey, scope: AttributeScope, update: AttributeUpdate) {
        let is_shared = scope == AttributeScope::Shared && subject.entity.entity_type == EntityType::Device;
        if is_shared && !update.is_empty() {
            self.send(subject, &Downlink::Attributes(Arc::new(update)));
        }
    }
}

/// Of a program that no device is connected to.
pub struct NoDeviceLink;

impl DeviceLink for NoDeviceLink {
    fn send(&self, _: EntityKey, _: &Downlink) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::kv::{KvValueRef, pack};

    use super::*;

    #[test]
    fn updates_and_calls_read_as_devices_know_them() {
        let mut values = Vec::new();
        pack("interval", KvValueRef::Long(30), &mut values);
        pack("name \"x\"", KvValueRef::Text("a"), &mut values);
        let saved = AttributeUpdate::Saved(values.into());
        assert_eq!(saved.to_json(), r#"{"interval":30,"name \"x\"":"a"}"#);
        let deleted = AttributeUpdate::Deleted(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(deleted.to_json(), r#"{"deleted":["a","b"]}"#);

        let call = |params: &str| ToDeviceRpc {
            id: Uuid::nil(),
            tenant: TenantId::NULL,
            device: DeviceId::NULL,
            number: 7,
            method: "set".to_owned(),
            params: params.to_owned(),
            expires_ms: 0,
            oneway: false,
            persistent: false,
        };
        assert_eq!(
            call("{\"pin\":1}").to_json(),
            r#"{"method":"set","params":{"pin":1}}"#
        );
        assert_eq!(
            call("on").to_numbered_json(),
            r#"{"id":7,"method":"set","params":"on"}"#
        );
    }
}
