//! What the system administrator has set for outside services: for external nodes, and for the platform's own mails.

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_connectors::NodeConfig as _;
use fieldline_connectors::mail::{Email, MailClient, SmtpConfig};
use fieldline_core::ports::{Mail, MailSender, SettingsStore, StoreResult};
use fieldline_model::TenantId;
use serde_json::Value;
use uuid::Uuid;

use crate::external::{Accounts, Resource};

/// Accounts in the settings of the installation, which all tenants share.
pub(crate) struct StoredAccounts(pub(crate) Arc<dyn SettingsStore>);

#[async_trait]
impl Accounts for StoredAccounts {
    async fn settings(&self, _: TenantId, key: &str) -> StoreResult<Option<Value>> {
        Ok(self.0.admin(key).await?.map(|stored| stored.json_value))
    }

    async fn ai_model(&self, _: TenantId, _: Uuid) -> StoreResult<Option<Value>> {
        Ok(None)
    }

    async fn resource(&self, _: TenantId, _: Uuid) -> StoreResult<Option<Resource>> {
        Ok(None)
    }
}

/// Sends the platform's mails over SMTP, each over a connection of its own.
pub struct SmtpMails;

#[async_trait]
impl MailSender for SmtpMails {
    async fn send(&self, server: &Value, mail: &Mail) -> Result<(), String> {
        let config = SmtpConfig::from_json(server).map_err(|error| error.to_string())?;
        let client = MailClient::new(&config).map_err(|error| error.to_string())?;
        let email = Email {
            to: mail.to.clone(),
            subject: mail.subject.clone(),
            body: mail.body.clone(),
            ..Email::default()
        };
        match client.send(&email).await {
            Ok(_) => Ok(()),
            Err(error) => Err(error.message),
        }
    }
}
