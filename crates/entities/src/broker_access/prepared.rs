//! Credentials as log-ins use them: read, compiled, and cached.

use std::sync::Arc;

use fieldline_core::ports::ClientGrant;
use fieldline_model::entity::{MqttClientCredentials, MqttCredentialsType};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use super::patterns::PartPattern;
use super::rules::CompiledRules;
use super::scram::{ScramKeys, ScramValue};
use super::values::{BasicValue, CertificateValue, TopicRuleLists, is_topic_level};

/// A hash of a password that only this process can make.
pub(super) type PasswordDigest = [u8; 32];

/// Hashes passwords with a key of this process, so that what was right before is recognized without the slow hash.
pub(super) struct PasswordDigester([u8; 32]);

impl PasswordDigester {
    pub(super) fn new() -> Self {
        Self(rand::random())
    }

    pub(super) fn digest(&self, password: &[u8]) -> PasswordDigest {
        let mut hasher = Sha256::new();
        hasher.update(self.0);
        hasher.update(password);
        hasher.update(self.0);
        hasher.finalize().into()
    }
}

/// Credentials that are ready to let somebody in.
pub(super) struct PreparedCredentials {
    /// As they are stored.
    pub(super) stored: MqttClientCredentials,
    pub(super) kind: PreparedKind,
}

/// What is particular about a type.
pub(super) enum PreparedKind {
    /// `MQTT_BASIC`.
    Basic {
        /// The client that they are for; `None` for any.
        client_id: Option<String>,
        /// The user that they are for; `None` for any.
        user_name: Option<String>,
        /// `None` where any password will do.
        password_hash: Option<String>,
        /// The password that was right last.
        right: Mutex<Option<PasswordDigest>>,
        rules: Arc<CompiledRules>,
    },
    /// `X_509`.
    Certificate {
        /// What is looked for in common names; `None` where they have to be equal.
        pattern: Option<PartPattern>,
        groups: Vec<(PartPattern, TopicRuleLists)>,
    },
    /// `SCRAM`.
    Scram {
        keys: ScramKeys,
        rules: Arc<CompiledRules>,
    },
}

impl PreparedCredentials {
    /// Reads and compiles credentials.
    ///
    /// # Errors
    /// They are not what this program stores.
    pub(super) fn new(stored: MqttClientCredentials) -> Result<Self, String> {
        let kind = match stored.credentials_type {
            MqttCredentialsType::MqttBasic => {
                let value = BasicValue::of(&stored).map_err(|error| error.to_string())?;
                let lists = value.auth_rules.unwrap_or_default();
                PreparedKind::Basic {
                    client_id: value.client_id.filter(|client| !client.is_empty()),
                    user_name: value.user_name.filter(|user| !user.is_empty()),
                    password_hash: value.password.filter(|hash| !hash.is_empty()),
                    right: Mutex::new(None),
                    rules: Arc::new(CompiledRules::new(&[&lists], None)?),
                }
            }
            MqttCredentialsType::X509 => {
                let value = CertificateValue::of(&stored).map_err(|error| error.to_string())?;
                let name = value.cert_cn_pattern.unwrap_or_default();
                let groups = value.auth_rules_mapping.unwrap_or_default();
                PreparedKind::Certificate {
                    pattern: match value.cert_cn_is_regex {
                        true => Some(PartPattern::new(&name)?),
                        false => None,
                    },
                    groups: groups
                        .into_iter()
                        .map(|(matcher, rules)| Ok((PartPattern::new(&matcher)?, rules)))
                        .collect::<Result<_, String>>()?,
                }
            }
            MqttCredentialsType::Scram => {
                let value = ScramValue::of(&stored).map_err(|error| error.to_string())?;
                let lists = value.auth_rules.clone().unwrap_or_default();
                PreparedKind::Scram {
                    keys: ScramKeys::of_value(&value).ok_or("there are no keys")?,
                    rules: Arc::new(CompiledRules::new(&[&lists], None)?),
                }
            }
        };
        Ok(Self { stored, kind })
    }

    /// Whether they are for a client that says so. What they are found by does not tell it: `a|b` and `c` look there as `a` and
    /// `b|c` do.
    pub(super) fn are_for(&self, client: &str, username: Option<&str>) -> bool {
        match &self.kind {
            PreparedKind::Basic {
                client_id, user_name, ..
            } => {
                client_id.as_deref().is_none_or(|own| own == client)
                    && user_name.as_deref().is_none_or(|own| Some(own) == username)
            }
            PreparedKind::Certificate { .. } | PreparedKind::Scram { .. } => false,
        }
    }

    /// Whether they are for the common name of a certificate, by their expression.
    pub(super) fn finds(&self, common_name: &str) -> bool {
        match &self.kind {
            PreparedKind::Certificate { pattern, .. } => {
                pattern.as_ref().is_some_and(|pattern| pattern.finds(common_name))
            }
            PreparedKind::Basic { .. } | PreparedKind::Scram { .. } => false,
        }
    }

    /// Whether they are for one common name, not for those that an expression finds. Both are found by what is written there: a
    /// name that is spelled as an expression is not one that it finds.
    pub(super) fn are_for_a_name(&self) -> bool {
        matches!(self.kind, PreparedKind::Certificate { pattern: None, .. })
    }

    /// What a client may do that has a certificate with this common name; `None` where no group of rules is for it, or one asks
    /// for a name that is no level of a topic.
    pub(super) fn certificate_grant(&self, common_name: &str) -> Option<ClientGrant> {
        let PreparedKind::Certificate { groups, .. } = &self.kind else {
            return None;
        };
        let lists: Vec<&TopicRuleLists> = groups
            .iter()
            .filter(|(matcher, _)| matcher.finds(common_name))
            .map(|(_, lists)| lists)
            .collect();
        if lists.is_empty() {
            return None;
        }
        if !is_topic_level(common_name) && lists.iter().any(|lists| lists.name_the_client()) {
            return None;
        }
        // A rule that only this common name makes too long permits nothing.
        let rules = CompiledRules::new(&lists, Some(common_name)).unwrap_or_default();
        Some(ClientGrant {
            client_type: self.stored.client_type.into(),
            rules: Some(Arc::new(rules)),
        })
    }

    /// About the memory that they take, bytes.
    pub(super) fn cost(&self) -> u64 {
        let stored = &self.stored;
        let texts = stored.name.len() + stored.credentials_id.len() + 2 * stored.credentials_value.len();
        let compiled = match &self.kind {
            PreparedKind::Basic { rules, .. } | PreparedKind::Scram { rules, .. } => rules.cost(),
            PreparedKind::Certificate { groups, .. } => (groups.len() + 1) * (16 << 10),
        };
        (size_of::<Self>() + texts + compiled) as u64
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::test_credentials;
    use super::*;

    fn prepared(kind: MqttCredentialsType, value: &Value) -> PreparedCredentials {
        PreparedCredentials::new(test_credentials(kind, value)).expect("credentials")
    }

    #[test]
    fn a_common_name_in_rules_is_one_level_of_a_topic() {
        let certified = |rule: &str| {
            let groups = json!({ ".*": { "sub": [rule] }, "^none$": { "sub": ["${cn}"] } });
            let value = json!({ "certCnPattern": ".*", "certCnIsRegex": true, "authRulesMapping": groups });
            prepared(MqttCredentialsType::X509, &value)
        };
        let own = certified("d/${cn}/.*");
        let grant = own.certificate_grant("x.1").expect("a grant");
        assert!(grant.rules.is_some_and(|rules| rules.may_subscribe("d/x.1/+")));
        for wildcard in ["+", "#", "a+", "a/b", "a\0b"] {
            assert!(own.certificate_grant(wildcard).is_none(), "{wildcard:?}");
            let all = certified("all").certificate_grant(wildcard);
            assert!(all.is_some(), "no matched rule asks for {wildcard:?}");
        }
    }

    #[test]
    fn an_expression_is_no_name() {
        for (is_expression, found) in [(true, "pump-7"), (false, "")] {
            let value = json!({ "certCnPattern": "^pump-[0-9]$", "certCnIsRegex": is_expression, "authRulesMapping": {} });
            let credentials = prepared(MqttCredentialsType::X509, &value);
            assert_eq!(credentials.are_for_a_name(), !is_expression);
            assert_eq!(credentials.finds(found), is_expression);
            assert!(!credentials.finds("^pump-[0-9]$"));
        }
    }

    #[test]
    fn credentials_are_for_the_names_in_them() {
        let basic = |client: Value, user: Value| {
            let value = json!({ "clientId": client, "userName": user, "authRules": {} });
            prepared(MqttCredentialsType::MqttBasic, &value)
        };
        let both = basic(json!("b|c"), json!("a"));
        assert!(both.are_for("b|c", Some("a")));
        assert!(!both.are_for("c", Some("a|b")) && !both.are_for("b|c", None));
        assert!(basic(json!("c"), json!("")).are_for("c", Some("any")));
        assert!(basic(json!(null), json!("u")).are_for("any", Some("u")));
    }
}
