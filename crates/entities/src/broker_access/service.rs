//! What administrators change of the access to the broker, and what they see.

use std::cmp::Ordering;

use fieldline_core::ports::{MqttCredentialsCount, MqttCredentialsFilter};
use fieldline_model::entity::{MqttClientCredentials, MqttCredentialsType, ShortMqttClientCredentials};
use fieldline_model::new_uuid;
use fieldline_model::page::{PageData, PageLink, SortOrder};
use uuid::Uuid;

use super::scram::{ScramKeys, ScramValue};
use super::values::{self, BasicValue};
use super::{AccessState, BrokerAccessService};
use crate::password::PasswordError;
use crate::services::{ServiceError, ServiceErrorKind, ServiceResult};

/// Longest password, bytes.
const MAX_PASSWORD: usize = 1_024;
/// Most attempts to change credentials against others who change them.
pub(super) const ATTEMPTS: usize = 5;

/// A change of the password of credentials. An empty password is none.
#[derive(Debug, Clone, Copy)]
pub struct PasswordChange<'a> {
    /// The password that counts now.
    pub current: Option<&'a str>,
    /// The one that shall count.
    pub new: Option<&'a str>,
}

pub(super) fn not_found() -> ServiceError {
    ServiceError::not_found("Requested item wasn't found!")
}

fn non_existent() -> ServiceError {
    ServiceError::invalid("Unable to update non-existent MQTT Client credentials!")
}

fn check_password(password: &str) -> ServiceResult<()> {
    if password.len() > MAX_PASSWORD {
        return Err(ServiceError::invalid(format!(
            "Validation error: password must not be longer than {MAX_PASSWORD} bytes"
        )));
    }
    Ok(())
}

/// The value to store of `SCRAM` credentials: with the keys of a new password, with those that are given, or with those of before.
async fn scram_value(
    credentials: &MqttClientCredentials,
    kept: Option<&MqttClientCredentials>,
) -> ServiceResult<String> {
    let mut value = ScramValue::of(credentials)?;
    let algorithm = value.algorithm;
    let keys = match non_empty(value.password.as_deref()) {
        Some(password) => {
            check_password(password)?;
            let password = password.to_owned();
            let derived = tokio::task::spawn_blocking(move || ScramKeys::of_password(algorithm, &password));
            Some(derived.await.map_err(|_| busy(PasswordError::Failed))?)
        }
        None => match (ScramKeys::of_value(&value), kept) {
            (Some(keys), _) => Some(keys),
            (None, Some(kept)) => ScramKeys::of_value(&ScramValue::of(kept)?),
            (None, None) => None,
        },
    };
    let keys = keys.filter(|keys| keys.algorithm == algorithm);
    let missing =
        || ServiceError::invalid("SCRAM credentials need a password, or salt, serverKey and storedKey!");
    keys.ok_or_else(missing)?.put_into(&mut value);
    value.to_text()
}

/// Others change credentials all the time.
pub(super) fn changed_by_others() -> ServiceError {
    let message = "MQTT Client credentials were already changed by someone else";
    ServiceError::new(ServiceErrorKind::VersionConflict, message)
}

fn busy(error: PasswordError) -> ServiceError {
    let kind = match error {
        PasswordError::Busy => ServiceErrorKind::Unavailable,
        PasswordError::Failed => ServiceErrorKind::Internal,
    };
    ServiceError::new(kind, error.to_string())
}

fn non_empty(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// Whether a text contains another one, whatever the case.
pub(super) fn contains(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

/// A page of what is in memory. `compare` knows the properties that a list is sorted by.
pub(super) fn page_of<T>(
    mut all: Vec<T>,
    page: &PageLink,
    compare: impl Fn(&str, &T, &T) -> Option<Ordering>,
) -> ServiceResult<PageData<T>> {
    if let Some(property) = page.sort_property.as_deref() {
        if let [first, ..] = all.as_slice()
            && compare(property, first, first).is_none()
        {
            let property: String = property.chars().take(64).collect();
            return Err(ServiceError::invalid(format!(
                "Unsupported sort property '{property}'!"
            )));
        }
        all.sort_by(|a, b| compare(property, a, b).unwrap_or(Ordering::Equal));
        if page.sort_order == Some(SortOrder::Desc) {
            all.reverse();
        }
    }
    let total = all.len() as u64;
    let skipped = usize::try_from(page.offset()).unwrap_or(usize::MAX);
    let data = all.into_iter().skip(skipped).take(page.page_size as usize);
    Ok(PageData::new(data.collect(), total, page))
}

/// Credentials.
impl BrokerAccessService {
    /// Creates credentials, or changes those with the given id, whose password stays.
    ///
    /// # Errors
    /// A rule is broken, or a name is taken.
    pub async fn save(&self, mut credentials: MqttClientCredentials) -> ServiceResult<MqttClientCredentials> {
        let state = &self.0;
        values::check(&mut credentials)?;
        for _ in 0..ATTEMPTS {
            let before = match credentials.id.is_nil() {
                true => None,
                false => Some(state.stored(credentials.id).await?.ok_or_else(non_existent)?),
            };
            state.check_free(&credentials, before.as_ref()).await?;
            let mut saved = credentials.clone();
            let kept = before
                .as_ref()
                .filter(|before| before.credentials_type == credentials.credentials_type);
            match credentials.credentials_type {
                MqttCredentialsType::MqttBasic => {
                    let mut value = BasicValue::of(&credentials)?;
                    value.password = match kept {
                        Some(kept) => BasicValue::of(kept)?.password,
                        None => state.hashed(value.password.as_deref()).await?,
                    };
                    saved.credentials_value = value.to_text()?;
                }
                MqttCredentialsType::Scram => {
                    saved.credentials_value = scram_value(&credentials, kept).await?;
                }
                MqttCredentialsType::X509 => {}
            }
            if let Some(saved) = state.store(saved, before.as_ref()).await? {
                return values::shown(saved);
            }
        }
        Err(changed_by_others())
    }

    /// The credentials with this id, without their password.
    ///
    /// # Errors
    /// There are none, or the store failed.
    pub async fn get(&self, id: Uuid) -> ServiceResult<MqttClientCredentials> {
        values::shown(self.0.stored(id).await?.ok_or_else(not_found)?)
    }

    /// The credentials of this name, without their password.
    ///
    /// # Errors
    /// There are none, or the store failed.
    pub async fn by_name(&self, name: &str) -> ServiceResult<MqttClientCredentials> {
        let found = self.0.context.stores.mqtt_clients.by_name(name).await?;
        values::shown(found.ok_or_else(not_found)?)
    }

    /// A page of credentials.
    ///
    /// # Errors
    /// The page is none, or the store failed.
    pub async fn list(
        &self,
        filter: &MqttCredentialsFilter,
        page: &PageLink,
    ) -> ServiceResult<PageData<ShortMqttClientCredentials>> {
        let found = self.0.context.stores.mqtt_clients.list(filter, page).await?;
        let mut data = Vec::with_capacity(found.data.len());
        for credentials in found.data {
            let shown = values::shown(credentials)?;
            data.push(ShortMqttClientCredentials {
                id: shown.id,
                name: shown.name,
                client_type: shown.client_type,
                credentials_type: shown.credentials_type,
                created_time: shown.created_time,
                additional_info: shown.additional_info,
            });
        }
        Ok(PageData::new(data, found.total_elements, page))
    }

    /// Counts all credentials.
    ///
    /// # Errors
    /// The store failed.
    pub async fn count(&self) -> ServiceResult<MqttCredentialsCount> {
        Ok(self.0.context.stores.mqtt_clients.count().await?)
    }

    /// Deletes credentials. Clients that are connected stay.
    ///
    /// # Errors
    /// There are none, or the store failed.
    pub async fn delete(&self, id: Uuid) -> ServiceResult<()> {
        let state = &self.0;
        let stored = state.stored(id).await?.ok_or_else(not_found)?;
        let deleted = state.context.stores.mqtt_clients.delete(id).await;
        state.cache.forget_credentials([stored.credentials_id.as_str()]);
        deleted?;
        Ok(())
    }

    /// Changes the password of credentials.
    ///
    /// # Errors
    /// There are none of the type, or the current password is another.
    pub async fn change_password(
        &self,
        id: Uuid,
        change: PasswordChange<'_>,
    ) -> ServiceResult<MqttClientCredentials> {
        let state = &self.0;
        for _ in 0..ATTEMPTS {
            let before = state.stored(id).await?.ok_or_else(not_found)?;
            if before.credentials_type != MqttCredentialsType::MqttBasic {
                return Err(ServiceError::invalid(
                    "MQTT credentials should be of 'MQTT_BASIC' type!",
                ));
            }
            let mut value = BasicValue::of(&before)?;
            let is_right = match (non_empty(change.current), non_empty(value.password.as_deref())) {
                (None, None) => true,
                (Some(given), Some(hash)) => {
                    let passwords = &state.context.passwords;
                    passwords.verify(given, Some(hash)).await.map_err(busy)?
                }
                _ => false,
            };
            if !is_right {
                return Err(ServiceError::invalid("Current password doesn't match!"));
            }
            if non_empty(change.current) == non_empty(change.new) {
                return Err(ServiceError::invalid(
                    "New password should be different from existing!",
                ));
            }
            value.password = state.hashed(change.new).await?;
            let credentials = MqttClientCredentials {
                credentials_value: value.to_text()?,
                ..before.clone()
            };
            if let Some(saved) = state.store(credentials, Some(&before)).await? {
                return values::shown(saved);
            }
        }
        Err(changed_by_others())
    }
}

impl AccessState {
    async fn stored(&self, id: Uuid) -> ServiceResult<Option<MqttClientCredentials>> {
        Ok(self.context.stores.mqtt_clients.get(id).await?)
    }

    /// Checks that name and credentials id are nobody else's.
    pub(super) async fn check_free(
        &self,
        credentials: &MqttClientCredentials,
        before: Option<&MqttClientCredentials>,
    ) -> ServiceResult<()> {
        let stores = &self.context.stores;
        let is_other = |found: &MqttClientCredentials| found.id != credentials.id;
        let same = stores
            .mqtt_clients
            .by_credentials_ids(std::slice::from_ref(&credentials.credentials_id))
            .await?;
        if same.iter().any(is_other) {
            return Err(ServiceError::invalid(match before {
                None => "Such MQTT Client credentials are already created!",
                Some(_) => "New MQTT Client credentials are already created!",
            }));
        }
        let same = stores.mqtt_clients.by_name(&credentials.name).await?;
        if same.as_ref().is_some_and(is_other) {
            return Err(ServiceError::invalid(
                "MQTT Client credentials with such name are already created!",
            ));
        }
        Ok(())
    }

    /// The hash of a password; `None` for none.
    pub(super) async fn hashed(&self, password: Option<&str>) -> ServiceResult<Option<String>> {
        let Some(password) = non_empty(password) else {
            return Ok(None);
        };
        check_password(password)?;
        self.context
            .passwords
            .hash(password)
            .await
            .map(Some)
            .map_err(busy)
    }

    /// Inserts or updates credentials. Later log-ins see them. `None` where they have another value than before, or are gone.
    pub(super) async fn store(
        &self,
        mut credentials: MqttClientCredentials,
        before: Option<&MqttClientCredentials>,
    ) -> ServiceResult<Option<MqttClientCredentials>> {
        let clients = &self.context.stores.mqtt_clients;
        let done = match before {
            None => {
                credentials.id = new_uuid();
                credentials.created_time = self.now();
                clients.insert(&credentials).await.map(|()| true)
            }
            Some(before) => {
                credentials.created_time = before.created_time;
                clients.update(&credentials, &before.credentials_value).await
            }
        };
        // Whatever was answered: it may have been stored.
        let old = before.map(|before| before.credentials_id.as_str());
        let ids = old.into_iter().chain([credentials.credentials_id.as_str()]);
        self.cache.forget_credentials(ids);
        Ok(done?.then_some(credentials))
    }
}
