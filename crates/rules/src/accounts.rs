//! Accounts at outside services, as the system administrator has set them: for external nodes and the platform's own
//! sending.

mod mail_tokens;

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_connectors::ConnectorConfig as _;
use fieldline_connectors::egress::Egress;
use fieldline_connectors::mail::{MailClient, MailOauth2Config, OutgoingEmail, SmtpConfig};
use fieldline_connectors::sms::{SmsClient, SmsProviderConfig};
use fieldline_core::ports::{
    MailMessage, MailSender, SettingsStore, SmsSender, StoreError, StoreErrorKind, StoreResult,
};
use fieldline_model::TenantId;
use serde_json::Value;
use uuid::Uuid;

pub use self::mail_tokens::MailTokenCache;
use crate::external::{AiResource, ServiceAccounts};

/// Accounts in the settings of the installation, which all tenants share.
pub(crate) struct StoredServiceAccounts {
    pub(crate) settings: Arc<dyn SettingsStore>,
    pub(crate) tokens: Arc<MailTokenCache>,
}

#[async_trait]
impl ServiceAccounts for StoredServiceAccounts {
    async fn settings(&self, _: TenantId, key: &str) -> StoreResult<Option<Value>> {
        let Some(stored) = self.settings.admin(key).await? else {
            return Ok(None);
        };
        if key != "mail" {
            return Ok(Some(stored.json_value));
        }
        let settings = self.tokens.with_password(&stored.json_value).await;
        settings
            .map(Some)
            .map_err(|error| StoreError::new(StoreErrorKind::Unavailable, error))
    }

    async fn ai_model(&self, _: TenantId, _: Uuid) -> StoreResult<Option<Value>> {
        Ok(None)
    }

    async fn resource(&self, _: TenantId, _: Uuid) -> StoreResult<Option<AiResource>> {
        Ok(None)
    }
}

/// Sends the platform's mails over SMTP, each over its own connection.
pub struct SmtpMailSender(pub Arc<MailTokenCache>);

#[async_trait]
impl MailSender for SmtpMailSender {
    async fn send(&self, server: &Value, mail: &MailMessage) -> Result<(), String> {
        let server = self.0.with_password(server).await?;
        let config = SmtpConfig::from_json(&server).map_err(|error| error.to_string())?;
        let client = MailClient::new(&config, &Egress::open()).map_err(|error| error.to_string())?;
        let email = OutgoingEmail {
            to: mail.to.clone(),
            subject: mail.subject.clone(),
            body: mail.body.clone(),
            ..OutgoingEmail::default()
        };
        match client.send(&email).await {
            Ok(_) => Ok(()),
            Err(error) => Err(error.message),
        }
    }

    fn consent_url(&self, server: &Value, state: &str) -> Result<String, String> {
        MailOauth2Config::from_json(server)
            .and_then(|access| access.consent_url(state))
            .map_err(|error| error.to_string())
    }

    async fn exchange_code(&self, server: &Value, code: &str) -> Result<String, String> {
        let access = MailOauth2Config::from_json(server).map_err(|error| error.to_string())?;
        let refresh_token = access.exchange_code(code).await?.refresh_token;
        refresh_token
            .map(|token| token.expose().to_owned())
            .ok_or_else(|| "The provider gave no refresh token".to_owned())
    }
}

/// Sends the platform's text messages.
#[derive(Default)]
pub struct ProviderSmsSender {
    /// Base URL of the providers that are reached over HTTP, if it is not their own.
    pub endpoint: Option<String>,
}

#[async_trait]
impl SmsSender for ProviderSmsSender {
    fn check(&self, provider: &Value) -> Result<(), String> {
        let checked = SmsProviderConfig::from_json(provider);
        checked.map(|_| ()).map_err(|error| error.to_string())
    }

    async fn send(&self, provider: &Value, number: &str, message: &str) -> Result<(), String> {
        let client = SmsProviderConfig::from_json(provider)
            .and_then(|config| SmsClient::with_endpoint(&config, self.endpoint.as_deref(), &Egress::open()))
            .map_err(|error| error.to_string())?;
        match client.send(number, message).await {
            Ok(_) => Ok(()),
            Err(error) => Err(error.message),
        }
    }
}

#[cfg(test)]
mod tests;
