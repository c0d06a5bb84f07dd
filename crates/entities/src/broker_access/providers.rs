//! The ways in which clients show who they are, and the order in which they are asked.

use serde_json::Value;
use uuid::Uuid;

/// Key of the settings.
pub const PROVIDERS_KEY: &str = "mqttAuthProviders";
/// Key of the settings that have the order in which providers are asked.
pub const ORDER_KEY: &str = "mqttAuthorization";

/// A way in which clients show who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthProviderType {
    /// Client identifier, user name and password.
    MqttBasic,
    /// Certificates.
    X509,
    /// A signed token as the password.
    Jwt,
    /// A proof that a client knows a password, in the enhanced authentication of MQTT 5.
    Scram,
    /// A server that is asked.
    Http,
}

impl AuthProviderType {
    /// All that this broker offers.
    pub const ALL: [Self; 5] = [Self::MqttBasic, Self::X509, Self::Jwt, Self::Scram, Self::Http];
    /// Those that are asked about a CONNECT without authentication method, in the order in which they are at first.
    pub(super) const IN_TURN: [Self; 4] = [Self::MqttBasic, Self::X509, Self::Jwt, Self::Http];

    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MqttBasic => "MQTT_BASIC",
            Self::X509 => "X_509",
            Self::Jwt => "JWT",
            Self::Scram => "SCRAM",
            Self::Http => "HTTP",
        }
    }

    /// The name for people.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::MqttBasic => "Basic",
            Self::X509 => "X.509 certificate chain",
            Self::Jwt => "JWT",
            Self::Scram => "SCRAM",
            Self::Http => "HTTP service",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// The id, which is the same in every installation.
    pub const fn id(self) -> Uuid {
        let number = match self {
            Self::MqttBasic => 1,
            Self::X509 => 2,
            Self::Jwt => 3,
            Self::Scram => 4,
            Self::Http => 5,
        };
        Uuid::from_u128(0x6d71_7474_0000_4000_8000_0000_0000_0000 | number)
    }

    pub(super) const fn description(self) -> &'static str {
        match self {
            Self::MqttBasic => {
                "Authenticates clients using a clientId, username, and password sent in the CONNECT packet"
            }
            Self::X509 => "Uses the client's X.509 certificate chain during TLS handshake for authentication",
            Self::Jwt => "Checks a signed JWT that the client sends as its password",
            Self::Scram => "Has clients of MQTT 5 prove that they know a password, without sending it",
            Self::Http => "Asks an HTTP server whether the client may connect",
        }
    }
}

/// The order in which providers are asked, of the setting that says so; the usual one where there is none.
///
/// # Errors
/// It names something that is no provider, or one twice.
pub fn auth_provider_order(setting: Option<&Value>) -> Result<Vec<AuthProviderType>, String> {
    let Some(setting) = setting else {
        return Ok(AuthProviderType::IN_TURN.to_vec());
    };
    let wrong = || "priorities should be a list of MQTT_BASIC, X_509, JWT and HTTP!".to_owned();
    let list = setting
        .get("priorities")
        .and_then(Value::as_array)
        .ok_or_else(wrong)?;
    let mut order = Vec::with_capacity(list.len());
    for name in list {
        let kind = name
            .as_str()
            .and_then(AuthProviderType::named)
            .ok_or_else(wrong)?;
        // SCRAM is asked by the client's own choice.
        if kind == AuthProviderType::Scram {
            continue;
        }
        if order.contains(&kind) {
            return Err(wrong());
        }
        order.push(kind);
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_is_a_list_of_providers() {
        use AuthProviderType::{Http, Jwt, MqttBasic, X509};
        let order = |priorities: Value| auth_provider_order(Some(&json!({ "priorities": priorities })));
        assert_eq!(auth_provider_order(None), Ok(vec![MqttBasic, X509, Jwt, Http]));
        assert_eq!(
            order(json!(["HTTP", "SCRAM", "MQTT_BASIC"])),
            Ok(vec![Http, MqttBasic])
        );
        assert_eq!(order(json!([])), Ok(vec![]));
        for wrong in [json!(["LDAP"]), json!(["JWT", "JWT"]), json!("JWT"), json!([7])] {
            assert!(order(wrong).is_err());
        }
    }
}
