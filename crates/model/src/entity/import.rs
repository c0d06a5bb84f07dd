//! Imports of many entities from one CSV text.

use serde::{Deserialize, Serialize};

/// What a column holds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(as = BulkImportColumnType)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum ImportColumnType {
    Name,
    Type,
    Label,
    SharedAttribute,
    ServerAttribute,
    Timeseries,
    AccessToken,
    X509,
    MqttClientId,
    MqttUserName,
    MqttPassword,
    Lwm2mClientEndpoint,
    Lwm2mClientSecurityConfigMode,
    Lwm2mClientIdentity,
    Lwm2mClientKey,
    Lwm2mClientCert,
    Lwm2mBootstrapServerSecurityMode,
    Lwm2mBootstrapServerPublicKeyOrId,
    Lwm2mBootstrapServerSecretKey,
    Lwm2mServerSecurityMode,
    Lwm2mServerClientPublicKeyOrId,
    Lwm2mServerClientSecretKey,
    SnmpHost,
    SnmpPort,
    SnmpVersion,
    SnmpCommunityString,
    IsGateway,
    Description,
    RoutingKey,
    Secret,
}

/// A column of the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = BulkImportColumnMapping)]
pub struct ImportColumn {
    /// What it holds.
    #[serde(rename = "type")]
    pub column_type: ImportColumnType,
    /// Name of the attribute or series, for columns of those.
    pub key: Option<String>,
}

/// How the text is read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
#[schema(as = BulkImportMapping)]
pub struct ImportMapping {
    /// Its columns in their order.
    #[serde(deserialize_with = "super::null_as_default")]
    pub columns: Vec<ImportColumn>,
    /// What stands between two cells; a comma where absent.
    #[schema(value_type = Option<String>)]
    pub delimiter: Option<char>,
    /// Whether attributes and series of entities that exist already are saved; their other fields are in any case.
    pub update: Option<bool>,
    /// Whether the first line has names of columns.
    pub header: Option<bool>,
}

/// Many entities at once.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, utoipa::ToSchema)]
#[serde(default)]
#[schema(as = BulkImportRequest)]
pub struct ImportRequest {
    /// The whole CSV text.
    #[serde(deserialize_with = "super::null_as_default")]
    pub file: String,
    /// How it is read.
    #[serde(deserialize_with = "super::null_as_default")]
    pub mapping: ImportMapping,
}

/// What came of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BulkImportResult)]
pub struct ImportResult {
    /// Entities that were created.
    pub created: u32,
    /// Entities that existed and were changed.
    pub updated: u32,
    /// Lines that were left out.
    pub errors: u32,
    /// Why, line by line.
    pub errors_list: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_names_of_the_api() {
        let name = |column: ImportColumnType| serde_json::to_value(column).unwrap();
        assert_eq!(name(ImportColumnType::X509), "X509");
        assert_eq!(name(ImportColumnType::MqttUserName), "MQTT_USER_NAME");
        assert_eq!(
            name(ImportColumnType::Lwm2mBootstrapServerPublicKeyOrId),
            "LWM2M_BOOTSTRAP_SERVER_PUBLIC_KEY_OR_ID"
        );
        let mapping: ImportMapping =
            serde_json::from_str(r#"{"columns":[{"type":"NAME"}],"delimiter":";","header":true}"#).unwrap();
        assert_eq!((mapping.delimiter, mapping.update), (Some(';'), None));
    }
}
