//! The ports: what a journal and a store promise, whoever implements them.

mod alarms;
mod api_keys;
mod assigned;
mod attributes;
mod audit;
mod calculated_fields;
mod dashboards;
mod device_moves;
mod entities;
mod entity_rows;
mod error;
mod events;
mod in_hand;
mod ingest;
mod journal;
mod leftovers;
mod machine;
mod mail;
mod ota;
mod persistent_calls;
mod profiles;
mod queues;
mod relations;
mod replay;
mod reprocess;
mod rpc;
mod rule_chains;
mod rule_nodes;
mod rule_use;
mod rules;
mod set_aside;
mod settings;
mod sign_ins;
mod sms;
mod timeseries;
mod values;

pub use alarms::{
    AlarmApiResult, AlarmChange, AlarmDraft, AlarmQuery, AlarmScope, AlarmStore, AlarmTime, AlarmTouch,
    AlarmUpdate, MAX_ALARM_ENTITIES, Propagation,
};
pub use api_keys::ApiKeyStore;
pub use assigned::{
    AssetFilter, Assignable, AssignableStore, DeviceFilter, DeviceStore, EntityViewFilter, EntityViewStore,
    Head, HeadMut, ImportRow, ImportedValues,
};
pub use attributes::AttributeStore;
pub use audit::{AuditFilter, AuditScope, AuditStore};
pub use calculated_fields::{CalculatedFieldFilter, CalculatedFieldStore, FieldScriptTest};
pub use dashboards::{DashboardFilter, DashboardStore};
pub use device_moves::{DeviceMove, DeviceMoveStore};
pub use entities::{
    CustomerStore, DeviceCredentialsStore, EntityStores, Login, TenantProfileStore, TenantStore, UserFilter,
    UserStore,
};
pub use entity_rows::EntityRowStore;
pub use error::{StoreError, StoreErrorKind, StoreResult};
pub use events::{EventFilter, EventStore, EventText};
pub use in_hand::{HandNotes, LeftBehind};
pub use ingest::{
    AttributeEffect, AttributeParts, AttributeRow, Effects, IngestStore, RowParts, StateKey, StateRow,
    TelemetryRow,
};
pub use journal::{
    Append, AppendError, AppendOrigin, CommitGroup, Consumer, Delivery, Journal, JournalError, Offset,
    Partition, QueueId, Records,
};
pub use leftovers::{LeftoverStore, Pass};
pub use machine::{Machine, MachineFigures, UnknownMachine};
pub use mail::{Mail, MailSender, NoMails};
pub use ota::{OTA_PIECE, OtaPackageFilter, OtaPackageStore, OtaScope, OtaTarget, OtaUpdate, OtaUpdateStore};
pub use persistent_calls::PersistentCallStore;
pub use profiles::{DeviceProfileStore, Profile, ProfileStore};
pub use queues::QueueStore;
pub use relations::{MAX_RELATION_LEVELS, MAX_RELATIONS, RelationEnds, RelationKey, RelationStore};
pub use replay::{NoRuleReplay, RuleReplay};
pub use reprocess::{FieldReprocess, NoFieldReprocess};
pub use rpc::{DeviceRpc, DeviceRpcError, DeviceRpcRequest, NoDeviceRpc, NoRestCalls, ORIGIN_RUN, RestCalls};
pub use rule_chains::RuleChainStore;
pub use rule_nodes::{
    NoRuleNodes, NoScripts, RuleNodeCatalog, ScriptLanguage, ScriptTest, ScriptTestError, ScriptTester,
    ScriptUse,
};
pub use rule_use::{NoRuleUsage, RuleUsage, RuleUse, RuleUseOf, RuleUseReport};
pub use rules::{NoRuleEngine, RuleEngine};
pub use set_aside::{NoRecordQueue, RecordQueue, SetAsideKept, SetAsideRecord, SetAsideRoom, SetAsideStore};
pub use settings::SettingsStore;
pub use sign_ins::{SignInStore, TokenFamily};
pub use sms::{NoSms, SmsSender};
pub use timeseries::{DeleteSeries, PointsPage, TimeSeriesStore};
pub use values::{
    Gone, Hears, StoredValue, ValueChange, ValueHandOver, ValueListener, ValueReader, ValueRemoval,
    ValueSource, ValuesOf,
};
