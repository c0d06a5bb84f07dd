//! The state of the handlers.

use std::collections::HashSet;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use fieldline_core::any_entity::{AnyEntity, EntityKind};
use fieldline_core::clock::SharedClock;
use fieldline_core::events::EntityEvents;
use fieldline_core::fair_reads::FairReads;
use fieldline_core::observed_store::ObservedStore;
use fieldline_core::options::ByteSize;
use fieldline_core::overload::OverloadMonitor;
use fieldline_core::ports::{
    AttributeStore, BrokerAdminSlot, EntityStores, MailSender, RuleCounterSource, RuleEngine,
    RuleNodeCatalog, RuleUsageSource, ScriptTester, SmsSender, StoreError, SystemInfoSource, TimeSeriesStore,
};
use fieldline_core::set_aside::SetAsideService;
use fieldline_core::usage::UsageStore;
use fieldline_devices::downlink::DeviceLink;
use fieldline_devices::ota::{self, OtaDownloads};
use fieldline_devices::rpc::DeviceRpcService;
use fieldline_entities::access::{self, AccessError, AccessOperation, Principal};
use fieldline_entities::audit::AuditTrail;
use fieldline_entities::entity_query::EntityQueryService;
use fieldline_entities::password::PasswordHashPool;
use fieldline_entities::ports::{FieldReprocess, RuleReplay};
use fieldline_entities::rest_api_requests::RestApiRequests;
use fieldline_entities::services::{DeviceOnboarding, ServiceContext, Services, TenantTransfer};
use fieldline_model::EntityId;
use uuid::Uuid;

use crate::auth::{ApiKeyCache, LoginGuard, LoginSessions, TokenIssuer, TokenKey, TokenSettings};
use crate::mail_consents::MailConsents;
use crate::mails::MailDispatcher;
use crate::memory::ApiMemory;
use crate::options::Options;
use crate::rest_limits::RestLimits;
use crate::telemetry::SaveContext;
use crate::ws::{SubscriptionHub, WsLimits};

/// Everything that the API depends on.
#[derive(Clone)]
pub struct ApiDependencies {
    /// The services, and their context.
    pub services: Services,
    /// Signs tokens, unless the settings below contain a key.
    pub token_key: TokenKey,
    /// Token settings from [`crate::stored_token_settings`].
    pub token_settings: Option<TokenSettings>,
    /// Sends mails to users.
    pub mailer: Arc<dyn MailSender>,
    /// Sends text messages to users.
    pub sms: Arc<dyn SmsSender>,
    /// Measures the load of the machine.
    pub system_info: Arc<dyn SystemInfoSource>,
    /// What is throttled or behind.
    pub overload: Arc<OverloadMonitor>,
    /// Usage and limits of tenants.
    pub usage: Arc<UsageStore>,
    /// Clients that wait for responses of rule chains.
    pub rest_requests: Arc<RestApiRequests>,
    /// Records that were set aside.
    pub set_aside: Arc<SetAsideService>,
    /// Access to device sessions.
    pub device_link: Arc<dyn DeviceLink>,
    /// RPC calls to devices.
    pub rpc: Arc<DeviceRpcService>,
    /// Onboarding of devices, including claiming by customers.
    pub onboarding: Arc<DeviceOnboarding>,
    /// Transfer of devices between tenants.
    pub tenant_transfer: Arc<TenantTransfer>,
    /// Tests scripts.
    pub scripts: Arc<dyn ScriptTester>,
    /// Measures the tenants' usage of the rule engine.
    pub rule_usage: Arc<dyn RuleUsageSource>,
    /// Counts what the nodes of rule chains do.
    pub rule_counters: Arc<dyn RuleCounterSource>,
    /// Publishes changes of values.
    pub observed_store: Arc<ObservedStore>,
    /// Answers entity queries.
    pub queries: Arc<EntityQueryService>,
    /// Replays telemetry through rule chains.
    pub replays: Arc<dyn RuleReplay>,
    /// Reprocesses stored values with calculated fields.
    pub reprocess: Arc<dyn FieldReprocess>,
    /// The certificates that devices are shown.
    pub certificates: CertificateFiles,
    /// The map of the operator, a PMTiles archive; see [`crate::map_file_problem`].
    pub map_file: Option<PathBuf>,
    /// The ports that devices are shown where no settings name others; known once the servers listen.
    pub device_ports: Arc<OnceLock<DevicePorts>>,
    /// The administration of the publish/subscribe broker; empty while it is off.
    pub broker_admin: BrokerAdminSlot,
}

/// The ports of the device servers, of those that listen.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub struct DevicePorts {
    pub http: u16,
    pub mqtt: u16,
    pub mqtts: Option<u16>,
    pub coap: Option<u16>,
    pub coaps: Option<u16>,
}

impl Default for DevicePorts {
    /// The usual ports, without those that need certificates.
    fn default() -> Self {
        Self {
            http: 8080,
            mqtt: 1883,
            mqtts: None,
            coap: Some(5683),
            coaps: None,
        }
    }
}

/// Files with the certificate chains of the device servers in PEM, for people whose devices have to trust them.
#[derive(Debug, Clone, Default)]
pub struct CertificateFiles {
    /// That of MQTT over TLS.
    pub mqtts: Option<PathBuf>,
    /// That of CoAP over DTLS.
    pub coaps: Option<PathBuf>,
}

/// State shared by all handlers.
pub(crate) type SharedApi = Arc<ApiState>;

/// See [`SharedApi`]. Includes everything that the API depends on.
pub(crate) struct ApiState {
    deps: ApiDependencies,
    pub(crate) entities: EntityStores,
    pub(crate) series: Arc<dyn TimeSeriesStore>,
    pub(crate) attributes: Arc<dyn AttributeStore>,
    pub(crate) events: Arc<EntityEvents>,
    pub(crate) clock: SharedClock,
    pub(crate) rule_engine: Arc<dyn RuleEngine>,
    pub(crate) rule_nodes: Arc<dyn RuleNodeCatalog>,
    pub(crate) hub: Arc<SubscriptionHub>,
    pub(crate) socket_limits: Arc<WsLimits>,
    pub(crate) telemetry: Arc<SaveContext>,
    pub(crate) passwords: PasswordHashPool,
    pub(crate) tokens: TokenIssuer,
    pub(crate) sessions: Arc<LoginSessions>,
    pub(crate) login_guard: LoginGuard,
    pub(crate) rest_limits: Arc<RestLimits>,
    pub(crate) memory: ApiMemory,
    pub(crate) mails: MailDispatcher,
    pub(crate) consents: MailConsents,
    pub(crate) downloads: Arc<OtaDownloads>,
    pub(crate) api_keys: ApiKeyCache,
    pub(crate) audit: AuditTrail,
    pub(crate) options: Options,
}

impl Deref for ApiState {
    type Target = ApiDependencies;

    fn deref(&self) -> &ApiDependencies {
        &self.deps
    }
}

impl ApiState {
    /// Builds the state.
    pub(crate) fn new(mut deps: ApiDependencies, options: Options) -> Self {
        let services = &mut deps.services;
        services.security = services
            .security
            .clone()
            .with_min_length(options.min_password_length);
        let ServiceContext {
            stores: entities,
            series,
            attributes,
            events,
            clock,
            passwords,
            rule_engine,
            rule_nodes,
            rest_endpoints: _,
        } = ServiceContext::clone(&services.context);
        let audit = AuditTrail::start(Arc::clone(&entities.audit));
        services.actions.set_audit_trail(audit.clone());
        let sessions = Arc::new(LoginSessions::new(&entities, Arc::clone(&clock)));
        let telemetry = Arc::new(SaveContext::new(entities.clone()));
        let rest_limits = Arc::new(RestLimits::new(&entities, &clock, &deps.usage));
        events.listen(Arc::clone(&rest_limits) as _);
        events.listen(Arc::clone(&sessions) as _);
        events.listen(Arc::clone(&telemetry) as _);
        let memory = ApiMemory::new(&options);
        for pool in [&memory.answers, &memory.public, &memory.requests, &memory.sockets] {
            deps.overload.add(Arc::clone(pool) as _);
        }
        let socket_limits = WsLimits::new(&deps.usage);
        let hub = SubscriptionHub::new(Arc::clone(&memory.sockets));
        deps.observed_store.listen(Arc::clone(&hub) as _);
        events.listen(Arc::clone(&hub) as _);
        // Users download each package once, so a small cache suffices.
        let uncached = ota::Options {
            cache: ByteSize::mib(1),
            ..ota::Options::default()
        };
        let (packages, updates) = (&entities.ota_packages, &entities.ota_updates);
        let downloads = OtaDownloads::new(Arc::clone(packages), Arc::clone(updates), &uncached);
        let tokens = TokenIssuer::new(&deps.token_key, &options).with_stored(deps.token_settings.take());
        let mails = MailDispatcher::new(Arc::clone(&entities.settings), Arc::clone(&deps.mailer));
        let api_keys = ApiKeyCache::new(services.api_keys.clone());
        Self {
            deps,
            downloads,
            hub,
            socket_limits,
            tokens,
            audit,
            memory,
            api_keys,
            mails,
            consents: MailConsents::default(),
            login_guard: LoginGuard::new(&options),
            rest_limits,
            entities,
            series: FairReads::new(series),
            attributes,
            events,
            clock,
            rule_engine,
            rule_nodes,
            telemetry,
            passwords,
            sessions,
            options,
        }
    }

    /// Returns the entity, if the caller may perform the operation on it. Telemetry has error messages of its own;
    /// other code turns the errors into an [`crate::ApiError`] with `?`.
    pub(crate) async fn check(
        &self,
        caller: &Principal,
        id: impl Into<EntityId>,
        operation: AccessOperation,
    ) -> Result<AnyEntity, AccessError> {
        access::lookup(&self.entities, caller, id.into(), operation).await
    }

    /// Returns the entities that the caller may read.
    pub(crate) async fn readable(
        &self,
        caller: &Principal,
        ids: impl IntoIterator<Item = EntityId>,
    ) -> Result<HashSet<EntityId>, StoreError> {
        access::filter_permitted(&self.entities, caller, AccessOperation::Read, ids).await
    }

    /// Returns the entity of a kind with this bare id, if the caller may perform the operation on it.
    pub(crate) async fn load<K: EntityKind>(
        &self,
        caller: &Principal,
        id: Uuid,
        operation: AccessOperation,
    ) -> Result<K, AccessError> {
        let id: EntityId = K::typed(id).into();
        let found = self.check(caller, id, operation).await?;
        K::of(found).ok_or(AccessError::NotFound(id))
    }
}
