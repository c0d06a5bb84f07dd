//! Stores of what people look at and set, which no unit test asks for.

use async_trait::async_trait;
use fieldline_core::ports::{
    ApiKeyChange, ApiKeyStore, AuditFilter, AuditStore, CustomerStore, DashboardFilter, DashboardStore,
    LoginAttemptResult, SavedBy, SettingsStore, SignInStore, StoreResult, TokenFamily, UserFilter, UserStore,
    VersionStore,
};
use fieldline_model::entity::{
    AdminSettings, ApiKeyInfo, AuditLog, Customer, Dashboard, DashboardInfo, EntityVersion, User,
    UserCredentials, UserSettingsType,
};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{ApiKeyId, CustomerId, DashboardId, EntityId, TenantId, UserId};
use serde_json::Value;
use uuid::Uuid;

use super::absent;
use super::absent::Absent;

#[async_trait]
impl CustomerStore for Absent {
    async fn public(&self, _: CustomerId) -> StoreResult<Option<Customer>> {
        absent()
    }
    async fn by_title(&self, _: TenantId, _: &str) -> StoreResult<Option<Customer>> {
        absent()
    }
    async fn list(&self, _: TenantId, _: &PageLink) -> StoreResult<PageData<Customer>> {
        absent()
    }
}

#[async_trait]
impl UserStore for Absent {
    async fn by_id(&self, _: UserId) -> StoreResult<Option<User>> {
        absent()
    }
    async fn by_email(&self, _: &str) -> StoreResult<Option<User>> {
        absent()
    }
    async fn list(&self, _: UserFilter, _: &PageLink) -> StoreResult<PageData<User>> {
        absent()
    }
    async fn credentials(&self, _: UserId) -> StoreResult<Option<UserCredentials>> {
        absent()
    }
    async fn credentials_by_activate_token(&self, _: &str) -> StoreResult<Option<UserCredentials>> {
        absent()
    }
    async fn credentials_by_reset_token(&self, _: &str) -> StoreResult<Option<UserCredentials>> {
        absent()
    }
    async fn note_login(&self, _: UserId, _: LoginAttemptResult) -> StoreResult<u32> {
        absent()
    }
    async fn save_credentials(&self, _: UserCredentials) -> StoreResult<()> {
        absent()
    }
}

#[async_trait]
impl VersionStore for Absent {
    async fn list(&self, _: TenantId, _: EntityId, _: &PageLink) -> StoreResult<PageData<EntityVersion>> {
        absent()
    }
    async fn get(&self, _: TenantId, _: EntityId, _: i64) -> StoreResult<Option<Value>> {
        absent()
    }
}

#[async_trait]
impl DashboardStore for Absent {
    async fn insert_by(&self, _: Dashboard, _: &SavedBy) -> StoreResult<Dashboard> {
        absent()
    }
    async fn update_by(&self, _: Dashboard, _: &SavedBy) -> StoreResult<Dashboard> {
        absent()
    }
    async fn info(&self, _: TenantId, _: DashboardId) -> StoreResult<Option<DashboardInfo>> {
        absent()
    }
    async fn infos(&self, _: TenantId, _: &[DashboardId]) -> StoreResult<Vec<DashboardInfo>> {
        absent()
    }
    async fn list(
        &self,
        _: TenantId,
        _: &DashboardFilter,
        _: &PageLink,
    ) -> StoreResult<PageData<DashboardInfo>> {
        absent()
    }
    async fn assign(&self, _: TenantId, _: DashboardId, _: CustomerId) -> StoreResult<bool> {
        absent()
    }
    async fn unassign(&self, _: TenantId, _: DashboardId, _: CustomerId) -> StoreResult<bool> {
        absent()
    }
}

#[async_trait]
impl SettingsStore for Absent {
    async fn admin(&self, _: &str) -> StoreResult<Option<AdminSettings>> {
        absent()
    }
    async fn save_admin(&self, _: AdminSettings) -> StoreResult<AdminSettings> {
        absent()
    }
    async fn replace_admin(&self, _: AdminSettings, _: &Value) -> StoreResult<Option<AdminSettings>> {
        absent()
    }
    async fn of_user(&self, _: UserId, _: UserSettingsType) -> StoreResult<Option<Value>> {
        absent()
    }
    async fn save_of_user(&self, _: UserId, _: UserSettingsType, _: &Value) -> StoreResult<()> {
        absent()
    }
}

#[async_trait]
impl AuditStore for Absent {
    async fn append(&self, _: Vec<AuditLog>) -> StoreResult<()> {
        absent()
    }
    async fn list(&self, _: TenantId, _: &AuditFilter, _: &PageLink) -> StoreResult<PageData<AuditLog>> {
        absent()
    }
    async fn delete_before(&self, _: i64) -> StoreResult<u64> {
        absent()
    }
}

#[async_trait]
impl ApiKeyStore for Absent {
    async fn create(&self, _: ApiKeyInfo, _: &str) -> StoreResult<ApiKeyInfo> {
        absent()
    }
    async fn update(&self, _: ApiKeyId, _: ApiKeyChange<'_>) -> StoreResult<Option<ApiKeyInfo>> {
        absent()
    }
    async fn get(&self, _: ApiKeyId) -> StoreResult<Option<ApiKeyInfo>> {
        absent()
    }
    async fn by_hash(&self, _: &str) -> StoreResult<Option<ApiKeyInfo>> {
        absent()
    }
    async fn list(&self, _: UserId, _: &PageLink) -> StoreResult<PageData<ApiKeyInfo>> {
        absent()
    }
    async fn delete(&self, _: ApiKeyId) -> StoreResult<bool> {
        absent()
    }
}

#[async_trait]
impl SignInStore for Absent {
    async fn open(&self, _: &TokenFamily, _: u32) -> StoreResult<()> {
        absent()
    }
    async fn family(&self, _: Uuid) -> StoreResult<Option<TokenFamily>> {
        absent()
    }
    async fn of_user(&self, _: UserId, _: i64, _: u32) -> StoreResult<Vec<TokenFamily>> {
        absent()
    }
    async fn rotate(&self, _: &TokenFamily, _: Uuid) -> StoreResult<bool> {
        absent()
    }
    async fn end(&self, _: Uuid, _: i64, _: i64) -> StoreResult<bool> {
        absent()
    }
    async fn end_others(&self, _: UserId, _: Uuid, _: i64, _: i64) -> StoreResult<Vec<Uuid>> {
        absent()
    }
    async fn ended(&self, _: i64, _: u32) -> StoreResult<Vec<(Uuid, i64)>> {
        absent()
    }
    async fn purge(&self, _: i64, _: i64) -> StoreResult<u64> {
        absent()
    }
    async fn sources(&self, _: UserId) -> StoreResult<Vec<String>> {
        absent()
    }
    async fn note_source(&self, _: UserId, _: &str, _: i64, _: u32) -> StoreResult<()> {
        absent()
    }
    async fn forget_sources(&self, _: UserId) -> StoreResult<()> {
        absent()
    }
}
