//! Typed identifiers and their JSON shape `{"entityType":"DEVICE","id":"<uuid>"}`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// The id that means "none": of the customer of an unassigned entity, of the tenant of a system entity.
pub const NULL_UUID: Uuid = Uuid::from_u128(0x13814000_1dd2_11b2_8080_808080808080);

/// A new time-ordered id, so that rows created together stay together in an index.
pub fn new_uuid() -> Uuid {
    Uuid::now_v7()
}

/// A text that names no known entity type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown entity type `{0}`")]
pub struct UnknownEntityType(pub String);

macro_rules! typed_id {
    ($name:ident $type:ident $doc:literal) => {
        #[doc = $doc]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub Uuid);

        impl $name {
            /// The id that means "none".
            pub const NULL: Self = Self(NULL_UUID);

            /// A new time-ordered id.
            pub fn new() -> Self {
                Self(new_uuid())
            }

            /// Whether this is the id that means "none".
            pub fn is_null(self) -> bool {
                self.0 == NULL_UUID
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::NULL
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl From<$name> for EntityId {
            fn from(id: $name) -> EntityId {
                EntityId::new(EntityType::$type, id.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                text.parse().map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                EntityId::from(*self).serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                // The entity type is often left out by hand-written clients; where given it must fit.
                #[derive(Deserialize)]
                struct TypedIdJson {
                    #[serde(rename = "entityType")]
                    entity_type: Option<EntityType>,
                    id: Uuid,
                }
                let shape = TypedIdJson::deserialize(deserializer)?;
                match shape.entity_type {
                    Some(other) if other != EntityType::$type => Err(serde::de::Error::custom(format_args!(
                        "expected an id of entity type {}, got {other}",
                        EntityType::$type
                    ))),
                    _ => Ok(Self(shape.id)),
                }
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                entity_id_schema()
            }
        }

        impl utoipa::ToSchema for $name {}
    };
}

macro_rules! entity_types {
    ($($variant:ident = $code:literal, $name:literal, $label:literal $(, $id:ident $doc:literal)?;)*) => {
        /// The kind of thing an id names; the names are those of the REST API.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "the names are their own documentation")]
        pub enum EntityType { $($variant = $code,)* }

        impl EntityType {
            /// Every entity type, in the order of their stored codes.
            pub const ALL: &[EntityType] = &[$(EntityType::$variant,)*];

            /// The name in the REST API, such as `DEVICE`.
            pub const fn name(self) -> &'static str {
                match self { $(EntityType::$variant => $name,)* }
            }

            /// The name in connections of rule chains and in messages, such as `Entity View`.
            pub const fn label(self) -> &'static str {
                match self { $(EntityType::$variant => $label,)* }
            }

            /// The type with a stored code, `None` where no type has it.
            pub const fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(EntityType::$variant),)* _ => None }
            }
        }

        impl FromStr for EntityType {
            type Err = UnknownEntityType;
            fn from_str(text: &str) -> Result<Self, UnknownEntityType> {
                match text { $($name => Ok(EntityType::$variant),)* other => Err(UnknownEntityType(other.to_owned())) }
            }
        }

        $($(typed_id! { $id $variant $doc })?)*
    };
}

// Each type of entity: its code, its name in the REST API, its label, and the id of those that exist here. The codes are
// stored on disk: never reuse or renumber one.
entity_types! {
    Tenant = 1, "TENANT", "Tenant", TenantId "Id of a tenant.";
    TenantProfile = 2, "TENANT_PROFILE", "Tenant profile", TenantProfileId "Id of a tenant profile.";
    Customer = 3, "CUSTOMER", "Customer", CustomerId "Id of a customer.";
    User = 4, "USER", "User", UserId "Id of a user.";
    Device = 5, "DEVICE", "Device", DeviceId "Id of a device.";
    DeviceProfile = 6, "DEVICE_PROFILE", "Device profile", DeviceProfileId "Id of a device profile.";
    Asset = 7, "ASSET", "Asset", AssetId "Id of an asset.";
    AssetProfile = 8, "ASSET_PROFILE", "Asset profile", AssetProfileId "Id of an asset profile.";
    EntityView = 9, "ENTITY_VIEW", "Entity View", EntityViewId "Id of an entity view.";
    Alarm = 10, "ALARM", "Alarm", AlarmId "Id of an alarm.";
    Dashboard = 11, "DASHBOARD", "Dashboard", DashboardId "Id of a dashboard.";
    RuleChain = 12, "RULE_CHAIN", "Rule chain", RuleChainId "Id of a rule chain.";
    RuleNode = 13, "RULE_NODE", "Rule node", RuleNodeId "Id of a node of a rule chain.";
    Queue = 14, "QUEUE", "Queue", QueueId "Id of a queue.";
    QueueStats = 15, "QUEUE_STATS", "Queue stats", QueueStatsId "Id of the statistics of a queue.";
    OtaPackage = 16, "OTA_PACKAGE", "Ota package", OtaPackageId "Id of an OTA package.";
    Rpc = 17, "RPC", "Rpc", RpcId "Id of a persistent call to a device.";
    ApiUsageState = 18, "API_USAGE_STATE", "Api usage state", ApiUsageStateId "Id of the usage of a tenant.";
    Edge = 19, "EDGE", "Edge";
    TbResource = 20, "TB_RESOURCE", "Resource", TbResourceId "Id of a resource.";
    WidgetsBundle = 21, "WIDGETS_BUNDLE", "Widgets bundle", WidgetsBundleId "Id of a bundle of widget types.";
    WidgetType = 22, "WIDGET_TYPE", "Widget type", WidgetTypeId "Id of a widget type.";
    CalculatedField = 23, "CALCULATED_FIELD", "Calculated field", CalculatedFieldId "Id of a calculated field.";
}

impl fmt::Display for EntityType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for EntityType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for EntityType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for EntityType {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EntityType".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names: Vec<&str> = Self::ALL.iter().map(|known| known.name()).collect();
        schemars::json_schema!({ "type": "string", "enum": names })
    }
}

/// An id together with the kind of thing it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EntityId {
    /// Kind of the entity.
    #[serde(rename = "entityType")]
    pub entity_type: EntityType,
    /// Bare id.
    pub id: Uuid,
}

impl EntityId {
    /// An id of the given kind.
    pub const fn new(entity_type: EntityType, id: Uuid) -> Self {
        Self { entity_type, id }
    }
}

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.entity_type, self.id)
    }
}

/// An entity within its tenant: what every read and write of data is addressed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntityKey {
    /// The tenant that owns the entity.
    pub tenant: TenantId,
    /// The entity itself.
    pub entity: EntityId,
}

impl EntityKey {
    /// A device of a tenant.
    pub const fn device(tenant: TenantId, device: DeviceId) -> Self {
        Self {
            tenant,
            entity: EntityId::new(EntityType::Device, device.0),
        }
    }
}

macro_rules! row_ids {
    ($($name:ident $entity_type:expr, $doc:literal;)*) => {$(
        #[doc = $doc]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name(pub Uuid);

        impl Default for $name {
            fn default() -> Self {
                Self(NULL_UUID)
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                #[derive(Serialize)]
                struct RowIdJson {
                    #[serde(rename = "entityType", skip_serializing_if = "Option::is_none")]
                    entity_type: Option<&'static str>,
                    id: Uuid,
                }
                let entity_type: Option<&'static str> = $entity_type;
                RowIdJson { entity_type, id: self.0 }.serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(Deserialize)]
                struct RowIdInput {
                    id: Uuid,
                }
                RowIdInput::deserialize(deserializer).map(|shape| Self(shape.id))
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                entity_id_schema()
            }
        }

        impl utoipa::ToSchema for $name {}
    )*};
}

// Ids of rows that no other entity refers to; some name a type in JSON all the same.
row_ids! {
    DeviceCredentialsId None, "Id of a device's credentials.";
    AdminSettingsId Some("ADMIN_SETTINGS"), "Id of settings of the installation.";
    AuditLogId None, "Id of an entry of the audit log.";
    ApiKeyId Some("API_KEY"), "Id of an API key.";
    SetAsideId None, "Id of a record that was set aside.";
}

impl utoipa::PartialSchema for EntityId {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        entity_id_schema()
    }
}

impl utoipa::ToSchema for EntityId {}

/// `{"entityType": "...", "id": "<uuid>"}`, shared by every typed id.
fn entity_id_schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
    use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
    ObjectBuilder::new()
        .property("entityType", ObjectBuilder::new().schema_type(Type::String))
        .property(
            "id",
            ObjectBuilder::new()
                .schema_type(Type::String)
                .format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid))),
        )
        .required("id")
        .into()
}
