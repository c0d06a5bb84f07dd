//! Entities in the JSON shape of the REST API. The same shape is what the SQL stores keep, so a field that only one
//! client uses is kept and given back.

mod alarm;
mod api_key;
mod asset;
mod audit;
pub mod calculated_field;
mod component;
mod dashboard;
mod debug;
mod device;
mod draft;
mod entity_view;
mod event;
mod import;
mod mqtt_client;
mod ota;
mod owner;
mod queue;
mod relation;
mod resource;
mod rpc;
mod rule_chain;
mod set_aside;
mod settings;
mod user;
mod version;
mod widget;

pub use alarm::{
    Alarm, AlarmAssignee, AlarmComment, AlarmCommentId, AlarmCommentInfo, AlarmCommentType, AlarmInfo,
    AlarmSearchStatus, AlarmSeverity, AlarmStatus,
};
pub use api_key::{ApiKey, ApiKeyInfo};
pub use asset::{Asset, AssetInfo, AssetProfile, AssetProfileInfo};
pub use audit::{ActionType, AuditLog, status_name};
pub use calculated_field::{CalculatedField, CalculatedFieldInfo, CalculatedFieldType};
pub use component::{
    ClusteringMode, ComponentDescriptor, ComponentDescriptorId, ComponentScope, ComponentType,
    ConfigurationDescriptor, ConfigurationSchema, NodeDefinition,
};
pub use dashboard::{
    Dashboard, DashboardInfo, HomeDashboard, HomeDashboardInfo, LastVisitedDashboard, ShortCustomerInfo,
    StarredDashboard, UserDashboards,
};
pub use debug::DebugSettings;
pub use device::{
    CredentialsType, Device, DeviceCredentials, DeviceInfo, DeviceProfile, DeviceProfileInfo, TransportType,
};
pub use draft::{EntityDraft, StoredEntity};
pub use entity_view::{AttributeKeys, EntityView, EntityViewInfo, ViewKeys};
pub use event::{
    CalculatedFieldDebug, EVENT_IN, EVENT_OUT, EntityEvent, EventBody, EventKind, RuleNodeDebug,
};
pub use import::{ImportColumn, ImportColumnType, ImportMapping, ImportRequest, ImportResult};
pub use mqtt_client::{
    ApplicationSharedSubscription, BlockedClient, BlockedClientType, MqttClientCredentials, MqttClientType,
    MqttCredentialsType, RegexMatchTarget, ShortMqttClientCredentials, UnauthorizedClient,
};
pub use ota::{ChecksumAlgorithm, OtaKind, OtaPackageInfo, SaveOtaPackageInfoRequest, UnknownOtaName};
pub use owner::{Contact, Customer, Tenant, TenantInfo, TenantProfile, TenantProfileInfo};
pub use queue::{
    ProcessingStrategy, ProcessingStrategyType, Queue, QueueStats, SubmitStrategy, SubmitStrategyType,
};
pub use relation::{
    EntityRelation, EntityRelationInfo, RelationFilter, RelationTypeGroup, RelationsQuery,
    RelationsSearchParameters, SearchDirection,
};
pub use resource::{
    IMAGE_PREFIX, RESOURCE_PREFIX, ResourceExportData, ResourceReference, ResourceSubType, ResourceType,
    StoredFile, TbResource, TbResourceInfo, UnknownResourceName,
};
pub use rpc::{Rpc, RpcBody, RpcRequest, RpcStatus};
pub use rule_chain::{
    ChainConnection, NodeConnection, OutputLabelsUsage, RuleChain, RuleChainData, RuleChainImportResult,
    RuleChainMetaData, RuleChainType, RuleNode,
};
pub use set_aside::{SetAsideInfo, SetAsideReason};
pub use settings::{AdminSettings, PasswordPolicy, SecuritySettings, UserSettingsType};
pub use user::{Authority, PastPassword, User, UserCredentials};
pub use version::{EntityVersion, RuleChainVersion};
pub use widget::{
    WidgetType, WidgetTypeBase, WidgetTypeDetails, WidgetTypeInfo, WidgetTypeTexts, WidgetsBundle,
    WidgetsBundleName,
};

use serde::{Deserialize, Deserializer};

/// Reads `null` as the default: clients write every field they do not set as `null`.
///
/// # Errors
/// It is another value that is no `T`.
pub fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// The JSON of an entity's id: the null id of what is not stored yet is `null`.
mod id_or_null {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use uuid::Uuid;

    pub(super) fn serialize<I, S>(id: &I, serializer: S) -> Result<S::Ok, S::Error>
    where
        I: Copy + Default + PartialEq + Serialize,
        S: Serializer,
    {
        (*id != I::default()).then_some(*id).serialize(serializer)
    }

    /// The null id written out is not the same as no id. It names nothing that is stored, and neither does the nil UUID that
    /// it is read as.
    pub(super) fn deserialize<'de, I, D>(deserializer: D) -> Result<I, D::Error>
    where
        I: Default + PartialEq + From<Uuid> + Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Ok(match Option::deserialize(deserializer)? {
            None => I::default(),
            Some(id) if id == I::default() => I::from(Uuid::nil()),
            Some(id) => id,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_reads_as_absent() {
        let device: Device = serde_json::from_str(
            r#"{"id":null,"createdTime":null,"tenantId":null,"customerId":null,"name":"x","type":null,"version":null}"#,
        )
        .unwrap();
        assert_eq!(
            device,
            Device {
                name: "x".to_owned(),
                ..Device::default()
            }
        );
        let profile: DeviceProfile =
            serde_json::from_str(r#"{"name":"p","default":null,"transportType":null}"#).unwrap();
        assert_eq!(profile.transport_type, TransportType::Default);
    }
}
