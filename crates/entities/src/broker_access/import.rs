//! Many `MQTT_BASIC` credentials from one CSV text.

use fieldline_model::entity::{ImportResult, MqttClientCredentials, MqttClientType, MqttCredentialsType};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::service::{ATTEMPTS, changed_by_others};
use super::values::{self, BasicValue, TopicRuleLists};
use super::{AccessState, BrokerAccessService};
use crate::services::{ServiceError, ServiceResult, csv};

/// Most rows of one text: each password takes its time.
const MAX_ROWS: usize = 1_000;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum CredentialsColumn {
    Name,
    Description,
    ClientType,
    ClientId,
    Username,
    Password,
    SubAuthRulePatterns,
    PubAuthRulePatterns,
}

/// A text, and how it is read.
#[derive(Debug, Clone)]
pub struct CredentialsImport<'a> {
    /// The whole CSV text.
    pub file: &'a str,
    /// Its columns in their order.
    pub columns: &'a [CredentialsColumn],
    /// What stands between two cells.
    pub delimiter: char,
    /// What stands between two rules of a cell.
    pub rules_delimiter: char,
    /// Whether the first line has names of columns.
    pub has_header: bool,
}

/// The rules of a cell; an empty one permits nothing.
fn rules(cell: &str, delimiter: char) -> Option<Vec<String>> {
    if cell.is_empty() {
        return None;
    }
    let rules = cell.split(delimiter).map(str::trim);
    Some(rules.filter(|rule| !rule.is_empty()).map(str::to_owned).collect())
}

impl BrokerAccessService {
    /// Creates credentials, or changes those of the same name, one for each line. A line that is wrong is reported, and the
    /// others are stored.
    ///
    /// # Errors
    /// The text has too many lines, or its columns are none.
    pub async fn import(&self, import: CredentialsImport<'_>) -> ServiceResult<ImportResult> {
        if !import.columns.contains(&CredentialsColumn::Name) {
            return Err(ServiceError::invalid(
                "The mapping must have a column of the type NAME!",
            ));
        }
        let mut rows = Vec::new();
        let mut is_header = import.has_header;
        let read = csv::each_row(import.file, import.delimiter, |row| {
            if !std::mem::take(&mut is_header) && rows.len() <= MAX_ROWS {
                rows.push((row.line, row.cells));
            }
        });
        if read.is_err() || rows.len() > MAX_ROWS {
            return Err(ServiceError::invalid(format!(
                "The file must not have more than {MAX_ROWS} lines!"
            )));
        }
        let mut result = ImportResult::default();
        for (line, cells) in rows {
            match self.0.import_row(&import, &cells).await {
                Ok(true) => result.created += 1,
                Ok(false) => result.updated += 1,
                Err(error) => {
                    result.errors += 1;
                    result.errors_list.push(format!("Line {line}: {error}"));
                }
            }
        }
        Ok(result)
    }
}

impl AccessState {
    /// Saves the credentials of a row; returns whether they are new.
    async fn import_row(&self, import: &CredentialsImport<'_>, cells: &[String]) -> ServiceResult<bool> {
        for _ in 0..ATTEMPTS {
            if let Some(is_new) = self.try_row(import, cells).await? {
                return Ok(is_new);
            }
        }
        Err(changed_by_others())
    }

    /// Like [`Self::import_row`]; `None` where somebody has changed the credentials meanwhile.
    async fn try_row(&self, import: &CredentialsImport<'_>, cells: &[String]) -> ServiceResult<Option<bool>> {
        if cells.len() > import.columns.len() {
            return Err(ServiceError::invalid("There are more cells than columns!"));
        }
        let row = || {
            import
                .columns
                .iter()
                .copied()
                .zip(cells.iter().map(String::as_str))
        };
        let named = row().find(|(column, _)| *column == CredentialsColumn::Name);
        let name = named.map_or("", |(_, cell)| cell);
        let before = self.context.stores.mqtt_clients.by_name(name).await?;
        let mut credentials = match &before {
            Some(before) if before.credentials_type != MqttCredentialsType::MqttBasic => {
                return Err(ServiceError::invalid(format!(
                    "Credentials with name '{name}' already exists and it's not MQTT Basic credentials"
                )));
            }
            Some(before) => before.clone(),
            None => MqttClientCredentials {
                id: Uuid::nil(),
                created_time: 0,
                name: name.to_owned(),
                client_type: MqttClientType::Device,
                credentials_type: MqttCredentialsType::MqttBasic,
                credentials_id: String::new(),
                credentials_value: String::new(),
                additional_info: json!({}),
            },
        };
        let mut value = match &before {
            Some(before) => BasicValue::of(before)?,
            None => {
                let all = Some(vec![".*".to_owned()]);
                BasicValue {
                    auth_rules: Some(TopicRuleLists {
                        pub_auth_rule_patterns: all.clone(),
                        sub_auth_rule_patterns: all,
                    }),
                    ..BasicValue::default()
                }
            }
        };
        let mut password = None;
        let mut lists = value.auth_rules.take().unwrap_or_default();
        for (column, cell) in row() {
            let text = || Some(cell.to_owned());
            match column {
                CredentialsColumn::PubAuthRulePatterns => {
                    lists.pub_auth_rule_patterns = rules(cell, import.rules_delimiter);
                }
                CredentialsColumn::SubAuthRulePatterns => {
                    lists.sub_auth_rule_patterns = rules(cell, import.rules_delimiter);
                }
                _ if cell.is_empty() => {}
                CredentialsColumn::Name => {}
                CredentialsColumn::ClientId => value.client_id = text(),
                CredentialsColumn::Username => value.user_name = text(),
                CredentialsColumn::Password => password = Some(cell),
                CredentialsColumn::ClientType => {
                    let kind = MqttClientType::named(&cell.to_uppercase());
                    credentials.client_type =
                        kind.ok_or_else(|| ServiceError::invalid(format!("Unknown client type '{cell}'")))?;
                }
                CredentialsColumn::Description => {
                    if !credentials.additional_info.is_object() {
                        credentials.additional_info = json!({});
                    }
                    credentials.additional_info["description"] = Value::from(cell);
                }
            }
        }
        value.auth_rules = Some(lists);
        if password.is_some() && value.password.is_some() {
            return Err(ServiceError::invalid(format!(
                "['{name}'] It is not allowed to change the credentials' password"
            )));
        }
        credentials.credentials_value = value.to_text()?;
        values::check(&mut credentials)?;
        self.check_free(&credentials, before.as_ref()).await?;
        // Hashed last: it is dear.
        if password.is_some() {
            value.password = self.hashed(password).await?;
            credentials.credentials_value = value.to_text()?;
        }
        let stored = self.store(credentials, before.as_ref()).await?;
        Ok(stored.map(|_| before.is_none()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_rules_with_something_between_them() {
        let list = |rules: &[&str]| Some(rules.iter().map(|rule| (*rule).to_owned()).collect::<Vec<_>>());
        assert_eq!(rules("a/.*; b ;", ';'), list(&["a/.*", "b"]));
        assert_eq!(rules("", ';'), None);
    }
}
