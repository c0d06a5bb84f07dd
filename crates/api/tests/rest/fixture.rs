//! The demo installation and a second tenant, and clients that send requests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request, StatusCode, header};
use fieldline_api::{ApiDependencies, Options, TokenKey};
use fieldline_core::ports::{
    BrokerAdminSlot, MailMessage, MailSender, NoRecordQueue, NoSystemInfo, RuleEngine, SmsSender, StoreResult,
};
use fieldline_core::set_aside::SetAsideService;
use fieldline_core::usage::UsageStore;
use fieldline_devices::rpc::DeviceRpcService;
use fieldline_devices::sessions::SessionRegistry;
use fieldline_entities::password::PasswordHashPool;
use fieldline_entities::rest_api_requests::{RestApiRequests, RestRequestLimits};
use fieldline_entities::services::{
    DeviceOnboarding, HousekeeperService, ServiceContext, Services, TenantTransfer,
};
use fieldline_model::TenantId;
use fieldline_model::message::QueueMessage;
use fieldline_testkit::clock::ManualClock;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt as _;

use crate::nodes::{EchoScriptTester, FewNodes};
use crate::stores::FixtureStores;

/// Start time of every test.
pub(crate) const NOW: i64 = 1_760_000_000_000;

/// The fixture; see the module.
pub(crate) struct RestFixture {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) router: Router,
    pub(crate) context: ServiceContext,
    pub(crate) tenant_transfer: Arc<TenantTransfer>,
    housekeeper: Arc<HousekeeperService>,
    /// Usage of tenants.
    pub(crate) usage: Arc<UsageStore>,
    /// Messages to the rule engine.
    pub(crate) rule_engine: Arc<FakeRuleEngine>,
    /// Clients that wait for rule chains.
    pub(crate) rest_requests: Arc<RestApiRequests>,
    /// Mails to users.
    pub(crate) mails: Arc<FakeMailSender>,
    /// Text messages to phones.
    pub(crate) phones: Arc<FakeSmsSender>,
    /// The administration of the broker, which is off at first.
    pub(crate) broker_admin: BrokerAdminSlot,
    start: Box<dyn Fn() -> Router + Send + Sync>,
    _dir: TempDir,
}

/// A rule engine that records its messages.
#[derive(Default)]
pub(crate) struct FakeRuleEngine(Mutex<Vec<(TenantId, QueueMessage)>>);

impl FakeRuleEngine {
    /// Returns the messages since the last call.
    pub(crate) fn take(&self) -> Vec<QueueMessage> {
        let heard = std::mem::take(&mut *self.0.lock().unwrap());
        heard.into_iter().map(|(_, message)| message).collect()
    }

    /// Returns the types of the messages since the last call.
    pub(crate) fn types(&self) -> Vec<String> {
        let heard = self.take();
        heard.iter().map(|message| message.msg_type.to_string()).collect()
    }
}

#[async_trait]
impl RuleEngine for FakeRuleEngine {
    async fn push(&self, tenant: TenantId, message: QueueMessage) -> StoreResult<()> {
        self.0.lock().unwrap().push((tenant, message));
        Ok(())
    }
}

/// A mail sender that records its mails, unless its settings name another host than `mail.example.org`.
#[derive(Default)]
pub(crate) struct FakeMailSender(Mutex<Vec<MailMessage>>);

impl FakeMailSender {
    /// Waits for the next mail.
    pub(crate) async fn next(&self) -> MailMessage {
        for _ in 0..1_000 {
            if let Some(mail) = self.take().pop() {
                return mail;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        panic!("no mail has come");
    }

    /// Returns the mails since the last call.
    pub(crate) fn take(&self) -> Vec<MailMessage> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

#[async_trait]
impl MailSender for FakeMailSender {
    async fn send(&self, server: &Value, mail: &MailMessage) -> Result<(), String> {
        if server["smtpHost"] != "mail.example.org" {
            return Err(format!("no such host: {}", server["smtpHost"]));
        }
        self.0.lock().unwrap().push(mail.clone());
        Ok(())
    }

    fn consent_url(&self, server: &Value, state: &str) -> Result<String, String> {
        let base = server["authUri"].as_str().ok_or("authUri: must not be empty")?;
        Ok(format!("{base}?state={state}"))
    }

    async fn exchange_code(&self, server: &Value, code: &str) -> Result<String, String> {
        match code {
            "good" => Ok(format!("token of {}", server["clientSecret"])),
            _ => Err("invalid_grant".to_owned()),
        }
    }
}

/// A provider of text messages that records them, if the password is right.
#[derive(Default)]
pub(crate) struct FakeSmsSender(Mutex<Vec<(String, String)>>);

impl FakeSmsSender {
    /// Returns the messages since the last call: number and text.
    pub(crate) fn take(&self) -> Vec<(String, String)> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

#[async_trait]
impl SmsSender for FakeSmsSender {
    fn check(&self, provider: &Value) -> Result<(), String> {
        match provider["password"].as_str() {
            Some(_) => Ok(()),
            None => Err("password: must not be empty".to_owned()),
        }
    }

    async fn send(&self, provider: &Value, number: &str, message: &str) -> Result<(), String> {
        self.check(provider)?;
        if provider["password"] != "very secret" {
            return Err("wrong password".to_owned());
        }
        let sent = (number.to_owned(), message.to_owned());
        self.0.lock().unwrap().push(sent);
        Ok(())
    }
}

/// A client that sends requests, with or without a token.
pub(crate) struct FixtureClient<'a> {
    router: &'a Router,
    pub(crate) token: String,
}

impl RestFixture {
    /// The demo with default settings.
    pub(crate) async fn demo() -> Self {
        Self::with(Options::default()).await
    }

    /// Removes the remaining data of deleted entities, as the server does in the background.
    pub(crate) async fn run_housekeeper(&self) {
        self.housekeeper.catch_up().await;
    }

    /// The demo with other settings.
    pub(crate) async fn with(options: Options) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(NOW);
        let FixtureStores {
            series,
            live,
            queries,
            context,
        } = FixtureStores::open(dir.path(), clock.clone(), Arc::new(FewNodes::new()), 64 << 20).await;
        let (entities, events) = (context.stores.clone(), context.events.clone());
        let heard = Arc::new(FakeRuleEngine::default());
        let mails = Arc::new(FakeMailSender::default());
        let phones = Arc::new(FakeSmsSender::default());
        let usage = UsageStore::new(entities.clone(), series, clock.clone());
        events.listen(usage.clone());
        let rest_calls = RestApiRequests::new("test", RestRequestLimits::default());
        let calls = DeviceRpcService::new(SessionRegistry::new(1), entities.rpcs.clone(), clock.clone());
        let moves = TenantTransfer::new(context.clone(), live.clone());
        let leftovers = HousekeeperService::new(context.clone(), live.clone());
        let set_aside = SetAsideService::new(
            entities.set_aside.clone(),
            Arc::new(NoRecordQueue),
            clock.clone(),
            &Default::default(),
        );
        let told = ServiceContext {
            rule_engine: heard.clone(),
            ..context.clone()
        };
        let (hashes, gate) = (options.parallel_password_hashes, usage.clone());
        let services = move || {
            let passwords = PasswordHashPool::new(hashes);
            Services::new(ServiceContext {
                passwords,
                ..told.clone()
            })
            .with_alarm_gate(gate.clone())
        };
        let broker_admin = BrokerAdminSlot::default();
        let deps = ApiDependencies {
            set_aside,
            usage: usage.clone(),
            services: services(),
            observed_store: live,
            queries,
            token_key: TokenKey::random(),
            token_settings: None,
            mailer: mails.clone(),
            overload: fieldline_core::overload::OverloadMonitor::new(clock.clone()),
            sms: phones.clone(),
            system_info: Arc::new(NoSystemInfo),
            rest_requests: rest_calls.clone(),
            device_link: Arc::new(fieldline_devices::downlink::NoDeviceLink),
            rpc: calls,
            onboarding: DeviceOnboarding::new(context.clone()),
            tenant_transfer: moves.clone(),
            scripts: Arc::new(EchoScriptTester),
            rule_usage: Arc::new(fieldline_core::ports::NoRuleUsage),
            rule_counters: Arc::new(fieldline_core::ports::NoRuleCounters),
            replays: Arc::new(fieldline_entities::ports::NoRuleReplay),
            reprocess: Arc::new(crate::calculated_fields::FakeReprocessing::default()),
            certificates: fieldline_api::CertificateFiles::default(),
            map_file: None,
            device_ports: Arc::default(),
            broker_admin: broker_admin.clone(),
        };
        let start = move || {
            let services = services();
            fieldline_api::router(
                ApiDependencies {
                    services,
                    ..deps.clone()
                },
                options.clone(),
            )
        };
        Self {
            router: start(),
            start: Box::new(start),
            clock,
            context,
            tenant_transfer: moves,
            housekeeper: leftovers,
            usage,
            rule_engine: heard,
            rest_requests: rest_calls,
            mails,
            phones,
            broker_admin,
            _dir: dir,
        }
    }

    /// Drops everything that the API holds only in memory.
    pub(crate) fn restart(&mut self) {
        self.router = (self.start)();
    }

    /// A client without a token.
    pub(crate) fn nobody(&self) -> FixtureClient<'_> {
        FixtureClient {
            router: &self.router,
            token: String::new(),
        }
    }

    /// A client with that token.
    pub(crate) fn with_token(&self, token: &str) -> FixtureClient<'_> {
        FixtureClient {
            router: &self.router,
            token: token.to_owned(),
        }
    }

    /// A client that has logged in.
    pub(crate) async fn log_in(&self, username: &str, password: &str) -> FixtureClient<'_> {
        let body = json!({ "username": username, "password": password });
        let pair = self.nobody().post("/api/auth/login", &body).await;
        self.with_token(pair["token"].as_str().unwrap())
    }

    pub(crate) async fn sysadmin(&self) -> FixtureClient<'_> {
        self.log_in("sysadmin@thingsboard.org", "sysadmin").await
    }

    pub(crate) async fn admin(&self) -> FixtureClient<'_> {
        self.log_in("tenant@thingsboard.org", "tenant").await
    }

    /// A user of Customer A.
    pub(crate) async fn customer_user(&self) -> FixtureClient<'_> {
        self.log_in("customer@thingsboard.org", "customer").await
    }

    /// The administrator of a second tenant, created here.
    pub(crate) async fn stranger(&self) -> FixtureClient<'_> {
        let sysadmin = self.sysadmin().await;
        let tenant = sysadmin.post("/api/tenant", &json!({ "title": "Other" })).await;
        let user = json!({
            "email": "stranger@example.org",
            "authority": "TENANT_ADMIN",
            "tenantId": tenant["id"],
        });
        let user = sysadmin.post("/api/user", &user).await;
        let link = sysadmin
            .text(&format!("/api/user/{}/activationLink", id(&user)))
            .await;
        let token = link.split("activateToken=").nth(1).unwrap();
        let activation = json!({ "activateToken": token, "password": "stranger" });
        let pair = self.nobody().post("/api/noauth/activate", &activation).await;
        self.with_token(pair["token"].as_str().unwrap())
    }
}

/// Returns the bare id of an entity.
pub(crate) fn id(entity: &Value) -> &str {
    entity["id"]["id"].as_str().unwrap()
}

impl FixtureClient<'_> {
    /// Sends any request with a JSON body, or none.
    pub(crate) async fn send(&self, method: &str, path: &str, body: impl Into<Body>) -> (StatusCode, String) {
        self.send_as("application/json", method, path, body.into()).await
    }

    /// Sends any request with a body of that media type.
    pub(crate) async fn send_as(
        &self,
        media_type: &str,
        method: &str,
        path: &str,
        body: Body,
    ) -> (StatusCode, String) {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "iot.example.org")
            .header(header::CONTENT_TYPE, media_type)
            .extension(ConnectInfo(SocketAddr::from(([192, 0, 2, 1], 4711))));
        if !self.token.is_empty() {
            request = request.header("X-Authorization", format!("Bearer {}", self.token));
        }
        let request = request.body(body).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    /// Gets bytes with their headers, with a header of the request.
    pub(crate) async fn bytes(&self, path: &str, with: (&str, &str)) -> (StatusCode, HeaderMap, Vec<u8>) {
        let mut request = Request::builder().uri(path).header(with.0, with.1);
        if !self.token.is_empty() {
            request = request.header("X-Authorization", format!("Bearer {}", self.token));
        }
        let request = request.body(Body::empty()).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (head, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        (head.status, head.headers, bytes.to_vec())
    }

    /// Sends a form with a file and texts, and returns what is answered.
    pub(crate) async fn form(
        &self,
        method: &str,
        path: &str,
        file: (&str, &str, &[u8]),
        texts: &[(&str, &str)],
    ) -> (StatusCode, Value) {
        const BOUNDARY: &str = "the-boundary";
        let (name, media_type, data) = file;
        let mut form = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: {media_type}\r\n\r\n"
        )
        .into_bytes();
        form.extend_from_slice(data);
        for (name, text) in texts {
            let part =
                format!("\r\n--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}");
            form.extend_from_slice(part.as_bytes());
        }
        form.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
        let media_type = format!("multipart/form-data; boundary={BOUNDARY}");
        let (status, text) = self.send_as(&media_type, method, path, Body::from(form)).await;
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    async fn succeed(&self, method: &str, path: &str, body: String) -> String {
        let (status, text) = self.send(method, path, body).await;
        assert_eq!(status, StatusCode::OK, "{method} {path}: {text}");
        text
    }

    pub(crate) async fn text(&self, path: &str) -> String {
        self.succeed("GET", path, String::new()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        serde_json::from_str(&self.text(path).await).unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Value {
        let text = self.succeed("POST", path, body.to_string()).await;
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    pub(crate) async fn delete(&self, path: &str) {
        self.succeed("DELETE", path, String::new()).await;
    }

    /// Sends a request that must be refused, and checks the error body; returns status, code and message.
    pub(crate) async fn refused(&self, method: &str, path: &str, body: &Value) -> (u16, u64, String) {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let (status, text) = self.send(method, path, body).await;
        assert!(!status.is_success(), "{method} {path}: {text}");
        let error: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{method} {path}: {text}"));
        assert_eq!(error["status"], status.as_u16());
        assert!(error["timestamp"].is_i64());
        (
            status.as_u16(),
            error["errorCode"].as_u64().unwrap(),
            error["message"].as_str().unwrap().to_owned(),
        )
    }
}

/// An expected refusal: status, code and message.
pub(crate) fn no(status: u16, code: u64, message: &str) -> (u16, u64, String) {
    (status, code, message.to_owned())
}
