//! Two tenants with users and a device on real stores, and the controller in front of them.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use fieldline_core::events::{ChangeKind, EntityChange, EntityEvents, EntityListener};
use fieldline_core::options::HumanDuration;
use fieldline_core::ports::{EntityStores, SignInOrigin, StoreError};
use fieldline_devices::downlink::{DeviceLink, Downlink};
use fieldline_devices::rpc::DeviceRpcService;
use fieldline_devices::sessions::SessionRegistry;
use fieldline_entities::services::{DeviceOnboarding, ServiceContext, Services, TenantTransfer};
use fieldline_model::entity::{
    Authority, Customer, Device, DeviceCredentials, DeviceProfile, Tenant, TenantProfile, User,
    UserCredentials,
};
use fieldline_model::{CustomerId, DeviceId, DeviceProfileId, EntityKey, TenantId, TenantProfileId, UserId};
use fieldline_storage::series::SeriesStore;
use fieldline_storage::{series, sql};
use fieldline_testkit::clock::ManualClock;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;
use uuid::Uuid;

use crate::auth::{TokenKey, TokenTimes};
use crate::options::Options;
use crate::state::{ApiDependencies, ApiState, SharedApi};

/// Start time of every test.
pub(super) const NOW: i64 = 1_760_000_000_000;

const PREFIX: &str = "/api/plugins/telemetry";

/// The fixture; see the module.
pub(super) struct TelemetryFixture {
    pub(super) clock: Arc<ManualClock>,
    pub(super) tenant: TenantId,
    pub(super) device: DeviceId,
    customer: CustomerId,
    tenant_profile: TenantProfileId,
    profile: DeviceProfileId,
    users: FixtureUsers,
    router: Router,
    entities: EntityStores,
    events: Arc<EntityEvents>,
    log: Arc<ChangeLog>,
    store: Arc<SeriesStore>,
    _dir: TempDir,
}

/// Users with their tokens.
struct FixtureUsers {
    sysadmin: String,
    admin: String,
    admin_id: UserId,
    customer: String,
    other_customer: String,
    stranger: String,
}

/// Records the changes of attributes.
#[derive(Default)]
struct ChangeLog(Mutex<Vec<EntityChange>>, Mutex<Vec<(DeviceId, String)>>);

/// Records the messages to devices.
impl DeviceLink for ChangeLog {
    fn send(&self, subject: EntityKey, downlink: &Downlink) -> usize {
        if let Downlink::Attributes(update) = downlink {
            self.1
                .lock()
                .push((DeviceId(subject.entity.id), update.to_json()));
        }
        1
    }
}

impl EntityListener for ChangeLog {
    fn on_change(&self, change: EntityChange) {
        if matches!(change.what, ChangeKind::Attributes(_)) {
            self.0.lock().push(change);
        }
    }
}

impl TelemetryFixture {
    pub(super) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(NOW);
        let database = sql::EntityDatabase::sqlite(&dir.path().join("entities.db"), &sql::Options::default())
            .await
            .unwrap();
        let entities = database.entity_stores();
        let store = SeriesStore::open(
            &dir.path().join("series"),
            &series::Options::default(),
            clock.clone(),
        )
        .unwrap();
        let events = Arc::new(EntityEvents::default());
        let log = Arc::new(ChangeLog::default());
        events.listen(log.clone());
        let api = api(&database, &store, &events, &clock, &log);
        let tenant_profile = tenant_profile(&entities).await.unwrap();
        let (tenant, foreign) = tenants(&entities, tenant_profile).await.unwrap();
        let (customer, other) = customers(&entities, tenant).await.unwrap();
        let (profile, device) = device(&entities, tenant, customer).await.unwrap();
        let admin = user(&api, Authority::TenantAdmin, tenant, CustomerId::NULL).await;
        let users = FixtureUsers {
            sysadmin: user(&api, Authority::SysAdmin, TenantId::NULL, CustomerId::NULL)
                .await
                .1,
            admin_id: admin.0,
            admin: admin.1,
            customer: user(&api, Authority::CustomerUser, tenant, customer).await.1,
            other_customer: user(&api, Authority::CustomerUser, tenant, other).await.1,
            stranger: user(&api, Authority::TenantAdmin, foreign, CustomerId::NULL)
                .await
                .1,
        };
        let (router, _) = super::super::routes().build(&api, utoipa::openapi::OpenApi::default());
        Self {
            clock,
            tenant,
            device,
            customer,
            tenant_profile,
            profile,
            users,
            router: router.with_state(api),
            entities,
            events,
            log,
            store,
            _dir: dir,
        }
    }

    /// Returns the messages to devices since the last call.
    pub(super) fn told(&self) -> Vec<(DeviceId, String)> {
        std::mem::take(&mut self.log.1.lock())
    }

    /// Returns a path of the device.
    pub(super) fn of(&self, rest: &str) -> String {
        format!("/DEVICE/{}{rest}", self.device.0)
    }

    /// Returns the key of the device in the stores.
    pub(super) fn subject(&self) -> EntityKey {
        EntityKey::device(self.tenant, self.device)
    }

    /// Returns the changes of attributes so far.
    pub(super) fn changes(&self) -> Vec<EntityChange> {
        self.log.0.lock().clone()
    }

    /// Sets the default time-to-live of the tenant's profile.
    pub(super) async fn tenant_keeps_for_days(&self, days: u32) {
        let profile = self.entities.tenant_profiles.get(self.tenant_profile).await;
        let profile = TenantProfile {
            profile_data: json!({"configuration": {"defaultStorageTtlDays": days}}),
            ..profile.unwrap().unwrap()
        };
        self.entities.tenant_profiles.update(profile).await.unwrap();
        self.events
            .publish(EntityChange::saved(TenantId::NULL, self.tenant_profile));
    }

    /// Sets the default time-to-live of the device's profile.
    pub(super) async fn device_keeps_for_days(&self, days: u32) {
        let profile = self.entities.device_profiles.get(self.tenant, self.profile).await;
        let profile = DeviceProfile {
            profile_data: json!({"configuration": {"defaultStorageTtlDays": days}}),
            ..profile.unwrap().unwrap()
        };
        self.entities.device_profiles.update(profile).await.unwrap();
        self.events
            .publish(EntityChange::saved(self.tenant, self.profile));
    }

    /// Kinds and ids of entities whose data the tenant administrator may write.
    pub(super) fn entities_of_admin(&self) -> [(&'static str, Uuid); 4] {
        [
            ("DEVICE", self.device.0),
            ("CUSTOMER", self.customer.0),
            ("DEVICE_PROFILE", self.profile.0),
            ("USER", self.users.admin_id.0),
        ]
    }

    pub(super) fn admin(&self) -> TelemetryClient<'_> {
        self.client(&self.users.admin)
    }

    pub(super) fn customer_user(&self) -> TelemetryClient<'_> {
        self.client(&self.users.customer)
    }

    pub(super) fn other_customer_user(&self) -> TelemetryClient<'_> {
        self.client(&self.users.other_customer)
    }

    /// The administrator of another tenant.
    pub(super) fn stranger(&self) -> TelemetryClient<'_> {
        self.client(&self.users.stranger)
    }

    pub(super) fn sysadmin(&self) -> TelemetryClient<'_> {
        self.client(&self.users.sysadmin)
    }

    /// A client without a token.
    pub(super) fn nobody(&self) -> TelemetryClient<'_> {
        self.client("")
    }

    fn client<'a>(&'a self, token: &'a str) -> TelemetryClient<'a> {
        TelemetryClient {
            router: &self.router,
            token,
        }
    }
}

/// A client that sends requests.
pub(super) struct TelemetryClient<'a> {
    router: &'a Router,
    token: &'a str,
}

impl TelemetryClient<'_> {
    pub(super) async fn send(&self, method: &str, path: &str, body: &str) -> (StatusCode, String, String) {
        let mut request = Request::builder().method(method).uri(format!("{PREFIX}{path}"));
        if !self.token.is_empty() {
            request = request.header("X-Authorization", format!("Bearer {}", self.token));
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let kind = response.headers().get(header::CONTENT_TYPE).cloned();
        let kind = kind.map_or_else(String::new, |kind| kind.to_str().unwrap().to_owned());
        let status = response.status();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, kind, String::from_utf8(bytes.to_vec()).unwrap())
    }

    /// Sends a request that must succeed, and returns the body of the response.
    pub(super) async fn ok(&self, method: &str, path: &str, body: &str) -> String {
        let (status, _, text) = self.send(method, path, body).await;
        assert_eq!(status, StatusCode::OK, "{method} {path} {body}: {text}");
        text
    }

    /// Reads JSON as text.
    pub(super) async fn text(&self, path: &str) -> String {
        let (status, kind, text) = self.send("GET", path, "").await;
        assert_eq!(
            (status, kind.as_str()),
            (StatusCode::OK, "application/json"),
            "{path}: {text}"
        );
        text
    }

    /// Reads JSON.
    pub(super) async fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.text(path).await).unwrap()
    }

    /// Sends a request that must be refused in plain text, and returns the text.
    pub(super) async fn refused(&self, method: &str, path: &str, body: &str, why: StatusCode) -> String {
        let (status, kind, text) = self.send(method, path, body).await;
        assert_eq!(status, why, "{method} {path} {body}: {text}");
        assert!(
            kind.starts_with("text/plain") && !text.is_empty(),
            "{method} {path} {body}: {kind}"
        );
        text
    }
}

fn api(
    database: &sql::EntityDatabase,
    store: &Arc<SeriesStore>,
    events: &Arc<EntityEvents>,
    clock: &Arc<ManualClock>,
    log: &Arc<ChangeLog>,
) -> SharedApi {
    let entities = database.entity_stores();
    let queries = fieldline_entities::entity_query::EntityQueryPorts {
        stores: entities.clone(),
        rows: database.entity_rows(),
        values: store.clone(),
        attributes: store.clone(),
        clock: clock.clone(),
    };
    let context = ServiceContext {
        stores: entities.clone(),
        series: store.clone(),
        attributes: store.clone(),
        events: events.clone(),
        clock: clock.clone(),
        passwords: fieldline_entities::password::PasswordHashPool::new(1),
        rule_engine: Arc::new(fieldline_core::ports::NoRuleEngine),
        rule_nodes: Arc::new(fieldline_core::ports::NoRuleNodes),
        rest_endpoints: Arc::new(fieldline_core::ports::NoRestEndpoints),
    };
    let usage = fieldline_core::usage::UsageStore::new(entities.clone(), store.clone(), clock.clone());
    let deps = ApiDependencies {
        observed_store: fieldline_core::observed_store::ObservedStore::new(
            store.clone(),
            store.clone(),
            store.clone(),
            store.clone(),
            store.clone(),
        ),
        queries: fieldline_entities::entity_query::EntityQueryService::new(queries, 1 << 20),
        services: Services::new(context.clone()).with_alarm_gate(usage.clone()),
        token_key: TokenKey::random(),
        token_settings: None,
        mailer: Arc::new(fieldline_core::ports::NoMails),
        overload: fieldline_core::overload::OverloadMonitor::new(clock.clone()),
        sms: Arc::new(fieldline_core::ports::NoSms),
        system_info: Arc::new(fieldline_core::ports::NoSystemInfo),
        set_aside: fieldline_core::set_aside::SetAsideService::new(
            entities.set_aside.clone(),
            Arc::new(fieldline_core::ports::NoRecordQueue),
            clock.clone(),
            &Default::default(),
        ),
        device_link: log.clone(),
        onboarding: DeviceOnboarding::new(context.clone()),
        tenant_transfer: TenantTransfer::new(context, store.clone()),
        rpc: DeviceRpcService::new(SessionRegistry::new(1), entities.rpcs.clone(), clock.clone()),
        usage,
        rest_requests: fieldline_entities::rest_api_requests::RestApiRequests::new(
            "test",
            Default::default(),
        ),
        scripts: Arc::new(fieldline_core::ports::NoScriptTester),
        rule_usage: Arc::new(fieldline_core::ports::NoRuleUsage),
        rule_counters: Arc::new(fieldline_core::ports::NoRuleCounters),
        replays: Arc::new(fieldline_entities::ports::NoRuleReplay),
        reprocess: Arc::new(fieldline_entities::ports::NoFieldReprocess),
        certificates: crate::CertificateFiles::default(),
        map_file: None,
        device_ports: Arc::default(),
        broker_admin: Arc::default(),
    };
    // Tests move the clock by days, and the tokens should stay valid.
    let options = Options {
        access_token_ttl: HumanDuration::secs(366 * 86_400),
        ..Options::default()
    };
    Arc::new(ApiState::new(deps, options))
}

async fn tenant_profile(entities: &EntityStores) -> Result<TenantProfileId, StoreError> {
    let id = TenantProfileId::new();
    let profile = TenantProfile {
        id,
        name: "For ever".to_owned(),
        ..TenantProfile::default()
    };
    entities.tenant_profiles.insert(profile).await?;
    Ok(id)
}

async fn tenants(
    entities: &EntityStores,
    profile: TenantProfileId,
) -> Result<(TenantId, TenantId), StoreError> {
    let ids = (TenantId::new(), TenantId::new());
    for (id, title) in [(ids.0, "Ours"), (ids.1, "Theirs")] {
        let tenant = Tenant {
            id,
            title: title.to_owned(),
            tenant_profile_id: Some(profile),
            ..Tenant::default()
        };
        entities.tenants.insert(tenant).await?;
    }
    Ok(ids)
}

async fn customers(
    entities: &EntityStores,
    tenant: TenantId,
) -> Result<(CustomerId, CustomerId), StoreError> {
    let ids = (CustomerId::new(), CustomerId::new());
    for (id, title) in [(ids.0, "A"), (ids.1, "B")] {
        let customer = Customer {
            id,
            tenant_id: tenant,
            title: title.to_owned(),
            ..Customer::default()
        };
        entities.customers.insert(customer).await?;
    }
    Ok(ids)
}

async fn device(
    entities: &EntityStores,
    tenant: TenantId,
    customer: CustomerId,
) -> Result<(DeviceProfileId, DeviceId), StoreError> {
    let (profile, id) = (DeviceProfileId::new(), DeviceId::new());
    let device_profile = DeviceProfile {
        id: profile,
        tenant_id: tenant,
        name: "default".to_owned(),
        ..DeviceProfile::default()
    };
    entities.device_profiles.insert(device_profile).await?;
    let device = Device {
        id,
        tenant_id: tenant,
        customer_id: customer,
        name: "pump".to_owned(),
        device_type: "default".to_owned(),
        device_profile_id: Some(profile),
        ..Device::default()
    };
    let credentials = DeviceCredentials::access_token(id, "token".to_owned(), NOW);
    entities.devices.create(device, credentials).await?;
    Ok((profile, id))
}

/// Creates a user and its token.
async fn user(
    api: &SharedApi,
    authority: Authority,
    tenant: TenantId,
    customer: CustomerId,
) -> (UserId, String) {
    let id = UserId::new();
    let user = User {
        id,
        tenant_id: tenant,
        customer_id: customer,
        email: format!("{id}@example.com"),
        authority,
        ..User::default()
    };
    let user = api.entities.users.insert(user).await.unwrap();
    let credentials = UserCredentials {
        user_id: id,
        enabled: true,
        password_hash: None,
        activate_token: None,
        tokens_valid_from: 0,
        ..UserCredentials::default()
    };
    api.entities.users.save_credentials(credentials).await.unwrap();
    let times = TokenTimes {
        now_ms: NOW,
        valid_from_ms: 0,
    };
    let opened = api
        .sessions
        .open(&api.tokens, &user, None, times, SignInOrigin::default())
        .await;
    let pair = opened.unwrap();
    let pair = serde_json::to_value(&pair).unwrap();
    (id, pair["token"].as_str().unwrap().to_owned())
}

impl Drop for TelemetryFixture {
    fn drop(&mut self) {
        // The threads of the store must end before the directory is removed.
        self.store.close().unwrap();
    }
}
