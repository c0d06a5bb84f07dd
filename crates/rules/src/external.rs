//! What external nodes need of the rest of the platform.

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_connectors::egress::Egress;
use fieldline_connectors::rest::RestSettings;
use fieldline_core::ports::StoreResult;
use fieldline_model::TenantId;
use serde_json::Value;
use uuid::Uuid;

use crate::egress::EgressRegistry;

/// Settings of external nodes, and what they share with the rest of the platform.
#[derive(Clone)]
pub struct ExternalNodeSettings {
    /// Whether messages are acknowledged before they are sent out; what comes of them goes on as new messages.
    pub force_ack: bool,
    /// Bounds of REST calls.
    pub rest: RestSettings,
    /// Accounts that are kept outside of rule chains.
    pub accounts: Arc<dyn ServiceAccounts>,
    /// Where cloud services are.
    pub endpoints: CloudEndpoints,
    /// What nodes may connect to; everything where there is none, as in tests.
    pub egress: Option<Arc<EgressRegistry>>,
}

impl ExternalNodeSettings {
    /// The way out for what a tenant has configured. What the operator has goes through [`Egress::open`].
    pub fn tenant_egress(&self, tenant: TenantId) -> Egress {
        match &self.egress {
            Some(book) => book.tenant_egress(tenant),
            None => Egress::open(),
        }
    }
}

/// Where cloud services are, if not at their own addresses.
#[derive(Debug, Clone, Default)]
pub struct CloudEndpoints {
    /// Base URL of those that speak HTTP.
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

/// A file that goes along with a question to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AiResource {
    /// Its type, such as `image/png`.
    pub media_type: String,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// Accounts at outside services that are kept outside of rule chains.
#[async_trait]
pub trait ServiceAccounts: Send + Sync {
    /// The settings under a key that count for a tenant: `mail`, `sms`, or `slack` with the field `botToken`.
    async fn settings(&self, tenant: TenantId, key: &str) -> StoreResult<Option<Value>>;
    /// The configuration of an AI model, if the tenant has it.
    async fn ai_model(&self, tenant: TenantId, id: Uuid) -> StoreResult<Option<Value>>;
    /// A resource, if the tenant may use it.
    async fn resource(&self, tenant: TenantId, id: Uuid) -> StoreResult<Option<AiResource>>;
}

/// Of a platform that keeps none.
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
