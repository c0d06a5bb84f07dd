//! Brings device credentials into the form they are stored in, and refuses what cannot be looked up later.

use fieldline_devices::directory::{certificate_credentials_id, mqtt_basic_credentials_id, trim_certificate};
use fieldline_model::entity::{CredentialsType, DeviceCredentials};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ServiceError, ServiceResult};

/// The value of MQTT-basic credentials, as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MqttBasic {
    client_id: Option<String>,
    user_name: Option<String>,
    password: Option<String>,
}

/// Computes the credentials id from the value where the type asks for it, and checks the rest.
pub(super) fn normalize(mut credentials: DeviceCredentials) -> ServiceResult<DeviceCredentials> {
    match credentials.credentials_type {
        CredentialsType::AccessToken => {}
        CredentialsType::X509Certificate => certificate(&mut credentials)?,
        CredentialsType::MqttBasic => mqtt_basic(&mut credentials)?,
        CredentialsType::Lwm2mCredentials => lwm2m(&mut credentials)?,
    }
    let id = credentials.credentials_id.as_deref().unwrap_or_default();
    if id.is_empty() {
        return Err(invalid("Device credentials id should be specified!"));
    }
    no_control_characters("credentialsId", Some(id))?;
    if id.chars().count() > 255 {
        return Err(invalid(
            "Validation error: credentialsId length must be equal or less than 255",
        ));
    }
    Ok(credentials)
}

fn certificate(credentials: &mut DeviceCredentials) -> ServiceResult<()> {
    let body = trim_certificate(credentials.credentials_value.as_deref().unwrap_or_default());
    if body.is_empty() {
        return Err(invalid("Device credentials value should be specified!"));
    }
    credentials.credentials_id = Some(certificate_credentials_id(&body));
    credentials.credentials_value = Some(body);
    Ok(())
}

fn mqtt_basic(credentials: &mut DeviceCredentials) -> ServiceResult<()> {
    let value: MqttBasic = credentials
        .credentials_value
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok())
        .ok_or_else(|| invalid("Invalid credentials body for simple mqtt credentials!"))?;
    let present = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let (client_id, user_name) = (present(&value.client_id), present(&value.user_name));
    if client_id.is_none() && user_name.is_none() {
        return Err(invalid("Both mqtt client id and user name are empty!"));
    }
    if client_id.is_some() && user_name.is_none() && present(&value.password).is_some() {
        return Err(invalid("Password cannot be specified along with client id"));
    }
    no_control_characters("clientId", value.client_id.as_deref())?;
    no_control_characters("userName", value.user_name.as_deref())?;
    no_control_characters("password", value.password.as_deref())?;
    credentials.credentials_id = Some(mqtt_basic_credentials_id(
        client_id.as_deref(),
        user_name.as_deref(),
    ));
    credentials.credentials_value = serde_json::to_string(&value).ok();
    Ok(())
}

/// The id that a LwM2M server looks the client up by; the rest of the value is kept as it is.
fn lwm2m(credentials: &mut DeviceCredentials) -> ServiceResult<()> {
    let malformed = || invalid("Invalid credentials body for LwM2M credentials!");
    let value: Value = credentials
        .credentials_value
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok())
        .ok_or_else(malformed)?;
    let client = value
        .get("client")
        .filter(|client| client.is_object())
        .ok_or_else(|| invalid("LwM2M client credentials must be specified!"))?;
    if !value.get("bootstrap").is_some_and(Value::is_object) {
        return Err(invalid("LwM2M bootstrap credentials must be specified!"));
    }
    let text = |name: &str| {
        client
            .get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.trim().is_empty())
    };
    let endpoint = text("endpoint").ok_or_else(|| invalid("LwM2M client endpoint must be specified!"))?;
    let id = match text("securityConfigClientMode") {
        Some("NO_SEC" | "RPK") => endpoint.to_owned(),
        Some("PSK") => {
            let key = text("key").ok_or_else(|| invalid("LwM2M client PSK key must be specified!"))?;
            if !key.chars().all(|c| c.is_ascii_hexdigit()) {
                return Err(invalid(
                    "LwM2M client PSK key must be random sequence in hex encoding!",
                ));
            }
            text("identity")
                .ok_or_else(|| {
                    invalid("LwM2M client PSK identity must be specified and must be an utf8 string!")
                })?
                .to_owned()
        }
        Some("X509") => text("cert").map_or_else(|| endpoint.to_owned(), certificate_credentials_id),
        _ => return Err(malformed()),
    };
    credentials.credentials_id = Some(id);
    Ok(())
}

fn no_control_characters(name: &str, text: Option<&str>) -> ServiceResult<()> {
    if text.is_some_and(|text| text.chars().any(char::is_control)) {
        return Err(invalid(format!("{name} must not contain control characters!")));
    }
    Ok(())
}

fn invalid(message: impl Into<String>) -> ServiceError {
    ServiceError::invalid(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(kind: CredentialsType, id: Option<&str>, value: Option<&str>) -> DeviceCredentials {
        DeviceCredentials {
            credentials_type: kind,
            credentials_id: id.map(str::to_owned),
            credentials_value: value.map(str::to_owned),
            ..DeviceCredentials::default()
        }
    }

    fn message(result: ServiceResult<DeviceCredentials>) -> String {
        result.unwrap_err().message().to_owned()
    }

    #[test]
    fn mqtt_basic_credentials_are_found_by_what_the_client_will_show() {
        let id = |value: &str| {
            normalize(credentials(
                CredentialsType::MqttBasic,
                Some("ignored"),
                Some(value),
            ))
            .unwrap()
            .credentials_id
            .unwrap()
        };
        assert_eq!(id(r#"{"userName":"u","password":"p"}"#), "u");
        assert_eq!(
            id(r#"{"clientId":"c"}"#),
            fieldline_devices::directory::sha3_hex("c")
        );
        assert_eq!(
            id(r#"{"clientId":"c","userName":"u"}"#),
            fieldline_devices::directory::sha3_hex("c|u")
        );
    }

    #[test]
    fn credentials_nobody_could_show_are_refused() {
        let basic = |value| message(normalize(credentials(CredentialsType::MqttBasic, None, value)));
        assert_eq!(
            basic(None),
            "Invalid credentials body for simple mqtt credentials!"
        );
        assert_eq!(
            basic(Some(r#"{"password":"p"}"#)),
            "Both mqtt client id and user name are empty!"
        );
        assert_eq!(
            basic(Some(r#"{"clientId":"c","password":"p"}"#)),
            "Password cannot be specified along with client id"
        );
        let token = |id| message(normalize(credentials(CredentialsType::AccessToken, id, None)));
        assert_eq!(token(None), "Device credentials id should be specified!");
        assert_eq!(
            token(Some("a\nb")),
            "credentialsId must not contain control characters!"
        );
    }
}
