//! Claiming: a device tells a secret, and the customer's user who tells the same gets the device.

use std::sync::Arc;

use fieldline_model::entity::{Customer, Device};
use fieldline_model::kv::Value as Stored;
use fieldline_model::timeseries::{Attribute, AttributeScope};
use fieldline_model::{CustomerId, DeviceId, Subject};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{AssignedService as _, Context, Devices, ServiceError, ServiceResult};
use super::Turns;
use crate::devices::same_secret;
use crate::options::Span;
use crate::ports::StoreResult;

/// Devices that can be claimed at a time.
const MAX_CLAIMS: usize = 100_000;
/// Longest secret, bytes.
const MAX_SECRET: usize = 1_024;
/// Server attribute with the secret of a device that does not tell it itself, and its fellow.
const CLAIM_DATA: &str = "claimingData";
const CLAIM_ALLOWED: &str = "claimingAllowed";

/// Settings of claiming.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClaimOptions {
    /// How long a device can be claimed that does not say.
    pub duration: Span,
    /// Whether every device may let itself be claimed; otherwise only one whose server attribute `claimingAllowed` is true.
    pub allow_by_default: bool,
}

impl Default for ClaimOptions {
    fn default() -> Self {
        Self {
            duration: Span::secs(86_400),
            allow_by_default: true,
        }
    }
}

/// What has to be told to get a device. It holds a secret, hence no `Debug`.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Claim {
    #[serde(default)]
    secret_key: Option<String>,
    expiration_time: i64,
}

/// What became of a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum Claimed {
    /// The device is the customer's now.
    Success(Box<Device>),
    /// The device cannot be claimed, or not with that secret.
    Failure,
    /// It belongs to a customer already.
    Claimed,
}

/// See the module.
pub struct Claims {
    context: Arc<Context>,
    devices: Devices,
    open: Mutex<FxHashMap<DeviceId, Claim>>,
    turns: Turns,
    options: ClaimOptions,
}

impl Claims {
    pub(super) fn new(context: &Arc<Context>, devices: &Devices, options: &ClaimOptions) -> Self {
        Self {
            context: Arc::clone(context),
            devices: devices.clone(),
            open: Mutex::default(),
            turns: Turns::default(),
            options: options.clone(),
        }
    }

    /// A device lets itself be claimed for some milliseconds (the usual time where that is not positive), unless a customer
    /// has it, or it may not.
    /// Returns whether it can be claimed now.
    ///
    /// # Errors
    /// The store failed.
    pub async fn open(&self, subject: Subject, secret: String, duration_ms: i64) -> StoreResult<bool> {
        let id = DeviceId(subject.entity.id);
        let device = self.context.stores.devices.get(subject.tenant, id).await?;
        let is_free = device.is_some_and(|device| device.customer_id.is_null());
        if !is_free || secret.len() > MAX_SECRET || !self.is_allowed(subject).await? {
            return Ok(false);
        }
        let now = self.context.now();
        let usual = i64::try_from(self.options.duration.0.as_millis()).unwrap_or(i64::MAX);
        let duration = if duration_ms > 0 { duration_ms } else { usual };
        let claim = Claim {
            secret_key: Some(secret),
            expiration_time: now.saturating_add(duration),
        };
        let mut open = self.open.lock();
        if open.len() >= MAX_CLAIMS {
            open.retain(|_, claim| claim.expiration_time >= now);
        }
        let has_room = open.len() < MAX_CLAIMS || open.contains_key(&id);
        if has_room {
            open.insert(id, claim);
        }
        Ok(has_room)
    }

    /// Gives the device to a customer who tells its secret. A wrong one ends what the device has allowed.
    ///
    /// # Errors
    /// The store failed.
    pub async fn claim(&self, device: Device, customer: CustomerId, secret: &str) -> ServiceResult<Claimed> {
        let (tenant, id) = (device.tenant_id, device.id.unwrap_or_default());
        let subject = Subject::device(tenant, id);
        // Of two who tell the secret at the same time, one gets the device.
        let Some(_turn) = self.turns.take(id) else {
            return Ok(Claimed::Failure);
        };
        let told = self.open.lock().get(&id).cloned();
        let claim = match told {
            Some(claim) => Some(claim),
            None => self.stored(subject).await?,
        };
        let current = self.context.stores.devices.get(tenant, id).await?;
        let is_free = current.is_some_and(|device| device.customer_id.is_null());
        let Some(claim) = claim else {
            return Ok(if is_free {
                Claimed::Failure
            } else {
                Claimed::Claimed
            });
        };
        let wanted = claim.secret_key.as_deref().unwrap_or_default();
        if self.context.now() > claim.expiration_time || !same_secret(wanted.as_bytes(), secret.as_bytes()) {
            self.open.lock().remove(&id);
            return Ok(Claimed::Failure);
        }
        let keys = [CLAIM_ALLOWED, CLAIM_DATA].map(str::to_owned);
        // A store that fails does not cost the device what it has allowed.
        let device = match is_free {
            true => Some(self.devices.assign(tenant, id, customer).await?),
            false => None,
        };
        self.open.lock().remove(&id);
        self.context
            .attributes
            .delete(subject, AttributeScope::Server, &keys)
            .await?;
        Ok(device.map_or(Claimed::Claimed, |device| Claimed::Success(Box::new(device))))
    }

    /// Takes a device back from its customer; returns the customer that had it.
    ///
    /// # Errors
    /// The store failed.
    pub async fn reclaim(&self, device: &Device) -> ServiceResult<Option<Customer>> {
        let (tenant, id) = (device.tenant_id, device.id.unwrap_or_default());
        self.open.lock().remove(&id);
        if device.customer_id.is_null() {
            return Ok(None);
        }
        let customer = self
            .context
            .stores
            .customers
            .get(tenant, device.customer_id)
            .await?
            .ok_or_else(|| ServiceError::not_found("The customer is not found"))?;
        self.devices.assign(tenant, id, CustomerId::NULL).await?;
        Ok(Some(customer))
    }

    /// Whether the device may let itself be claimed.
    async fn is_allowed(&self, subject: Subject) -> StoreResult<bool> {
        if self.options.allow_by_default {
            return Ok(true);
        }
        let keys = [CLAIM_ALLOWED.to_owned()];
        let found = self
            .context
            .attributes
            .get(subject, AttributeScope::Server, Some(&keys))
            .await?;
        let is_true = |attribute: &Attribute| attribute.value == Stored::Bool(true);
        Ok(found.first().is_some_and(is_true))
    }

    /// What a person has written into an attribute.
    async fn stored(&self, subject: Subject) -> StoreResult<Option<Claim>> {
        let keys = [CLAIM_DATA.to_owned()];
        let found = self
            .context
            .attributes
            .get(subject, AttributeScope::Server, Some(&keys))
            .await?;
        Ok(found.into_iter().find_map(|attribute| match attribute.value {
            Stored::Json(text) | Stored::Text(text) => serde_json::from_str(&text).ok(),
            _ => None,
        }))
    }
}
