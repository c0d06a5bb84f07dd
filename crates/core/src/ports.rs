//! The ports: the contracts that every journal and store implements.

mod alarms;
mod api_keys;
mod assignable;
mod attributes;
mod audit;
mod broker;
mod broker_admin;
mod broker_queues;
mod calculated_fields;
mod dashboards;
mod device_transfers;
mod entities;
mod entity_rows;
mod error;
mod events;
mod housekeeper;
mod in_flight;
mod ingest;
mod journal;
mod mail;
mod mqtt_clients;
mod ota;
mod profiles;
mod queues;
mod relations;
mod resources;
mod rest_calls;
mod rpc;
mod rpc_store;
mod rule_chains;
mod rule_counters;
mod rule_nodes;
mod rule_usage;
mod rules;
mod set_aside;
mod settings;
mod sign_ins;
mod sms;
mod system_info;
mod timeseries;
mod values;
mod versions;
mod widgets;

pub use alarms::{
    AlarmApiResult, AlarmChange, AlarmDraft, AlarmEndUpdate, AlarmPropagation, AlarmQuery, AlarmScope,
    AlarmStore, AlarmTime, AlarmUpdate, MAX_ALARM_ENTITIES,
};
pub use api_keys::{ApiKeyChange, ApiKeyStore};
pub use assignable::*;
pub use attributes::AttributeStore;
pub use audit::{AuditFilter, AuditScope, AuditStore};
pub use broker::{
    AuthExchange, AuthStep, BegunExchange, BrokerChanges, BrokerClientType, BrokerLogin, BrokerRefusal,
    BrokerStore, BrokerTable, ClientAuthenticator, ClientGrant, TopicRules,
};
pub use broker_admin::*;
pub use broker_queues::*;
pub use calculated_fields::{CalculatedFieldFilter, CalculatedFieldStore, FieldScriptTest};
pub use dashboards::{DashboardFilter, DashboardStore};
pub use device_transfers::{DeviceTransfer, DeviceTransferStore};
pub use entities::{
    CustomerStore, DeviceCredentialsStore, EntityStore, EntityStores, LoginAttemptResult, TenantEntityStore,
    TenantProfileStore, TenantStore, UserFilter, UserStore,
};
pub use entity_rows::EntityRowStore;
pub use error::{StoreError, StoreErrorKind, StoreResult};
pub use events::{EventFilter, EventStore, EventText};
pub use housekeeper::{CleanupPass, HousekeeperStore};
pub use in_flight::{InFlightNotes, PreviousRunNotes};
pub use ingest::{
    AttributeEffect, AttributeRow, AttributeSaveStrategy, IngestStore, StateKey, StateRow, StoreEffects,
    TelemetryRow, TelemetrySaveStrategy,
};
pub use journal::{
    AppendError, AppendFuture, AppendOrigin, CommitGroup, ConsumerEvent, ConsumerRecords, HoldBackCause,
    Journal, JournalConsumer, JournalError, Offset, Partition, QueueId,
};
pub use mail::{MailMessage, MailSender, NoMails};
pub use mqtt_clients::{
    MqttClientStore, MqttCredentialsCount, MqttCredentialsFilter, SharedSubscriptionStore,
};
pub use ota::{OTA_PIECE, OtaPackageFilter, OtaPackageStore, OtaScope, OtaTarget, OtaUpdate, OtaUpdateStore};
pub use profiles::{DeviceProfileStore, EntityProfile, ProfileFieldsMut, ProfileStore};
pub use queues::QueueStore;
pub use relations::{MAX_RELATION_LEVELS, MAX_RELATIONS, RelationEnds, RelationKey, RelationStore};
pub use resources::{RESOURCE_PIECE, ResourceFilter, ResourceStore};
pub use rest_calls::{
    NoRestEndpoints, RestEndpoint, RestEndpointCall, RestEndpointError, RestEndpointSettings, RestEndpoints,
};
pub use rpc::{
    DeviceRpc, DeviceRpcError, DeviceRpcRequest, NoDeviceRpc, NoRestApiResponder, ORIGIN_RUN,
    RestApiResponder,
};
pub use rpc_store::RpcStore;
pub use rule_chains::RuleChainStore;
pub use rule_counters::{NoRuleCounters, RuleCounterSource, RuleNodeCounters};
pub use rule_nodes::{
    NoRuleNodes, NoScriptTester, RuleNodeCatalog, ScriptLanguage, ScriptTest, ScriptTestError, ScriptTester,
    ScriptUse,
};
pub use rule_usage::{EntityRuleUsage, NoRuleUsage, RuleUsageCounters, RuleUsageReport, RuleUsageSource};
pub use rules::{NoRuleEngine, RuleEngine};
pub use set_aside::{
    NoRecordQueue, RecordQueue, SetAsideOutcome, SetAsideQuota, SetAsideRawRecord, SetAsideStore,
};
pub use settings::SettingsStore;
pub use sign_ins::{SignInOrigin, SignInStore, TokenFamily};
pub use sms::{NoSms, SmsSender};
pub use system_info::{NoSystemInfo, SystemInfoSource, SystemResources};
pub use timeseries::{PointsPage, SeriesDeletion, TimeSeriesStore};
pub use values::{
    ChangeFilter, StoredValue, ValueChange, ValueListener, ValueReadRequest, ValueReader, ValueRemoval,
    ValueRemovalScope, ValueSource, ValueTransfer,
};
pub use versions::{SavedBy, VersionStore};
pub use widgets::{WidgetLibraryView, WidgetTypeFilter, WidgetTypeStore, WidgetsBundleStore};
