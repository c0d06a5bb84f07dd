//! Clients of the publish/subscribe broker: their credentials, which of them are blocked, and who was refused. The JSON is
//! TBMQ's, where an id is a bare UUID.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// Gives an enum whose names are stored and shown its names.
macro_rules! named {
    ($kind:ident { $($variant:ident = $name:literal),* $(,)? }) => {
        impl $kind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name in JSON, which is stored, too.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The one of this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.name() == name)
            }
        }
    };
}

/// What kind of client has the credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum MqttClientType {
    /// One of many, with a queue of limited length.
    #[default]
    Device,
    /// One of few, whose queue may hold millions of messages.
    Application,
}

named!(MqttClientType {
    Device = "DEVICE",
    Application = "APPLICATION",
});

/// How a client shows who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
pub enum MqttCredentialsType {
    /// Client identifier, user name and password.
    #[serde(rename = "MQTT_BASIC")]
    MqttBasic,
    /// The certificate of the TLS handshake.
    #[serde(rename = "X_509")]
    X509,
    /// A challenge of MQTT 5, which this broker does not offer.
    #[serde(rename = "SCRAM")]
    Scram,
}

named!(MqttCredentialsType {
    MqttBasic = "MQTT_BASIC",
    X509 = "X_509",
    Scram = "SCRAM",
});

/// What lets a client of the broker in, and what it may do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MqttClientCredentials {
    /// Id; absent in a request to create.
    #[serde(default, deserialize_with = "super::null_as_default")]
    #[schema(value_type = Option<Uuid>)]
    pub id: Uuid,
    /// When they were created, milliseconds.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// What people call them; unique.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub name: String,
    /// What kind of client has them; `DEVICE` where absent.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub client_type: MqttClientType,
    /// How a client shows that it has them.
    pub credentials_type: MqttCredentialsType,
    /// What they are found by; computed and unique, ignored in requests.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub credentials_id: String,
    /// JSON as a string: who has them, and the topics. A password is taken when they are created, and never shown.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub credentials_value: String,
    /// What else a user interface keeps with them.
    #[serde(default)]
    pub additional_info: Value,
}

/// Credentials as lists show them.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShortMqttClientCredentials {
    /// Id.
    pub id: Uuid,
    /// What people call them.
    pub name: String,
    /// What kind of client has them.
    pub client_type: MqttClientType,
    /// How a client shows that it has them.
    pub credentials_type: MqttCredentialsType,
    /// When they were created, milliseconds.
    pub created_time: i64,
    /// What else a user interface keeps with them.
    pub additional_info: Value,
}

/// A shared subscription of clients of the type APPLICATION that was announced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSharedSubscription {
    /// Id; absent in a request to create.
    #[serde(default, deserialize_with = "super::null_as_default")]
    #[schema(value_type = Option<Uuid>)]
    pub id: Uuid,
    /// When it was announced, milliseconds.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// What people call it.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub name: String,
    /// Its topic filter without the share name; unique, and never another one.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub topic_filter: String,
    /// Parts that TBMQ would divide it into, 1 or more, and never another number; of no effect here.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub partitions: i32,
}

/// By what a client is blocked.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BlockedClientType {
    /// Its identifier.
    ClientId,
    /// Its user name.
    Username,
    /// Where it comes from.
    IpAddress,
    /// A regular expression.
    Regex,
}

named!(BlockedClientType {
    ClientId = "CLIENT_ID",
    Username = "USERNAME",
    IpAddress = "IP_ADDRESS",
    Regex = "REGEX",
});

/// What a regular expression of blocked clients looks at.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RegexMatchTarget {
    /// The client identifier.
    ByClientId,
    /// The user name.
    ByUsername,
    /// The address.
    ByIpAddress,
}

named!(RegexMatchTarget {
    ByClientId = "BY_CLIENT_ID",
    ByUsername = "BY_USERNAME",
    ByIpAddress = "BY_IP_ADDRESS",
});

/// Clients that may not connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedClient {
    /// By what they are blocked.
    pub kind: BlockedClientType,
    /// The identifier, user name, address or regular expression.
    pub value: String,
    /// What a regular expression looks at; `None` for others.
    pub target: Option<RegexMatchTarget>,
    /// Until when, milliseconds; 0 for ever.
    pub expiration_time: i64,
    /// Why.
    pub description: Option<String>,
}

impl BlockedClient {
    /// Whether they may connect again at a time, milliseconds.
    pub const fn is_expired(&self, now_ms: i64) -> bool {
        self.expiration_time > 0 && now_ms > self.expiration_time
    }
}

/// A client that was refused last when it connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnauthorizedClient {
    /// Its identifier.
    pub client_id: String,
    /// Where it came from.
    pub ip_address: String,
    /// When, milliseconds.
    pub ts: i64,
    /// The user name that it gave.
    pub username: Option<String>,
    /// Whether it gave a password.
    pub password_provided: bool,
    /// Whether it used TLS.
    pub tls_used: bool,
    /// Why it was refused.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_json() {
        fn same<T: Serialize + Copy>(all: &[T], name: impl Fn(T) -> &'static str) {
            for one in all {
                assert_eq!(serde_json::to_value(one).unwrap(), name(*one));
            }
        }
        same(MqttClientType::ALL, MqttClientType::name);
        same(MqttCredentialsType::ALL, MqttCredentialsType::name);
        same(BlockedClientType::ALL, BlockedClientType::name);
        same(RegexMatchTarget::ALL, RegexMatchTarget::name);
        assert_eq!(
            MqttCredentialsType::named("X_509"),
            Some(MqttCredentialsType::X509)
        );
        assert_eq!(MqttClientType::named("device"), None);
    }

    #[test]
    fn a_request_names_what_it_has_to() {
        let json = r#"{"id":null,"name":"a","clientType":null,"credentialsType":"MQTT_BASIC","credentialsValue":"{}"}"#;
        let read: MqttClientCredentials = serde_json::from_str(json).unwrap();
        assert_eq!((read.id, read.client_type), (Uuid::nil(), MqttClientType::Device));
        assert!(serde_json::from_str::<MqttClientCredentials>(r#"{"name":"a"}"#).is_err());
    }
}
