//! The configuration of `TbSendSmsNode` and of the providers it may use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{ConnectorConfig, ConnectorConfigError, require, require_port};
use crate::lenient;
use crate::secret::Secret;

/// The configuration of a node that sends text messages.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SendSmsConfig {
    /// Pattern of the phone numbers, separated by commas.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(title = "Phone numbers", extend("x-editor" = "template"))]
    pub numbers_to_template: String,
    /// Pattern of the message.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(title = "Message", extend("x-editor" = "template"))]
    pub sms_message_template: String,
    /// Whether the provider is in the system's settings.
    #[serde(deserialize_with = "lenient::boolean")]
    pub use_system_sms_settings: bool,
    /// The provider otherwise.
    #[serde(default)]
    pub sms_provider_configuration: Option<SmsProviderConfig>,
}

impl Default for SendSmsConfig {
    fn default() -> Self {
        Self {
            numbers_to_template: "${userPhone}".to_owned(),
            sms_message_template: "Device ${deviceName} has high temperature ${temp}".to_owned(),
            use_system_sms_settings: true,
            sms_provider_configuration: None,
        }
    }
}

impl ConnectorConfig for SendSmsConfig {
    fn validate(&self) -> Result<(), ConnectorConfigError> {
        const PROVIDER: &str = "smsProviderConfiguration";
        require("numbersToTemplate", &self.numbers_to_template)?;
        require("smsMessageTemplate", &self.sms_message_template)?;
        if self.use_system_sms_settings {
            return Ok(());
        }
        match &self.sms_provider_configuration {
            Some(provider) => provider.validate().map_err(|error| {
                ConnectorConfigError::new(format!("{PROVIDER}.{}", error.field()), error.problem())
            }),
            None => Err(ConnectorConfigError::new(PROVIDER, "is missing")),
        }
    }
}

/// Who takes text messages.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum SmsProviderConfig {
    /// Amazon's Simple Notification Service.
    #[serde(rename = "AWS_SNS")]
    AwsSns(AwsSnsSmsConfig),
    /// Twilio.
    #[serde(rename = "TWILIO")]
    Twilio(TwilioConfig),
    /// A message centre that speaks SMPP.
    #[serde(rename = "SMPP")]
    Smpp(Box<SmppConfig>),
}

impl ConnectorConfig for SmsProviderConfig {
    fn validate(&self) -> Result<(), ConnectorConfigError> {
        match self {
            Self::AwsSns(config) => {
                require("accessKeyId", &config.access_key_id)?;
                require("secretAccessKey", config.secret_access_key.expose())?;
                require("region", &config.region)
            }
            Self::Twilio(config) => {
                require("accountSid", &config.account_sid)?;
                require("accountToken", config.account_token.expose())?;
                require("numberFrom", &config.number_from)?;
                let from = config.number_from.trim();
                if is_phone_number(from) || from.starts_with("PN") || from.starts_with("MG") {
                    Ok(())
                } else {
                    let problem = "must be a phone number in E.164 format, the SID of a number or the SID of a \
                                   messaging service";
                    Err(ConnectorConfigError::new("numberFrom", problem))
                }
            }
            Self::Smpp(config) => config.validate(),
        }
    }
}

/// Access to Amazon's Simple Notification Service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AwsSnsSmsConfig {
    /// The access key.
    #[serde(deserialize_with = "lenient::string")]
    pub access_key_id: String,
    /// Its secret.
    pub secret_access_key: Secret,
    /// The region.
    #[serde(deserialize_with = "lenient::string")]
    pub region: String,
}

/// Access to Twilio.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct TwilioConfig {
    /// The account.
    #[serde(deserialize_with = "lenient::string")]
    pub account_sid: String,
    /// Its token.
    pub account_token: Secret,
    /// The number, or the SID, that messages come from.
    #[serde(deserialize_with = "lenient::string")]
    pub number_from: String,
}

/// Access to a message centre.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SmppConfig {
    /// The version of the protocol.
    pub protocol_version: SmppVersion,
    /// The host.
    #[serde(deserialize_with = "lenient::string")]
    pub host: String,
    /// The port.
    #[serde(deserialize_with = "lenient::integer")]
    pub port: u16,
    /// Who connects.
    #[serde(deserialize_with = "lenient::string")]
    pub system_id: String,
    /// The password.
    pub password: Secret,
    /// The kind of system that connects.
    #[serde(deserialize_with = "lenient::string")]
    pub system_type: String,
    /// Whether to bind as transmitter, receiver or both.
    pub bind_type: SmppBindType,
    /// The service that is asked for.
    #[serde(deserialize_with = "lenient::string")]
    pub service_type: String,
    /// Who sends; left to the message centre if it is empty.
    #[serde(deserialize_with = "lenient::string")]
    pub source_address: String,
    /// The type of the sender's number.
    #[serde(deserialize_with = "lenient::integer")]
    pub source_ton: u8,
    /// The numbering plan of the sender's number.
    #[serde(deserialize_with = "lenient::integer")]
    pub source_npi: u8,
    /// The type of the receiver's number.
    #[serde(deserialize_with = "lenient::integer")]
    pub destination_ton: u8,
    /// The numbering plan of the receiver's number.
    #[serde(deserialize_with = "lenient::integer")]
    pub destination_npi: u8,
    /// The addresses that are served here.
    #[serde(deserialize_with = "lenient::string")]
    pub address_range: String,
    /// The number of the alphabet of messages.
    #[serde(deserialize_with = "lenient::integer")]
    #[schemars(range(max = 14))]
    pub coding_scheme: u8,
}

/// A version of SMPP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SmppVersion {
    /// SMPP 3.3.
    #[serde(rename = "3.3")]
    V33,
    /// SMPP 3.4.
    #[default]
    #[serde(rename = "3.4")]
    V34,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SmppBindType {
    /// Sending.
    #[default]
    #[serde(rename = "TX")]
    Transmitter,
    /// Receiving.
    #[serde(rename = "RX")]
    Receiver,
    /// Both.
    #[serde(rename = "TRX")]
    Transceiver,
}

impl Default for SmppConfig {
    fn default() -> Self {
        Self {
            protocol_version: SmppVersion::V34,
            host: String::new(),
            port: 0,
            system_id: String::new(),
            password: Secret::default(),
            system_type: String::new(),
            bind_type: SmppBindType::Transmitter,
            service_type: String::new(),
            source_address: String::new(),
            source_ton: 5,
            source_npi: 0,
            destination_ton: 5,
            destination_npi: 0,
            address_range: String::new(),
            coding_scheme: 0,
        }
    }
}

impl SmppConfig {
    fn validate(&self) -> Result<(), ConnectorConfigError> {
        require("host", &self.host)?;
        require_port("port", self.port)?;
        require("systemId", &self.system_id)?;
        require("password", self.password.expose())?;
        // The lengths that the protocol has room for, without the final zero.
        for (field, value, longest) in [
            ("systemId", self.system_id.as_str(), 15),
            ("password", self.password.expose(), 8),
            ("systemType", self.system_type.as_str(), 12),
            ("serviceType", self.service_type.as_str(), 5),
            ("sourceAddress", self.source_address.as_str(), 20),
            ("addressRange", self.address_range.as_str(), 40),
        ] {
            if value.len() > longest || value.contains('\0') {
                return Err(ConnectorConfigError::new(
                    field,
                    format!("must have at most {longest} characters"),
                ));
            }
        }
        if self.coding_scheme > 14 {
            return Err(ConnectorConfigError::new(
                "codingScheme",
                "must be between 0 and 14",
            ));
        }
        Ok(())
    }
}

/// Whether a text is a phone number in E.164 format.
pub(super) fn is_phone_number(text: &str) -> bool {
    text.strip_prefix('+').is_some_and(|digits| {
        (2..=15).contains(&digits.len())
            && !digits.starts_with('0')
            && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}
