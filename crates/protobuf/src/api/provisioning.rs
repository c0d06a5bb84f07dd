//! Provisioning messages, by which devices request credentials. They contain secrets, hence no `Debug`.

use prost::{Enumeration, Message};

/// The kind of credentials by which a device authenticates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum CredentialsTypeProto {
    /// A token.
    AccessToken = 0,
    /// The hash of an X.509 certificate.
    X509Certificate = 1,
    /// MQTT client id, user name and password.
    MqttBasic = 2,
    /// LwM2M security configuration.
    Lwm2mCredentials = 3,
}

/// The outcome of provisioning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum ResponseStatus {
    /// Unknown.
    Unknown = 0,
    /// The device has credentials.
    Success = 1,
    /// No profile has this key and secret.
    NotFound = 2,
    /// The profile does not provision this device.
    Failure = 3,
}

/// A device's request for credentials.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct ProvisionDeviceRequestMsg {
    /// Name of the device.
    #[prost(string, tag = "1")]
    pub device_name: String,
    /// Kind of the credentials that the device supplies.
    #[prost(enumeration = "CredentialsTypeProto", tag = "2")]
    pub credentials_type: i32,
    /// Key and secret of the profile.
    #[prost(message, optional, tag = "3")]
    pub provision_device_credentials_msg: Option<ProvisionDeviceCredentialsMsg>,
    /// The credentials that the device supplies.
    #[prost(message, optional, tag = "4")]
    pub credentials_data_proto: Option<CredentialsDataProto>,
    /// Whether the device is a gateway.
    #[prost(bool, tag = "5")]
    pub gateway: bool,
}

/// Key and secret of a profile.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct ProvisionDeviceCredentialsMsg {
    /// Key.
    #[prost(string, tag = "1")]
    pub provision_device_key: String,
    /// Secret.
    #[prost(string, tag = "2")]
    pub provision_device_secret: String,
}

/// Credentials supplied by a device: the field of their kind is set.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct CredentialsDataProto {
    /// Access token.
    #[prost(message, optional, tag = "1")]
    pub validate_device_token_request_msg: Option<ValidateDeviceTokenRequestMsg>,
    /// Certificate.
    #[prost(message, optional, tag = "2")]
    pub validate_device_x509_cert_request_msg: Option<ValidateDeviceX509CertRequestMsg>,
    /// MQTT basic credentials.
    #[prost(message, optional, tag = "3")]
    pub validate_basic_mqtt_cred_request_msg: Option<ValidateBasicMqttCredRequestMsg>,
}

/// An access token.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct ValidateDeviceTokenRequestMsg {
    /// The token.
    #[prost(string, tag = "1")]
    pub token: String,
}

/// A certificate.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct ValidateDeviceX509CertRequestMsg {
    /// Its text.
    #[prost(string, tag = "1")]
    pub hash: String,
}

/// MQTT basic credentials.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct ValidateBasicMqttCredRequestMsg {
    /// Client id.
    #[prost(string, tag = "1")]
    pub client_id: String,
    /// User name.
    #[prost(string, tag = "2")]
    pub user_name: String,
    /// Password.
    #[prost(string, tag = "3")]
    pub password: String,
}

/// The response to a provisioning request.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct ProvisionDeviceResponseMsg {
    /// The outcome.
    #[prost(enumeration = "ResponseStatus", tag = "1")]
    pub status: i32,
    /// Kind of the credentials.
    #[prost(enumeration = "CredentialsTypeProto", tag = "2")]
    pub credentials_type: i32,
    /// The credentials.
    #[prost(string, tag = "3")]
    pub credentials_value: String,
}
