//! Claiming: a device tells a secret, and the customer's user who tells the same gets the device.

use std::collections::BTreeSet;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use fieldline_core::options::HumanDuration;
use fieldline_core::ports::StoreResult;
use fieldline_devices::directory::same_secret;
use fieldline_model::entity::{Customer, Device};
use fieldline_model::kv::KvValue as Stored;
use fieldline_model::timeseries::{Attribute, AttributeScope};
use fieldline_model::{CustomerId, DeviceId, EntityKey, TenantId, UserId};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{DeviceService, ServiceContext, ServiceError, ServiceResult};
use super::DeviceLocks;
use super::guess_limiter::{ClaimGuess, ClaimGuessLimiter};

/// Devices that can be claimed at a time.
const MAX_CLAIMS: usize = 100_000;
/// A tenant may take a quarter of them, so that others have room for theirs.
const TENANT_SHARE_DIVISOR: usize = 4;
/// How many of those that are over are forgotten with each one that is new.
const EXPIRED_PER_INSERT: usize = 8;
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
    pub duration: HumanDuration,
    /// Whether every device may let itself be claimed; otherwise only one whose server attribute `claimingAllowed` is true.
    pub allow_by_default: bool,
}

impl Default for ClaimOptions {
    fn default() -> Self {
        Self {
            duration: HumanDuration::secs(86_400),
            allow_by_default: true,
        }
    }
}

/// What has to be told to get a device. It holds a secret, hence no `Debug`.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaimData {
    #[serde(default)]
    secret_key: Option<String>,
    expiration_time: i64,
}

/// What became of a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum ClaimOutcome {
    /// The device is the customer's now.
    Success(Box<Device>),
    /// The device cannot be claimed, or not with that secret.
    Failure,
    /// It belongs to a customer already.
    Claimed,
    /// Too many wrong secrets have come from there; the next one is looked at after so many milliseconds.
    TooOften(i64),
}

/// What devices have allowed.
#[derive(Default)]
struct OpenClaims {
    by_device: FxHashMap<DeviceId, (TenantId, ClaimData)>,
    /// The same in the order in which they are over.
    ending: BTreeSet<(i64, DeviceId)>,
    of_tenant: FxHashMap<TenantId, usize>,
}

impl OpenClaims {
    /// Returns whether there is room for it.
    fn insert(&mut self, tenant: TenantId, device: DeviceId, claim: ClaimData, now_ms: i64) -> bool {
        for _ in 0..EXPIRED_PER_INSERT {
            match self.ending.first().copied() {
                Some((end, over)) if end < now_ms => self.remove(&over),
                _ => break,
            }
        }
        self.remove(&device);
        let of_tenant = self.of_tenant.get(&tenant).copied().unwrap_or(0);
        if self.by_device.len() >= MAX_CLAIMS || of_tenant >= MAX_CLAIMS / TENANT_SHARE_DIVISOR {
            return false;
        }
        self.ending.insert((claim.expiration_time, device));
        self.by_device.insert(device, (tenant, claim));
        self.of_tenant.insert(tenant, of_tenant + 1);
        true
    }

    fn remove(&mut self, device: &DeviceId) {
        let Some((tenant, claim)) = self.by_device.remove(device) else {
            return;
        };
        self.ending.remove(&(claim.expiration_time, *device));
        if let Entry::Occupied(mut count) = self.of_tenant.entry(tenant) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// See the module.
pub struct ClaimDevicesService {
    context: Arc<ServiceContext>,
    devices: DeviceService,
    open: Mutex<OpenClaims>,
    locks: DeviceLocks,
    guesses: ClaimGuessLimiter,
    options: ClaimOptions,
}

impl ClaimDevicesService {
    pub(super) fn new(context: &Arc<ServiceContext>, options: &ClaimOptions) -> Self {
        Self {
            context: Arc::clone(context),
            devices: DeviceService::new(context),
            open: Mutex::default(),
            locks: DeviceLocks::default(),
            guesses: ClaimGuessLimiter::default(),
            options: options.clone(),
        }
    }

    /// A device lets itself be claimed for some milliseconds (the usual time where that is not positive), unless a customer
    /// has it, or it may not.
    /// Returns whether it can be claimed now.
    ///
    /// # Errors
    /// The store failed.
    pub async fn open(&self, subject: EntityKey, secret: String, duration_ms: i64) -> StoreResult<bool> {
        let id = DeviceId(subject.entity.id);
        let device = self.context.stores.devices.get(subject.tenant, id).await?;
        let is_free = device.is_some_and(|device| device.customer_id.is_null());
        if !is_free || secret.len() > MAX_SECRET || !self.is_allowed(subject).await? {
            return Ok(false);
        }
        let now = self.context.now();
        let usual = i64::try_from(self.options.duration.0.as_millis()).unwrap_or(i64::MAX);
        let duration = if duration_ms > 0 { duration_ms } else { usual };
        let claim = ClaimData {
            secret_key: Some(secret),
            expiration_time: now.saturating_add(duration),
        };
        Ok(self.open.lock().insert(subject.tenant, id, claim, now))
    }

    /// Gives the device to the customer of a user who tells its secret. A wrong one changes nothing, except that who tells
    /// many of them has to wait.
    ///
    /// # Errors
    /// The store failed.
    pub async fn claim(
        &self,
        device: &Device,
        (customer, user): (CustomerId, UserId),
        secret: &str,
    ) -> ServiceResult<ClaimOutcome> {
        let guess = ClaimGuess {
            user,
            customer,
            device: device.id,
            tenant: device.tenant_id,
        };
        if let Err(wait) = self.guesses.count_guess(&guess, self.context.now()) {
            return Ok(ClaimOutcome::TooOften(wait));
        }
        let claimed = self.claim_once(&guess, secret).await;
        if !matches!(claimed, Ok(ClaimOutcome::Failure)) {
            self.guesses.uncount_guess(&guess);
        }
        claimed
    }

    async fn claim_once(&self, guess: &ClaimGuess, secret: &str) -> ServiceResult<ClaimOutcome> {
        let (tenant, id, customer) = (guess.tenant, guess.device, guess.customer);
        let subject = EntityKey::device(tenant, id);
        // Of two who tell the secret at the same time, one gets the device.
        let Some(_turn) = self.locks.try_lock(id) else {
            return Ok(ClaimOutcome::Failure);
        };
        let told = self
            .open
            .lock()
            .by_device
            .get(&id)
            .map(|(_, claim)| claim.clone());
        let claim = match told {
            Some(claim) => Some(claim),
            None => self.stored(subject).await?,
        };
        let current = self.context.stores.devices.get(tenant, id).await?;
        let is_free = current.is_some_and(|device| device.customer_id.is_null());
        let Some(claim) = claim else {
            return Ok(if is_free {
                ClaimOutcome::Failure
            } else {
                ClaimOutcome::Claimed
            });
        };
        let wanted = claim.secret_key.as_deref().unwrap_or_default();
        if self.context.now() > claim.expiration_time {
            self.open.lock().remove(&id);
            return Ok(ClaimOutcome::Failure);
        }
        if !same_secret(wanted.as_bytes(), secret.as_bytes()) {
            return Ok(ClaimOutcome::Failure);
        }
        let keys = [CLAIM_ALLOWED, CLAIM_DATA].map(str::to_owned);
        // A store that fails does not cost the device what it has allowed.
        let device = match is_free {
            true => {
                self.devices
                    .reassign(tenant, id, CustomerId::NULL, customer)
                    .await?
            }
            false => None,
        };
        self.open.lock().remove(&id);
        self.context
            .attributes
            .delete(subject, AttributeScope::Server, &keys)
            .await?;
        Ok(device.map_or(ClaimOutcome::Claimed, |device| {
            ClaimOutcome::Success(Box::new(device))
        }))
    }

    /// Takes a device back from its customer; returns the customer that had it.
    ///
    /// # Errors
    /// The store failed.
    pub async fn reclaim(&self, device: &Device) -> ServiceResult<Option<Customer>> {
        let (tenant, id) = (device.tenant_id, device.id);
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
        let taken = self
            .devices
            .reassign(tenant, id, device.customer_id, CustomerId::NULL)
            .await?;
        Ok(taken.map(|_| customer))
    }

    /// Whether the device may let itself be claimed.
    async fn is_allowed(&self, subject: EntityKey) -> StoreResult<bool> {
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
    async fn stored(&self, subject: EntityKey) -> StoreResult<Option<ClaimData>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(expiration_time: i64) -> ClaimData {
        ClaimData {
            secret_key: None,
            expiration_time,
        }
    }

    #[test]
    fn a_tenant_takes_its_part_of_the_room_and_what_is_over_makes_more() {
        let (greedy, other) = (TenantId::new(), TenantId::new());
        let mut open = OpenClaims::default();
        let first = DeviceId::new();
        assert!(open.insert(greedy, first, claim(10), 0));
        for _ in 1..MAX_CLAIMS / TENANT_SHARE_DIVISOR {
            assert!(open.insert(greedy, DeviceId::new(), claim(20), 0));
        }
        assert!(!open.insert(greedy, DeviceId::new(), claim(20), 0));
        assert!(open.insert(greedy, first, claim(10), 0), "once more is no other");
        assert!(open.insert(other, DeviceId::new(), claim(20), 0));
        assert!(open.insert(greedy, DeviceId::new(), claim(20), 11), "one is over");
        assert!(!open.insert(greedy, DeviceId::new(), claim(20), 11));
        for device in open.by_device.keys().copied().collect::<Vec<_>>() {
            open.remove(&device);
        }
        assert!(open.ending.is_empty() && open.of_tenant.is_empty());
    }
}
