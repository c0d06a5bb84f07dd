//! Devices, their profiles and credentials.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::draft::stored_entity;
use crate::{CustomerId, DeviceCredentialsId, DeviceId, DeviceProfileId, EntityId, TenantId, new_uuid};

/// A device.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Device {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<DeviceId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: DeviceId,
    /// When it was created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// The tenant it belongs to; set by the platform.
    #[serde(deserialize_with = "super::null_as_default")]
    pub tenant_id: TenantId,
    /// The customer it is assigned to; null id for none.
    #[serde(deserialize_with = "super::null_as_default")]
    pub customer_id: CustomerId,
    /// Name, unique in the tenant.
    #[serde(deserialize_with = "super::null_as_default")]
    pub name: String,
    /// Name of its profile.
    #[serde(rename = "type")]
    #[serde(deserialize_with = "super::null_as_default")]
    pub device_type: String,
    /// Label for people.
    pub label: Option<String>,
    /// Its profile.
    pub device_profile_id: Option<DeviceProfileId>,
    /// `{"configuration": {...}, "transportConfiguration": {...}}`.
    pub device_data: Value,
    /// Firmware package assigned to it.
    pub firmware_id: Option<EntityId>,
    /// Software package assigned to it.
    pub software_id: Option<EntityId>,
    /// Id in the system it was imported from.
    pub external_id: Option<DeviceId>,
    /// Counts the updates, for optimistic locking.
    pub version: Option<i64>,
    /// Free-form JSON: `gateway`, `overwriteActivityTime`, `description`, …
    pub additional_info: Option<Value>,
}

stored_entity!(Device: DeviceId);

impl Device {
    /// Whether it may speak for other devices.
    pub fn is_gateway(&self) -> bool {
        self.additional_info
            .as_ref()
            .and_then(|info| info.get("gateway"))
            .and_then(Value::as_bool)
            .unwrap_or(false)
    }
}

/// A device with what lists show beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceInfo {
    /// The device.
    #[serde(flatten)]
    pub device: Device,
    /// Title of the customer it is assigned to.
    pub customer_title: Option<String>,
    /// Whether that is the public customer.
    pub customer_is_public: bool,
    /// Name of its profile.
    pub device_profile_name: String,
    /// Whether it was heard of within its inactivity time-out.
    pub active: bool,
}

/// Which transport a device profile is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum TransportType {
    /// Any, with default settings.
    #[default]
    Default,
    /// MQTT with settings of its own.
    Mqtt,
    /// CoAP with settings of its own.
    Coap,
    /// LwM2M.
    Lwm2m,
    /// SNMP.
    Snmp,
}

impl TransportType {
    /// The name in the REST API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "DEFAULT",
            Self::Mqtt => "MQTT",
            Self::Coap => "COAP",
            Self::Lwm2m => "LWM2M",
            Self::Snmp => "SNMP",
        }
    }
}

/// What devices of one kind share. `profile_data` is kept whole; what Fieldline acts on is read from it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceProfile {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<DeviceProfileId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: DeviceProfileId,
    /// When it was created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// The tenant it belongs to; set by the platform.
    #[serde(deserialize_with = "super::null_as_default")]
    pub tenant_id: TenantId,
    /// Name, unique in the tenant.
    #[serde(deserialize_with = "super::null_as_default")]
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// Picture, as a data or resource URL.
    pub image: Option<String>,
    /// Whether devices without a type get it.
    #[serde(rename = "default")]
    #[serde(deserialize_with = "super::null_as_default")]
    pub is_default: bool,
    /// Always `DEFAULT`.
    #[serde(rename = "type")]
    pub profile_type: Option<String>,
    /// Which transport it is made for.
    #[serde(deserialize_with = "super::null_as_default")]
    pub transport_type: TransportType,
    /// `DISABLED`, `ALLOW_CREATE_NEW_DEVICES`, `CHECK_PRE_PROVISIONED_DEVICES` or `X509_CERTIFICATE_CHAIN`.
    pub provision_type: Option<String>,
    /// Rule chain of its devices; the root chain where absent.
    pub default_rule_chain_id: Option<EntityId>,
    /// Dashboard shown for its devices.
    pub default_dashboard_id: Option<EntityId>,
    /// Queue of its devices' messages; `Main` where absent.
    pub default_queue_name: Option<String>,
    /// Key that devices provision themselves with.
    pub provision_device_key: Option<String>,
    /// Firmware package of its devices.
    pub firmware_id: Option<EntityId>,
    /// Software package of its devices.
    pub software_id: Option<EntityId>,
    /// Rule chain of its devices on edges.
    pub default_edge_rule_chain_id: Option<EntityId>,
    /// Id in the system it was imported from.
    pub external_id: Option<DeviceProfileId>,
    /// Counts the updates, for optimistic locking.
    pub version: Option<i64>,
    /// `configuration`, `transportConfiguration`, `provisionConfiguration`, `alarms`.
    pub profile_data: Value,
}

stored_entity!(DeviceProfile: DeviceProfileId);

impl DeviceProfile {
    /// A value of `profileData.transportConfiguration`.
    pub fn transport_setting(&self, name: &str) -> Option<&Value> {
        self.profile_data.get("transportConfiguration")?.get(name)
    }

    /// How payloads look over MQTT or CoAP: `transportPayloadTypeConfiguration`, for the transport that the configuration is of.
    pub fn payload_configuration(&self) -> Option<&Value> {
        let name = "transportPayloadTypeConfiguration";
        match self.transport_setting("type")?.as_str()? {
            "MQTT" => self.transport_setting(name),
            "COAP" => {
                let of_type = self.transport_setting("coapDeviceTypeConfiguration")?;
                // Sensors of other types have payloads of their own.
                let kind = of_type.get("coapDeviceType").and_then(Value::as_str);
                kind.is_none_or(|kind| kind == "DEFAULT")
                    .then(|| of_type.get(name))?
            }
            _ => None,
        }
    }

    /// Whether its transport configuration is of that transport.
    pub fn is_configured_for(&self, transport: TransportType) -> bool {
        self.transport_setting("type").and_then(Value::as_str) == Some(transport.name())
    }

    /// Seconds that points of its devices are kept: `profileData.configuration.defaultStorageTtlDays`, an extension;
    /// `None` leaves it to the tenant profile.
    pub fn storage_ttl_seconds(&self) -> Option<u32> {
        let days = self
            .profile_data
            .get("configuration")?
            .get("defaultStorageTtlDays")?
            .as_u64()
            .filter(|days| *days > 0)?;
        Some(u32::try_from(days.saturating_mul(86_400)).unwrap_or(u32::MAX))
    }
}

/// The short form of a device profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceProfileInfo {
    /// Id with its entity type.
    pub id: DeviceProfileId,
    /// The tenant it belongs to.
    pub tenant_id: TenantId,
    /// Name.
    pub name: String,
    /// Picture.
    pub image: Option<String>,
    /// Dashboard shown for its devices.
    pub default_dashboard_id: Option<EntityId>,
    /// Always `DEFAULT`.
    #[serde(rename = "type")]
    pub profile_type: Option<String>,
    /// Which transport it is made for.
    pub transport_type: TransportType,
}

impl From<DeviceProfile> for DeviceProfileInfo {
    fn from(profile: DeviceProfile) -> Self {
        Self {
            id: profile.id,
            tenant_id: profile.tenant_id,
            name: profile.name,
            image: profile.image,
            default_dashboard_id: profile.default_dashboard_id,
            profile_type: profile.profile_type,
            transport_type: profile.transport_type,
        }
    }
}

/// How a device proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CredentialsType {
    /// A token: MQTT user name, or part of the HTTP and CoAP path.
    #[default]
    AccessToken,
    /// The hash of an X.509 certificate.
    #[serde(rename = "X509_CERTIFICATE")]
    X509Certificate,
    /// MQTT client id, user name and password.
    MqttBasic,
    /// LwM2M security configuration.
    #[serde(rename = "LWM2M_CREDENTIALS")]
    Lwm2mCredentials,
}

impl CredentialsType {
    /// The name in the REST API and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AccessToken => "ACCESS_TOKEN",
            Self::X509Certificate => "X509_CERTIFICATE",
            Self::MqttBasic => "MQTT_BASIC",
            Self::Lwm2mCredentials => "LWM2M_CREDENTIALS",
        }
    }

    /// The type of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [
            Self::AccessToken,
            Self::X509Certificate,
            Self::MqttBasic,
            Self::Lwm2mCredentials,
        ]
        .into_iter()
        .find(|kind| kind.name() == name)
    }
}

/// Credentials of one device.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceCredentials {
    /// Row id; absent in a request to create.
    #[schema(value_type = Option<DeviceCredentialsId>)]
    #[serde(default, with = "super::id_or_null")]
    pub id: DeviceCredentialsId,
    /// When they were created, milliseconds.
    #[serde(default)]
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// Whose credentials they are; absent only together with a device that is being created.
    #[schema(value_type = Option<DeviceId>)]
    #[serde(default, with = "super::id_or_null")]
    pub device_id: DeviceId,
    /// How the device proves who it is.
    #[serde(default, deserialize_with = "deserialize_credentials_type")]
    pub credentials_type: CredentialsType,
    /// What the device is looked up by: the token, or a hash; unique in the installation.
    #[serde(default)]
    pub credentials_id: Option<String>,
    /// The certificate, or `{"clientId", "userName", "password"}` as JSON text.
    #[serde(default)]
    pub credentials_value: Option<String>,
    /// Counts the updates, for optimistic locking.
    #[serde(default)]
    pub version: Option<i64>,
}

stored_entity!(DeviceCredentials: DeviceCredentialsId);

/// Reads a type, which may be left out but not be null.
fn deserialize_credentials_type<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<CredentialsType, D::Error> {
    let given: Option<CredentialsType> = Option::deserialize(deserializer)?;
    given.ok_or_else(|| D::Error::custom("Device credentials type should be specified!"))
}

impl DeviceCredentials {
    /// New access-token credentials of a device.
    pub fn access_token(device: DeviceId, token: String, now_ms: i64) -> Self {
        Self {
            id: DeviceCredentialsId(new_uuid()),
            created_time: now_ms,
            device_id: device,
            credentials_type: CredentialsType::AccessToken,
            credentials_id: Some(token),
            credentials_value: None,
            version: Some(1),
        }
    }
}

impl std::fmt::Debug for DeviceCredentials {
    // The id of an access token is the secret itself.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceCredentials")
            .field("device_id", &self.device_id)
            .field("credentials_type", &self.credentials_type)
            .finish_non_exhaustive()
    }
}
