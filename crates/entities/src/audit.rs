//! Keeps what people did. Nobody waits for the disk: entries are written in batches by a task of their own; where it cannot
//! keep up, those who do things are slowed down. What had not been written when the program was killed is lost.

use std::borrow::Cow;
use std::sync::Arc;

use fieldline_core::logging::LogGate;
use fieldline_core::ports::AuditStore;
use fieldline_model::TenantId;
use fieldline_model::entity::AuditLog;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tracing::warn;

/// Entries that wait to be written.
const QUEUE_CAPACITY: usize = 2_000;
const BATCH: usize = 500;
/// Longest data of an entry, in bytes; more is left out.
const MAX_DATA: usize = 65_536;
/// Longest text about a failure, in characters.
const MAX_DETAILS: usize = 4_096;
/// Entries about data and failures that a tenant may store in an hour. Other actions are few, and always stored.
const MAX_CHANGES_PER_HOUR: u32 = 20_000;
const HOUR_MS: i64 = 3_600_000;

static GATE: LogGate = LogGate::new(1);

/// Takes what people did.
#[derive(Clone)]
pub struct AuditTrail {
    sender: mpsc::Sender<AuditLog>,
    /// When the hour of a tenant began, and how much was stored in it.
    hours: Arc<Mutex<FxHashMap<TenantId, (i64, u32)>>>,
}

impl AuditTrail {
    /// Starts the task that writes; it ends when the last handle is dropped and everything is written. Needs a runtime.
    pub fn start(store: Arc<dyn AuditStore>) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
        tokio::spawn(write(store, receiver));
        Self {
            sender,
            hours: Arc::default(),
        }
    }

    /// Keeps an entry; waits while too many are not written yet.
    pub async fn record(&self, mut entry: AuditLog) {
        let counts = entry.action_type.is_about_data() || !entry.succeeded;
        if counts && !self.try_acquire(entry.tenant_id, entry.created_time) {
            return;
        }
        let length = entry.action_data.get().len();
        if length > MAX_DATA {
            entry.action_data = raw(format!("{{\"omitted\":\"{length} bytes\"}}"));
        }
        if entry.action_failure_details.len() > MAX_DETAILS {
            let kept = entry.action_failure_details.chars().take(MAX_DETAILS);
            entry.action_failure_details = kept.collect();
        }
        // Fails when the program ends.
        let _ = self.sender.send(entry).await;
    }

    fn try_acquire(&self, tenant: TenantId, now: i64) -> bool {
        let mut hours = self.hours.lock();
        let hour = hours.entry(tenant).or_insert((now, 0));
        if !(0..HOUR_MS).contains(&(now - hour.0)) {
            *hour = (now, 0);
        }
        hour.1 = hour.1.saturating_add(1);
        if hour.1 == MAX_CHANGES_PER_HOUR + 1 {
            warn!(%tenant, "the audit log leaves out further changes of data and failures of this hour");
        }
        hour.1 <= MAX_CHANGES_PER_HOUR
    }
}

/// Names of fields that hold secrets, as rule nodes, profiles, transports and settings call them.
const SECRETS: [&str; 25] = [
    "accessToken",
    "accountToken",
    "apiKey",
    "authToken",
    "authenticationPassphrase",
    "botToken",
    "clientSecret",
    "community",
    "credentialsValue",
    "firebaseServiceAccountCredentials",
    "password",
    "privacyPassphrase",
    "privateKey",
    "privateKeyPassword",
    "provisionDeviceSecret",
    "proxyPassword",
    "refreshToken",
    "sasKey",
    "secret",
    "secretAccessKey",
    "secretKey",
    "serviceAccountKey",
    "sharedAccessKey",
    "token",
    "tokenSigningKey",
];

/// Whether a field of this name holds a secret.
pub fn is_secret(name: &str) -> bool {
    SECRETS.contains(&name)
}

/// Takes secrets out of a JSON value, at any depth.
pub fn hide_secrets(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !is_secret(name));
            fields.values_mut().for_each(hide_secrets);
        }
        Value::Array(items) => items.iter_mut().for_each(hide_secrets),
        _ => {}
    }
}

/// The same with a JSON text. One that has none stays as it is, and is not read.
pub(crate) fn text_without_secrets(text: &str) -> Cow<'_, str> {
    if !SECRETS.iter().any(|name| text.contains(name)) {
        return Cow::Borrowed(text);
    }
    let Ok(mut value) = serde_json::from_str(text) else {
        return Cow::Borrowed("null");
    };
    hide_secrets(&mut value);
    Cow::Owned(value.to_string())
}

/// JSON text as it is; an empty object where it is none.
pub fn raw(json: String) -> Box<RawValue> {
    RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

async fn write(store: Arc<dyn AuditStore>, mut entries: mpsc::Receiver<AuditLog>) {
    let mut batch = Vec::with_capacity(BATCH);
    // What comes while a batch is written makes the next one.
    while entries.recv_many(&mut batch, BATCH).await > 0 {
        let count = batch.len();
        if let Err(error) = store.append(std::mem::take(&mut batch)).await
            && let Some(suppressed) = GATE.open()
        {
            warn!(count, %error, suppressed, "cannot store what people did");
        }
    }
}
