//! The settings and accounts that external nodes get from the rest of the platform.

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_connectors::egress::Egress;
use fieldline_connectors::rest::RestSettings;
use fieldline_core::ports::StoreResult;
use fieldline_model::TenantId;
use serde_json::Value;
use uuid::Uuid;

use crate::egress::EgressRegistry;

/// Settings of external nodes, and the services they use.
#[derive(Clone)]
pub struct ExternalNodeSettings {
    /// Whether messages are acknowledged before they are sent out; the outcome then goes on as a new message.
    pub force_ack: bool,
    /// Bounds of REST calls.
    pub rest: RestSettings,
    /// Accounts that are configured outside of rule chains.
    pub accounts: Arc<dyn ServiceAccounts>,
    /// Addresses of cloud services.
    pub endpoints: CloudEndpoints,
    /// Limits the addresses that nodes may connect to; `None`, as in tests, allows all.
    pub egress: Option<Arc<EgressRegistry>>,
}

impl ExternalNodeSettings {
    /// The connections of services that a tenant has configured. Those of the operator go through [`Egress::open`].
    pub fn tenant_egress(&self, tenant: TenantId) -> Egress {
        match &self.egress {
            Some(book) => book.tenant_egress(tenant),
            None => Egress::open(),
        }
    }
}

/// Addresses of cloud services, where they differ from the usual ones.
#[derive(Debug, Clone, Default)]
pub struct CloudEndpoints {
    /// Base URL of the services that speak HTTP.
    pub http: Option<String>,
    /// Port of Azure IoT hubs.
    pub azure_port: Option<u16>,
}

impl Default for ExternalNodeSettings {
    fn default() -> Self {
        Self {
            force_ack: false,
            rest: RestSettings::default(),
            accounts: Arc::new(NoServiceAccounts),
            endpoints: CloudEndpoints::default(),
            egress: None,
        }
    }
}

/// A file that is sent to a model together with a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AiResource {
    /// Its type, such as `image/png`.
    pub media_type: String,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// Accounts at outside services that are configured outside of rule chains.
#[async_trait]
pub trait ServiceAccounts: Send + Sync {
    /// Returns the settings under a key that apply to a tenant: `mail`, `sms`, or `slack` with the field `botToken`.
    async fn settings(&self, tenant: TenantId, key: &str) -> StoreResult<Option<Value>>;
    /// Returns the configuration of an AI model, if the tenant has it.
    async fn ai_model(&self, tenant: TenantId, id: Uuid) -> StoreResult<Option<Value>>;
    /// Returns a resource, if the tenant may use it.
    async fn resource(&self, tenant: TenantId, id: Uuid) -> StoreResult<Option<AiResource>>;
}

/// The accounts of a platform that has none.
pub struct NoServiceAccounts;

#[async_trait]
impl ServiceAccounts for NoServiceAccounts {
    async fn settings(&self, _: TenantId, _: &str) -> StoreResult<Option<Value>> {
        Ok(None)
    }

    async fn ai_model(&self, _: TenantId, _: Uuid) -> StoreResult<Option<Value>> {
        Ok(None)
    }

    async fn resource(&self, _: TenantId, _: Uuid) -> StoreResult<Option<AiResource>> {
        Ok(None)
    }
}
