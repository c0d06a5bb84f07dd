//! The configuration of `TbSendEmailNode`, and that of the system's mail server.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::config::{ConnectorConfig, ConnectorConfigError, read, require, require_port};
use crate::lenient;
use crate::secret::Secret;

/// The configuration of a node that sends mail.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SendEmailConfig {
    /// Whether the mail server is in the system's settings.
    #[serde(deserialize_with = "lenient::boolean")]
    pub use_system_smtp_settings: bool,
    /// The mail server otherwise.
    #[serde(flatten)]
    pub smtp: SmtpConfig,
}

impl Default for SendEmailConfig {
    fn default() -> Self {
        Self {
            use_system_smtp_settings: true,
            smtp: SmtpConfig::default(),
        }
    }
}

impl ConnectorConfig for SendEmailConfig {
    /// In two parts: of what is flattened, an error could not name the field.
    fn from_json(configuration: &Value) -> Result<Self, ConnectorConfigError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct SystemSmtpChoice {
            #[serde(default = "yes", deserialize_with = "lenient::boolean")]
            use_system_smtp_settings: bool,
        }
        fn yes() -> bool {
            true
        }
        let config = Self {
            use_system_smtp_settings: read::<SystemSmtpChoice>(configuration)?.use_system_smtp_settings,
            smtp: read(configuration)?,
        };
        config.validate()?;
        Ok(config)
    }

    fn validate(&self) -> Result<(), ConnectorConfigError> {
        if self.use_system_smtp_settings {
            Ok(())
        } else {
            self.smtp.validate()
        }
    }
}

/// A mail server. The system's settings under the key `mail` have the same fields.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SmtpConfig {
    /// The sender of mails that name none; only in the system's settings.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(skip)]
    pub mail_from: String,
    /// The host.
    #[serde(deserialize_with = "lenient::string")]
    pub smtp_host: String,
    /// The port.
    #[serde(deserialize_with = "lenient::integer")]
    pub smtp_port: u16,
    /// The user name; nobody logs in if it is empty.
    #[serde(deserialize_with = "lenient::string")]
    pub username: String,
    /// The password.
    pub password: Secret,
    /// Whether connections are encrypted from the beginning.
    #[serde(deserialize_with = "protocol")]
    #[schemars(schema_with = "protocol_schema")]
    pub smtp_protocol: SmtpProtocol,
    /// How long a mail may take, in milliseconds; 0 means the 10 seconds of the default.
    #[serde(deserialize_with = "lenient::integer")]
    #[schemars(extend("x-unit" = "ms"))]
    pub timeout: u32,
    /// Whether connections of `smtp` are encrypted if the server offers it.
    #[serde(deserialize_with = "lenient::boolean")]
    pub enable_tls: bool,
    /// The lowest version of TLS, as `TLSv1.2`; nothing older is spoken.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(extend("enum" = TLS_VERSIONS))]
    pub tls_version: String,
    /// Whether to go through an HTTP proxy.
    #[serde(deserialize_with = "lenient::boolean")]
    pub enable_proxy: bool,
    /// The host of the proxy.
    #[serde(deserialize_with = "lenient::string")]
    pub proxy_host: String,
    /// The port of the proxy.
    #[serde(deserialize_with = "lenient::integer")]
    pub proxy_port: u16,
    /// The user name at the proxy, if it asks for one.
    #[serde(deserialize_with = "lenient::string")]
    pub proxy_user: String,
    /// The password at the proxy.
    pub proxy_password: Secret,
    /// Whether the password is an access token (XOAUTH2); only in the system's settings.
    #[serde(deserialize_with = "lenient::boolean")]
    #[schemars(skip)]
    pub enable_oauth2: bool,
}

/// How a connection begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SmtpProtocol {
    /// In clear.
    #[default]
    Smtp,
    /// Encrypted.
    Smtps,
}

const TLS_VERSIONS: [&str; 4] = ["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];

fn protocol_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["smtp", "smtps"] })
}

fn protocol<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SmtpProtocol, D::Error> {
    match Value::deserialize(deserializer)?.as_str() {
        Some(text) if text.eq_ignore_ascii_case("smtp") => Ok(SmtpProtocol::Smtp),
        Some(text) if text.eq_ignore_ascii_case("smtps") => Ok(SmtpProtocol::Smtps),
        _ => Err(serde::de::Error::custom("must be smtp or smtps")),
    }
}

impl Default for SmtpConfig {
    fn default() -> Self {
        Self {
            mail_from: String::new(),
            smtp_host: "localhost".to_owned(),
            smtp_port: 25,
            username: String::new(),
            password: Secret::default(),
            smtp_protocol: SmtpProtocol::Smtp,
            timeout: Self::DEFAULT_TIMEOUT,
            enable_tls: false,
            tls_version: "TLSv1.2".to_owned(),
            enable_proxy: false,
            proxy_host: String::new(),
            proxy_port: 0,
            proxy_user: String::new(),
            proxy_password: Secret::default(),
            enable_oauth2: false,
        }
    }
}

impl SmtpConfig {
    const DEFAULT_TIMEOUT: u32 = 10_000;

    pub(super) fn time(&self) -> std::time::Duration {
        let millis = if self.timeout == 0 {
            Self::DEFAULT_TIMEOUT
        } else {
            self.timeout
        };
        std::time::Duration::from_millis(millis.into())
    }
}

impl ConnectorConfig for SmtpConfig {
    fn validate(&self) -> Result<(), ConnectorConfigError> {
        require("smtpHost", &self.smtp_host)?;
        require_port("smtpPort", self.smtp_port)?;
        if self.enable_tls
            && !self.tls_version.is_empty()
            && !TLS_VERSIONS.contains(&self.tls_version.as_str())
        {
            return Err(ConnectorConfigError::new(
                "tlsVersion",
                "must be TLSv1, TLSv1.1, TLSv1.2 or TLSv1.3",
            ));
        }
        if self.enable_proxy {
            require("proxyHost", &self.proxy_host)?;
            require_port("proxyPort", self.proxy_port)?;
        }
        Ok(())
    }
}
