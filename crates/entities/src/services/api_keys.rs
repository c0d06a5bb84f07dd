//! Keys that programs use in the place of a user's password.

use std::sync::Arc;

use fieldline_core::ports::ApiKeyChange;
use fieldline_devices::directory::sha3_hex;
use fieldline_model::entity::{ApiKey, ApiKeyInfo, EntityDraft, User};
use fieldline_model::page::PageLink;
use fieldline_model::{ApiKeyId, new_uuid};

use super::{ServiceContext, ServiceError, ServiceResult, random_text, validate};

/// What values begin with, so that they are recognized where they should not be.
const PREFIX: &str = "tb_";
/// Random letters and digits of a value.
const VALUE_LENGTH: usize = 64;
/// Longest value that is looked up.
const MAX_VALUE: usize = 255;
/// Keys that a user may have.
const MAX_KEYS: u64 = 100;

/// Rules about keys.
#[derive(Clone)]
pub struct ApiKeyService(Arc<ServiceContext>);

impl ApiKeyService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::clone(context))
    }

    /// Makes a key for a user. Its value is returned this once, and not kept.
    ///
    /// # Errors
    /// A rule is broken, or the user has as many keys as it may have.
    pub async fn create(&self, user: &User, mut key: EntityDraft<ApiKeyInfo>) -> ServiceResult<ApiKey> {
        check(&key)?;
        let store = &self.0.stores.api_keys;
        let id = user.id;
        if store.list(id, &PageLink::first(1)).await?.total_elements >= MAX_KEYS {
            return Err(ServiceError::invalid(format!(
                "A user must not have more than {MAX_KEYS} API keys!"
            )));
        }
        key.user_id = id;
        key.tenant_id = user.tenant_id;
        let value = format!("{PREFIX}{}", random_text(VALUE_LENGTH));
        let key = key.into_new(ApiKeyId(new_uuid()), self.0.now());
        let info = store.create(key, &sha3_hex(&value)).await?;
        Ok(ApiKey {
            info: self.shown(info),
            value: Some(value),
        })
    }

    /// Changes the description of a key, or whether it counts, or both.
    ///
    /// # Errors
    /// A rule is broken, or there is no such key.
    pub async fn update(&self, id: ApiKeyId, change: ApiKeyChange<'_>) -> ServiceResult<ApiKeyInfo> {
        if let Some(description) = change.description {
            check_description(description)?;
        }
        let changed = self.0.stores.api_keys.update(id, change).await?;
        let changed = changed.ok_or_else(|| ServiceError::invalid("Cannot update non-existent API key!"))?;
        Ok(self.shown(changed))
    }

    /// The key of a value that somebody shows, if it counts now.
    ///
    /// # Errors
    /// The store failed.
    pub async fn find(&self, value: &str) -> ServiceResult<Option<ApiKeyInfo>> {
        if value.len() > MAX_VALUE || !value.starts_with(PREFIX) {
            return Ok(None);
        }
        Ok(self.0.stores.api_keys.by_hash(&sha3_hex(value)).await?)
    }

    /// A key as it is at this moment.
    pub fn shown(&self, mut key: ApiKeyInfo) -> ApiKeyInfo {
        key.expired = key.is_expired(self.0.now());
        key
    }
}

fn check(key: &ApiKeyInfo) -> ServiceResult<()> {
    check_description(&key.description)?;
    if key.expiration_time < 0 {
        return Err(ServiceError::invalid(
            "API key expiration time must not be negative!",
        ));
    }
    Ok(())
}

fn check_description(description: &str) -> ServiceResult<()> {
    validate::required("API key description", description)?;
    validate::lengths(&[("description", Some(description))])
}
