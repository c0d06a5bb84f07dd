//! How a client proves who it is.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::config::ConnectorConfigError;
use crate::lenient;
use crate::secret::Secret;
use crate::tls::{self, TlsIdentity};

/// The credentials of a node that connects to a server of the tenant's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum ClientCredentials {
    /// None.
    #[default]
    #[serde(rename = "anonymous")]
    Anonymous,
    /// User name and password.
    #[serde(rename = "basic")]
    Basic(BasicCredentials),
    /// A shared access key of an Azure IoT Hub.
    #[serde(rename = "sas")]
    Sas(SasCredentials),
    /// Certificates in PEM.
    #[serde(rename = "cert.PEM")]
    CertPem(CertPemCredentials),
}

/// User name and password.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BasicCredentials {
    /// The user name.
    #[serde(deserialize_with = "lenient::string")]
    pub username: String,
    /// The password.
    pub password: Secret,
}

/// A shared access key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SasCredentials {
    /// The key in Base64.
    pub sas_key: Secret,
    /// The authorities to trust, in PEM; those of the system if empty.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(extend("x-editor" = "pem"))]
    pub ca_cert: String,
}

/// Certificates in PEM.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CertPemCredentials {
    /// The authorities to trust; those of the system if empty.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(extend("x-editor" = "pem"))]
    pub ca_cert: String,
    /// The certificate of the client, with its chain.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(extend("x-editor" = "pem"))]
    pub cert: String,
    /// The private key of the client.
    #[schemars(extend("x-editor" = "pem"))]
    pub private_key: Secret,
    /// What the private key is encrypted with.
    // The other name is TBMQ's.
    #[serde(alias = "privateKeyPassword")]
    pub password: Secret,
}

impl ClientCredentials {
    /// Leaves of the schema what servers of MQTT and HTTP take.
    pub(crate) fn for_servers(schema: &mut schemars::Schema) {
        keep_variants(schema, &["anonymous", "basic", "cert.PEM"]);
    }

    /// Leaves of the schema what an Azure IoT Hub takes.
    pub(crate) fn for_azure(schema: &mut schemars::Schema) {
        keep_variants(schema, &["sas", "cert.PEM"]);
    }

    /// Makes what TLS connections need; fails on PEM that cannot be read.
    pub(crate) fn tls(&self) -> Result<rustls::ClientConfig, ConnectorConfigError> {
        match self {
            Self::Anonymous | Self::Basic(_) => tls::client_config("", None),
            Self::Sas(sas) => tls::client_config(&sas.ca_cert, None),
            Self::CertPem(pem) => {
                let identity = (!pem.cert.is_empty() && !pem.private_key.is_empty()).then_some(TlsIdentity {
                    cert: &pem.cert,
                    private_key: &pem.private_key,
                    password: &pem.password,
                });
                tls::client_config(&pem.ca_cert, identity)
            }
        }
        .map_err(|error| ConnectorConfigError::new(format!("credentials.{}", error.field()), error.problem()))
    }
}

fn keep_variants(schema: &mut schemars::Schema, tags: &[&str]) {
    if let Some(Value::Array(variants)) = schema.get_mut("oneOf") {
        variants.retain(|variant| {
            let tag = variant.pointer("/properties/type/const").and_then(Value::as_str);
            tag.is_some_and(|tag| tags.contains(&tag))
        });
    }
}
