//! Where the settings of the ways in which clients show who they are, and their order, are stored: one document each of the
//! installation.

use std::sync::Arc;

use fieldline_core::ports::{SettingsStore, StoreError, StoreErrorKind, StoreResult};
use fieldline_model::entity::AdminSettings;
use fieldline_model::{AdminSettingsId, TenantId, new_uuid};
use serde::Deserialize;
use serde_json::{Value, json};

use super::provider_settings::AuthProviders;
use super::providers::{AuthProviderType, ORDER_KEY, PROVIDERS_KEY, auth_provider_order};
use crate::services::{ServiceError, ServiceErrorKind, ServiceResult};

/// Most attempts to save against others who save.
const ATTEMPTS: usize = 8;

/// The settings of a document. What an older program has not stored has its default. What cannot be read is an error: with
/// other settings than those that were saved, the broker may be open to everyone.
fn read(document: &Value) -> StoreResult<AuthProviders> {
    AuthProviders::deserialize(document).map_err(|error| {
        let message = "The settings of the MQTT auth providers are unreadable";
        StoreError::new(StoreErrorKind::Corrupt, message).caused_by(error)
    })
}

/// The settings that are stored, and the document that they were read from; the defaults where nothing is stored.
async fn stored(settings: &dyn SettingsStore) -> StoreResult<(AuthProviders, Option<AdminSettings>)> {
    let document = settings.admin(PROVIDERS_KEY).await?;
    let providers = match &document {
        Some(document) => read(&document.json_value)?,
        None => AuthProviders::default(),
    };
    Ok((providers, document))
}

/// The order in which providers are asked.
pub(super) async fn load_order(settings: &Arc<dyn SettingsStore>) -> StoreResult<Vec<AuthProviderType>> {
    let document = settings.admin(ORDER_KEY).await?;
    auth_provider_order(document.as_ref().map(|document| &document.json_value)).map_err(|error| {
        let message = "The order of the MQTT auth providers is unreadable";
        StoreError::new(StoreErrorKind::Corrupt, message).caused_by(std::io::Error::other(error))
    })
}

pub(super) async fn load(settings: &Arc<dyn SettingsStore>) -> StoreResult<AuthProviders> {
    stored(&**settings).await.map(|(providers, _)| providers)
}

/// Changes the settings, whoever else does at the same time. Callers of one program have to take turns: what is saved first
/// replaces what another has saved in between.
pub(super) async fn change(
    settings: &Arc<dyn SettingsStore>,
    now_ms: i64,
    change: &(dyn Fn(&mut AuthProviders) -> ServiceResult<()> + Send + Sync),
) -> ServiceResult<AuthProviders> {
    for _ in 0..ATTEMPTS {
        let (mut providers, document) = stored(&**settings).await?;
        change(&mut providers)?;
        let replacement = |id| AdminSettings {
            id,
            created_time: now_ms,
            tenant_id: TenantId::NULL,
            key: PROVIDERS_KEY.to_owned(),
            json_value: json!(providers),
        };
        let is_saved = match document {
            None => {
                settings
                    .save_admin(replacement(AdminSettingsId(new_uuid())))
                    .await?;
                true
            }
            Some(document) => settings
                .replace_admin(replacement(document.id), &document.json_value)
                .await?
                .is_some(),
        };
        if is_saved {
            return Ok(providers);
        }
    }
    let message = "Others change the MQTT auth providers at the same time!";
    Err(ServiceError::new(ServiceErrorKind::VersionConflict, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_stored_has_its_default_and_what_is_unreadable_none() {
        let stored = json!({ "MQTT_BASIC": { "configuration": {} }, "X_509": {} });
        assert_eq!(read(&stored).expect("settings"), AuthProviders::default());
        assert_eq!(read(&json!({})).expect("settings"), AuthProviders::default());
        for unreadable in [
            json!(null),
            json!(7),
            json!({ "MQTT_BASIC": { "enabled": "no" } }),
            json!({ "MQTT_BASIC": { "configuration": { "authStrategy": "LATER" } } }),
        ] {
            let error = read(&unreadable).expect_err("no settings");
            assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{unreadable}");
        }
    }
}
