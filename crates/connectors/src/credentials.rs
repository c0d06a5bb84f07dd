//! How a client proves who it is.

use serde::Deserialize;

use crate::config::ConnectorConfigError;
use crate::lenient;
use crate::secret::Secret;
use crate::tls::{self, TlsIdentity};

/// The credentials of a node that connects to a server of the tenant's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct BasicCredentials {
    /// The user name.
    #[serde(deserialize_with = "lenient::string")]
    pub username: String,
    /// The password.
    pub password: Secret,
}

/// A shared access key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SasCredentials {
    /// The key in Base64.
    pub sas_key: Secret,
    /// The authorities to trust, in PEM; those of the system if empty.
    #[serde(deserialize_with = "lenient::string")]
    pub ca_cert: String,
}

/// Certificates in PEM.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CertPemCredentials {
    /// The authorities to trust; those of the system if empty.
    #[serde(deserialize_with = "lenient::string")]
    pub ca_cert: String,
    /// The certificate of the client, with its chain.
    #[serde(deserialize_with = "lenient::string")]
    pub cert: String,
    /// The private key of the client.
    pub private_key: Secret,
    /// What the private key is encrypted with.
    pub password: Secret,
}

impl ClientCredentials {
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
