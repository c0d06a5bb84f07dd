//! What the value of credentials says, and what is checked before it is stored.

use std::collections::BTreeMap;

use fieldline_model::entity::{MqttClientCredentials, MqttCredentialsType};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::patterns::{PartPattern, WholePattern, quoted};
use super::scram::ScramValue;
use crate::services::{ServiceError, ServiceResult};

/// Longest client identifier, user name or common name that is stored, in characters.
const MAX_NAME: usize = 255;
/// Most expressions of one list of rules.
const MAX_RULES: usize = 100;
/// Most groups of rules of credentials for certificates.
const MAX_GROUPS: usize = 20;
/// Largest further information, bytes.
const MAX_INFO: usize = 16 << 10;
/// Stands for the common name of the client in rules.
const COMMON_NAME: &str = "${cn}";
/// Says in the further information whether there is a password.
const PASSWORD_IS_SET: &str = "mqttBasicPasswordIsSet";

/// On which topics a client may publish, and to which filters it may subscribe. No list, and an empty one, permit nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct TopicRuleLists {
    #[serde(alias = "pub")]
    pub(super) pub_auth_rule_patterns: Option<Vec<String>>,
    #[serde(alias = "sub")]
    pub(super) sub_auth_rule_patterns: Option<Vec<String>>,
}

impl TopicRuleLists {
    /// Rules that permit everything.
    pub(super) fn everything() -> Self {
        let all = || Some(vec![".*".to_owned()]);
        Self {
            pub_auth_rule_patterns: all(),
            sub_auth_rule_patterns: all(),
        }
    }

    /// Whether a rule asks for the common name of the client.
    pub(super) fn name_the_client(&self) -> bool {
        let lists = [&self.pub_auth_rule_patterns, &self.sub_auth_rule_patterns];
        let mut rules = lists.into_iter().flatten().flatten();
        rules.any(|rule| rule.contains(COMMON_NAME))
    }
}

/// The value of `MQTT_BASIC` credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct BasicValue {
    pub(super) client_id: Option<String>,
    pub(super) user_name: Option<String>,
    /// The password in a request, its hash where it is stored.
    pub(super) password: Option<String>,
    pub(super) auth_rules: Option<TopicRuleLists>,
}

/// The value of `X_509` credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CertificateValue {
    pub(super) cert_cn_pattern: Option<String>,
    pub(super) cert_cn_is_regex: bool,
    /// Rules by an expression that is looked for in the common name.
    pub(super) auth_rules_mapping: Option<BTreeMap<String, TopicRuleLists>>,
}

pub(super) fn unreadable() -> ServiceError {
    ServiceError::invalid("Could not parse client credentials!")
}

fn present(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

impl BasicValue {
    pub(super) fn of(credentials: &MqttClientCredentials) -> ServiceResult<Self> {
        serde_json::from_str(&credentials.credentials_value).map_err(|_| unreadable())
    }

    /// The JSON that is stored.
    pub(super) fn to_text(&self) -> ServiceResult<String> {
        serde_json::to_string(self).map_err(|_| unreadable())
    }

    /// What credentials with this value are found by.
    fn credentials_id(&self) -> ServiceResult<String> {
        let names = (
            present(self.user_name.as_deref()),
            present(self.client_id.as_deref()),
        );
        match names {
            (Some(user), Some(client)) => Ok(mixed_id(user, client)),
            (Some(user), None) => Ok(username_id(user)),
            (None, Some(client)) => Ok(client_id(client)),
            (None, None) => Err(ServiceError::invalid(
                "Both mqtt client id and user name are empty!",
            )),
        }
    }
}

impl CertificateValue {
    pub(super) fn of(credentials: &MqttClientCredentials) -> ServiceResult<Self> {
        serde_json::from_str(&credentials.credentials_value).map_err(|_| unreadable())
    }

    /// The JSON that is stored.
    fn to_text(&self) -> ServiceResult<String> {
        serde_json::to_string(self).map_err(|_| unreadable())
    }
}

impl ScramValue {
    pub(super) fn of(credentials: &MqttClientCredentials) -> ServiceResult<Self> {
        serde_json::from_str(&credentials.credentials_value).map_err(|_| unreadable())
    }

    /// The JSON that is stored.
    pub(super) fn to_text(&self) -> ServiceResult<String> {
        serde_json::to_string(self).map_err(|_| unreadable())
    }
}

pub(super) fn username_id(user: &str) -> String {
    format!("username|{user}")
}

pub(super) fn client_id(client: &str) -> String {
    format!("client_id|{client}")
}

pub(super) fn mixed_id(user: &str, client: &str) -> String {
    format!("mixed|{user}|{client}")
}

pub(super) fn scram_id(user: &str) -> String {
    format!("scram|{user}")
}

pub(super) fn certificate_id(common_name: &str) -> String {
    format!("ssl|{common_name}")
}

/// Whether a client with this name may have credentials: others are never stored.
pub(super) fn is_storable(name: &str) -> bool {
    name.chars().nth(MAX_NAME).is_none() && !name.contains('\0')
}

/// Whether a common name can stand for one level of a topic. In the filter of a subscription, others are wildcards or further
/// levels.
pub(super) fn is_topic_level(common_name: &str) -> bool {
    !common_name.contains(['+', '#', '/', '\0'])
}

/// An expression with the common name of a client in it.
pub(super) fn with_common_name(expression: &str, common_name: &str) -> String {
    if expression.contains(COMMON_NAME) {
        expression.replace(COMMON_NAME, &quoted(common_name))
    } else {
        expression.to_owned()
    }
}

/// Checks credentials before they are stored, and sets what they are found by. A password is not looked at.
pub(super) fn check(credentials: &mut MqttClientCredentials) -> ServiceResult<()> {
    let id = match credentials.credentials_type {
        MqttCredentialsType::MqttBasic => {
            let value = BasicValue::of(credentials)?;
            let id = value.credentials_id()?;
            check_name("clientId", value.client_id.as_deref())?;
            check_name("userName", value.user_name.as_deref())?;
            check_rules(value.auth_rules.as_ref(), None)?;
            id
        }
        MqttCredentialsType::X509 => {
            let value = CertificateValue::of(credentials)?;
            let id = check_certificate(&value)?;
            // Fields of other types, such as a password, are not kept.
            credentials.credentials_value = value.to_text()?;
            id
        }
        MqttCredentialsType::Scram => {
            let value = ScramValue::of(credentials)?;
            let user = present(value.user_name.as_deref());
            let user = user.ok_or_else(|| ServiceError::invalid("User name is empty!"))?;
            check_name("userName", Some(user))?;
            check_rules(value.auth_rules.as_ref(), None)?;
            scram_id(user)
        }
    };
    if credentials.name.trim().is_empty() {
        return Err(ServiceError::invalid(
            "MQTT Client credentials name should be specified!",
        ));
    }
    check_name("name", Some(&credentials.name))?;
    if let Value::Object(info) = &mut credentials.additional_info {
        info.remove(PASSWORD_IS_SET);
    } else if !credentials.additional_info.is_null() {
        return Err(ServiceError::invalid(
            "Validation error: additionalInfo must be an object",
        ));
    }
    if credentials.additional_info.to_string().len() > MAX_INFO {
        return Err(ServiceError::invalid(format!(
            "Validation error: additionalInfo takes more than {MAX_INFO} bytes"
        )));
    }
    credentials.credentials_id = id;
    Ok(())
}

fn check_certificate(value: &CertificateValue) -> ServiceResult<String> {
    let Some(name) = present(value.cert_cn_pattern.as_deref()) else {
        return Err(ServiceError::invalid(
            "Certificate common name pattern should be specified!",
        ));
    };
    check_name("certCnPattern", Some(name))?;
    if value.cert_cn_is_regex && PartPattern::new(name).is_err() {
        return Err(ServiceError::invalid(format!(
            "Certificate common name pattern [{name}] must be a valid regex"
        )));
    }
    let groups = value.auth_rules_mapping.as_ref();
    let Some(groups) = groups.filter(|groups| !groups.is_empty()) else {
        return Err(ServiceError::invalid(
            "Authorization rules mapping should be specified!",
        ));
    };
    if groups.len() > MAX_GROUPS {
        return Err(ServiceError::invalid(format!(
            "Authorization rules mapping must not have more than {MAX_GROUPS} entries!"
        )));
    }
    for (matcher, rules) in groups {
        if PartPattern::new(matcher).is_err() {
            return Err(ServiceError::invalid(format!(
                "Certificate matcher regex [{matcher}] must be a valid regex"
            )));
        }
        check_rules(Some(rules), Some("tbmq.io"))?;
    }
    Ok(certificate_id(name))
}

fn check_name(field: &str, text: Option<&str>) -> ServiceResult<()> {
    let text = text.unwrap_or_default();
    if text.chars().count() > MAX_NAME {
        return Err(ServiceError::invalid(format!(
            "Validation error: {field} length must be equal or less than {MAX_NAME}"
        )));
    }
    if text.contains('\0') {
        return Err(ServiceError::invalid(format!(
            "Validation error: {field} should not contain 0x00 symbol"
        )));
    }
    Ok(())
}

/// Checks rules before they are stored, with this common name in them where one is given.
pub(super) fn check_rules(rules: Option<&TopicRuleLists>, common_name: Option<&str>) -> ServiceResult<()> {
    let rules = rules.ok_or_else(|| ServiceError::invalid("AuthRules are null!"))?;
    for (list, what) in [
        (&rules.pub_auth_rule_patterns, "Publish"),
        (&rules.sub_auth_rule_patterns, "Subscribe"),
    ] {
        let list = list.as_deref().unwrap_or_default();
        if list.len() > MAX_RULES {
            return Err(ServiceError::invalid(format!(
                "{what} auth rule patterns must not be more than {MAX_RULES}!"
            )));
        }
        let is_valid = list.iter().all(|expression| match common_name {
            Some(name) => WholePattern::new(&with_common_name(expression, name)).is_ok(),
            None => WholePattern::new(expression).is_ok(),
        });
        if !is_valid {
            return Err(ServiceError::invalid(format!(
                "{what} auth rule patterns should be a valid regexes!"
            )));
        }
    }
    Ok(())
}

/// Credentials as people see them: without a password or what it can be guessed by, but with whether there is one.
pub(super) fn shown(mut credentials: MqttClientCredentials) -> ServiceResult<MqttClientCredentials> {
    match credentials.credentials_type {
        MqttCredentialsType::MqttBasic => {}
        MqttCredentialsType::X509 => return Ok(credentials),
        MqttCredentialsType::Scram => {
            let mut value = ScramValue::of(&credentials)?;
            (value.salt, value.server_key, value.stored_key) = (None, None, None);
            credentials.credentials_value = value.to_text()?;
            return Ok(credentials);
        }
    }
    let mut value = BasicValue::of(&credentials)?;
    let is_set = value.password.take().is_some();
    credentials.credentials_value = value.to_text()?;
    let mut info = match credentials.additional_info {
        Value::Object(info) => info,
        _ => Map::new(),
    };
    info.insert(PASSWORD_IS_SET.to_owned(), is_set.into());
    credentials.additional_info = Value::Object(info);
    Ok(credentials)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::test_credentials;
    use super::*;

    fn checked(kind: MqttCredentialsType, value: &Value) -> Result<String, String> {
        let mut credentials = test_credentials(kind, value);
        check(&mut credentials)
            .map(|()| credentials.credentials_id)
            .map_err(|error| error.message().to_owned())
    }

    #[test]
    fn credentials_are_found_by_who_has_them() {
        let rules = json!({ "pubAuthRulePatterns": [".*"], "subAuthRulePatterns": null });
        let basic = |client: Value, user: Value| {
            let value = json!({ "clientId": client, "userName": user, "authRules": rules });
            checked(MqttCredentialsType::MqttBasic, &value)
        };
        assert_eq!(basic(json!("c"), json!(null)), Ok("client_id|c".to_owned()));
        assert_eq!(basic(json!(""), json!("u")), Ok("username|u".to_owned()));
        assert_eq!(basic(json!("c"), json!("u")), Ok("mixed|u|c".to_owned()));
        assert!(basic(json!(null), json!("")).is_err());
        assert!(basic(json!("c".repeat(256)), json!(null)).is_err());
        let value =
            json!({ "certCnPattern": "d-.*", "certCnIsRegex": true, "authRulesMapping": { ".*": rules } });
        assert_eq!(
            checked(MqttCredentialsType::X509, &value),
            Ok("ssl|d-.*".to_owned())
        );
        let value = json!({ "userName": "u", "algorithm": "SHA_256", "authRules": rules });
        assert_eq!(
            checked(MqttCredentialsType::Scram, &value),
            Ok("scram|u".to_owned())
        );
    }

    #[test]
    fn what_cannot_work_is_refused() {
        let basic = MqttCredentialsType::MqttBasic;
        for (kind, value, message) in [
            (basic, json!({ "clientId": "c" }), "AuthRules are null!"),
            (
                basic,
                json!({ "clientId": "c", "authRules": { "pub": ["("] } }),
                "Publish auth rule patterns should be a valid regexes!",
            ),
            (
                basic,
                json!({ "clientId": "c", "authRules": { "sub": ["a", "*"] } }),
                "Subscribe auth rule patterns should be a valid regexes!",
            ),
            (basic, json!(7), "Could not parse client credentials!"),
            (
                MqttCredentialsType::X509,
                json!({ "certCnPattern": "a" }),
                "Authorization rules mapping should be specified!",
            ),
            (
                MqttCredentialsType::X509,
                json!({ "certCnPattern": "(", "certCnIsRegex": true }),
                "Certificate common name pattern [(] must be a valid regex",
            ),
            (
                MqttCredentialsType::X509,
                json!({ "certCnPattern": "a", "authRulesMapping": { "(": {} } }),
                "Certificate matcher regex [(] must be a valid regex",
            ),
            (
                MqttCredentialsType::Scram,
                json!({ "userName": "u" }),
                "Could not parse client credentials!",
            ),
            (
                MqttCredentialsType::Scram,
                json!({ "algorithm": "SHA_256", "userName": "" }),
                "User name is empty!",
            ),
            (
                MqttCredentialsType::Scram,
                json!({ "algorithm": "SHA_512", "userName": "u" }),
                "AuthRules are null!",
            ),
        ] {
            assert_eq!(checked(kind, &value), Err(message.to_owned()));
        }
    }

    #[test]
    fn credentials_for_certificates_keep_their_own_fields_alone() {
        let value = json!({
            "certCnPattern": "a", "password": "secret", "authRulesMapping": { ".*": { "pub": ["x"] } },
        });
        let mut credentials = test_credentials(MqttCredentialsType::X509, &value);
        check(&mut credentials).expect("credentials");
        let kept: Value = serde_json::from_str(&credentials.credentials_value).expect("JSON");
        let rules = json!({ "pubAuthRulePatterns": ["x"], "subAuthRulePatterns": null });
        assert_eq!(
            kept,
            json!({ "certCnPattern": "a", "certCnIsRegex": false, "authRulesMapping": { ".*": rules } })
        );
    }

    #[test]
    fn a_password_is_not_shown() {
        let value = json!({ "clientId": "c", "password": "hash" });
        let seen = shown(test_credentials(MqttCredentialsType::MqttBasic, &value)).expect("a value");
        assert!(!seen.credentials_value.contains("hash"));
        assert_eq!(seen.additional_info, json!({ PASSWORD_IS_SET: true }));
        let value = json!({ "userName": "u", "algorithm": "SHA_256", "salt": "c2FsdA==", "storedKey": "a2V5", "serverKey": "a2V5" });
        let seen = shown(test_credentials(MqttCredentialsType::Scram, &value)).expect("a value");
        assert!(!seen.credentials_value.contains("c2FsdA") && !seen.credentials_value.contains("a2V5"));
    }

    #[test]
    fn a_common_name_is_a_text_in_rules() {
        let rule = with_common_name("d/${cn}/.*", "a.b");
        let pattern = WholePattern::new(&rule).expect("an expression");
        assert!(pattern.matches("d/a.b/c"));
        assert!(!pattern.matches("d/axb/c"));
    }
}
