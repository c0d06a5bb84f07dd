//! How the credentials of devices are written down: ids that devices are looked up by, values that they must show.

use serde::Deserialize;
use sha3::{Digest, Sha3_256};

use super::MqttLogin;

/// SHA3-256 of a text, in lower-case hexadecimal.
pub fn sha3_hex(text: &str) -> String {
    use std::fmt::Write as _;
    Sha3_256::digest(text.as_bytes())
        .iter()
        .fold(String::with_capacity(64), |mut out, byte| {
            // Writing to a string cannot fail.
            let _ = write!(out, "{byte:02x}");
            out
        })
}

/// Credentials id of MQTT-basic credentials: the hash of the client id, the user name itself, or the hash of both.
pub fn mqtt_basic_credentials_id(client_id: Option<&str>, username: Option<&str>) -> String {
    match (client_id, username) {
        (Some(client_id), Some(username)) => sha3_hex(&format!("{client_id}|{username}")),
        (Some(client_id), None) => sha3_hex(client_id),
        (None, Some(username)) => username.to_owned(),
        (None, None) => String::new(),
    }
}

/// Credentials id of a certificate, given in PEM or as the base64 text of its body.
pub fn certificate_credentials_id(certificate: &str) -> String {
    sha3_hex(&trim_certificate(certificate))
}

/// The base64 text of a PEM certificate, without header, footer and line breaks.
pub fn trim_certificate(certificate: &str) -> String {
    certificate
        .replace("-----BEGIN CERTIFICATE-----", "")
        .replace("-----END CERTIFICATE-----", "")
        .split_whitespace()
        .collect()
}

/// What MQTT-basic credentials ask a device for; a field that is absent is not asked for.
#[derive(Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MqttBasicCredentials {
    client_id: Option<String>,
    user_name: Option<String>,
    password: Option<String>,
}

impl MqttBasicCredentials {
    /// Reads a credentials value. One that cannot be read admits nobody.
    pub fn parse(value: &str) -> Self {
        serde_json::from_str(value).unwrap_or_default()
    }

    /// Whether the login has everything that is asked for.
    pub fn admits(&self, login: MqttLogin<'_>) -> bool {
        let asks = |wanted: &Option<String>| wanted.as_ref().filter(|text| !text.is_empty()).cloned();
        let (client_id, username, password) =
            (asks(&self.client_id), asks(&self.user_name), asks(&self.password));
        if client_id.is_none() && username.is_none() {
            return false;
        }
        client_id.is_none_or(|wanted| wanted == login.client_id)
            && username.is_none_or(|wanted| Some(wanted.as_str()) == login.username)
            && password.is_none_or(|wanted| {
                login
                    .password
                    .is_some_and(|shown| same_secret(wanted.as_bytes(), shown))
            })
    }
}

/// Compares without telling by its duration where the two differ.
pub fn same_secret(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .fold(0, |differs, (a, b)| differs | (a ^ b))
            == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_credentials_ask_for_each_field_they_have() {
        let value = MqttBasicCredentials::parse(r#"{"clientId":"c","userName":"u","password":"p"}"#);
        let login = MqttLogin {
            client_id: "c",
            username: Some("u"),
            password: Some(b"p"),
        };
        assert!(value.admits(login));
        assert!(!value.admits(MqttLogin {
            client_id: "x",
            ..login
        }));
        assert!(!value.admits(MqttLogin {
            username: None,
            ..login
        }));
        assert!(!value.admits(MqttLogin {
            password: Some(b"q"),
            ..login
        }));
        assert!(!value.admits(MqttLogin {
            password: None,
            ..login
        }));
        assert!(
            !MqttBasicCredentials::parse("not json").admits(login),
            "unreadable credentials admit nobody"
        );
    }
}
