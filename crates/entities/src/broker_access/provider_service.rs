//! What administrators change of the ways in which clients show who they are, and what they see of them.

use std::cmp::Ordering;

use fieldline_model::page::{PageData, PageLink};

use super::BrokerAccessService;
use super::provider_settings::{AuthProvider, AuthProviderChange, AuthProviders, BasicStrategy};
use super::provider_store;
use super::providers::AuthProviderType;
use super::service::{contains, page_of};
use crate::services::{ServiceError, ServiceErrorKind, ServiceResult};

impl BrokerAccessService {
    /// A page of the providers; text search in the type.
    ///
    /// # Errors
    /// The page is none, or the store failed.
    pub async fn providers(&self, page: &PageLink) -> ServiceResult<PageData<AuthProvider>> {
        let providers = provider_store::load(&self.0.context.stores.settings).await?;
        let text = page.text_search.as_deref();
        let chosen = AuthProviderType::ALL
            .into_iter()
            .filter(|kind| text.is_none_or(|text| contains(kind.name(), text)))
            .map(|kind| providers.shown(kind));
        page_of(chosen.collect(), page, |property, a, b| {
            Some(match property {
                "type" => a.kind.name().cmp(b.kind.name()),
                "enabled" => a.enabled.cmp(&b.enabled),
                "description" => a.description().cmp(&b.description()),
                // They are there from the beginning.
                "createdTime" => Ordering::Equal,
                _ => return None,
            })
        })
    }

    /// One provider.
    ///
    /// # Errors
    /// The store failed.
    pub async fn provider(&self, kind: AuthProviderType) -> ServiceResult<AuthProvider> {
        let providers = provider_store::load(&self.0.context.stores.settings).await?;
        Ok(providers.shown(kind))
    }

    /// By what `MQTT_BASIC` credentials are looked up.
    ///
    /// # Errors
    /// The store failed.
    pub async fn basic_strategy(&self) -> ServiceResult<BasicStrategy> {
        let providers = provider_store::load(&self.0.context.stores.settings).await?;
        Ok(providers.basic.configuration.auth_strategy)
    }

    /// Replaces the settings of a provider. Secrets that are left out stay as they are.
    ///
    /// # Errors
    /// The settings are invalid, or the store failed.
    pub async fn save_provider(&self, change: AuthProviderChange) -> ServiceResult<AuthProvider> {
        let endpoints = &*self.0.context.rest_endpoints;
        let set = |providers: &mut AuthProviders| {
            providers.change(&change)?;
            providers.check_usable(change.kind, endpoints)
        };
        self.change_providers(change.kind, &set).await
    }

    /// Enables or disables a provider.
    ///
    /// # Errors
    /// It cannot work with its settings, or the store failed.
    pub async fn enable_provider(&self, kind: AuthProviderType, enabled: bool) -> ServiceResult<()> {
        let endpoints = &*self.0.context.rest_endpoints;
        let set = |providers: &mut AuthProviders| {
            providers.enable(kind, enabled)?;
            match enabled {
                true => providers.check_usable(kind, endpoints),
                false => Ok(()),
            }
        };
        self.change_providers(kind, &set).await.map(drop)
    }

    /// Asks the server of settings of `HTTP`, which need not be saved, for the head of its answer.
    ///
    /// # Errors
    /// The settings are invalid, or the server has not answered well.
    pub async fn probe_http(&self, change: &AuthProviderChange) -> ServiceResult<()> {
        let state = &self.0;
        if change.kind != AuthProviderType::Http {
            return Err(ServiceError::invalid("MQTT auth provider type should be HTTP!"));
        }
        let mut providers = provider_store::load(&state.context.stores.settings).await?;
        providers.change(change)?;
        let configuration = providers.http.configuration;
        let failed = |error: String| ServiceError::new(ServiceErrorKind::Internal, error);
        let probe = configuration.probe(&*state.context.rest_endpoints);
        match tokio::time::timeout(super::PROBE_WAIT, probe).await {
            Ok(outcome) => outcome.map_err(failed),
            Err(_) => Err(failed("The server has not answered in time".to_owned())),
        }
    }

    /// The order in which providers are asked has changed: later log-ins read it.
    pub fn forget_providers(&self) {
        self.0.cache.forget_providers();
    }

    async fn change_providers(
        &self,
        kind: AuthProviderType,
        change: &(dyn Fn(&mut AuthProviders) -> ServiceResult<()> + Send + Sync),
    ) -> ServiceResult<AuthProvider> {
        let state = &self.0;
        let settings = &state.context.stores.settings;
        let _turn = state.provider_changes.lock().await;
        let changed = provider_store::change(settings, state.now(), change).await;
        state.cache.forget_providers();
        Ok(changed?.shown(kind))
    }
}
