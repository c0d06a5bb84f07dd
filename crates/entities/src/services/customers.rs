//! Customers.

use std::sync::Arc;

use fieldline_core::events::EntityChange;
use fieldline_core::ports::StoreErrorKind;
use fieldline_model::entity::{Customer, EntityDraft};
use fieldline_model::{CustomerId, EntityKey, EntityType, TenantId};
use serde_json::json;

use super::names::no_free_name;
use super::{NameConflict, ServiceContext, ServiceError, ServiceResult, conflict, quota, saving, validate};

const PUBLIC_TITLE: &str = "Public";
const TITLE_TAKEN: &str = "Customer with such title already exists!";

/// Rules about customers.
#[derive(Clone)]
pub struct CustomerService(Arc<ServiceContext>);

impl CustomerService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::clone(context))
    }

    /// Creates the customer, or updates it where it has an id.
    ///
    /// # Errors
    /// A rule is broken, the title is taken, or the tenant has as many customers as it may have.
    pub async fn save(
        &self,
        tenant: TenantId,
        mut customer: EntityDraft<Customer>,
        names: &NameConflict,
    ) -> ServiceResult<Customer> {
        let stores = &*self.0.stores.customers;
        let old = saving::stored(stores, tenant, &customer).await?;
        customer.tenant_id = tenant;
        let renamed = old.as_ref().is_none_or(|old| old.title != customer.title);
        if names.uniquifies() && renamed {
            let title = std::mem::take(&mut customer.title);
            customer.title = self.free_title(tenant, title, names).await?;
        }
        check(&customer)?;
        customer.name = customer.title.clone();
        if old.is_none() {
            quota::check(&self.0, tenant, EntityType::Customer).await?;
        }
        let saved = saving::save(&self.0, stores, customer, old.as_ref()).await;
        let saved = conflict(saved, TITLE_TAKEN)?;
        self.0.publish_change(EntityChange::saved(tenant, saved.id));
        Ok(saved)
    }

    async fn free_title(
        &self,
        tenant: TenantId,
        title: String,
        names: &NameConflict,
    ) -> ServiceResult<String> {
        let stores = &self.0.stores.customers;
        if stores.by_title(tenant, &title).await?.is_none() {
            return Ok(title);
        }
        for candidate in names.alternatives(&title) {
            if stores.by_title(tenant, &candidate).await?.is_none() {
                return Ok(candidate);
            }
        }
        no_free_name(&title)
    }

    /// The tenant's public customer, whose things anyone may see; created where there is none yet.
    ///
    /// # Errors
    /// The store failed.
    pub async fn ensure_public(&self, tenant: TenantId) -> ServiceResult<Customer> {
        let stores = &self.0.stores.customers;
        if let Some(customer) = stores.by_title(tenant, PUBLIC_TITLE).await? {
            return Ok(customer);
        }
        let customer = Customer {
            id: CustomerId::new(),
            created_time: self.0.now(),
            tenant_id: tenant,
            title: PUBLIC_TITLE.to_owned(),
            name: PUBLIC_TITLE.to_owned(),
            additional_info: Some(json!({ "isPublic": true })),
            ..Customer::default()
        };
        match stores.insert(customer).await {
            // Somebody else was faster.
            Err(error) if error.kind() == StoreErrorKind::Conflict => {
                let found = stores.by_title(tenant, PUBLIC_TITLE).await?;
                found.ok_or_else(|| error.into())
            }
            saved => {
                let saved = saved?;
                self.0.publish_change(EntityChange::saved(tenant, saved.id));
                Ok(saved)
            }
        }
    }

    /// Deletes the customer with its users, data, relations and alarms, and unassigns its devices, assets and entity views.
    ///
    /// # Errors
    /// Calculated fields name it, or the store failed.
    pub async fn delete(&self, tenant: TenantId, id: CustomerId) -> ServiceResult<()> {
        super::calculated_fields::refuse_referenced(&self.0, tenant, id.into(), "customer").await?;
        let subject = EntityKey {
            tenant,
            entity: id.into(),
        };
        self.0.stores.customers.delete(tenant, id).await?;
        self.0.publish_change(EntityChange::deleted(tenant, id));
        Ok(self.0.delete_links(subject).await?)
    }
}

fn check(customer: &Customer) -> ServiceResult<()> {
    let contact = &customer.contact;
    validate::required("Customer title", &customer.title)?;
    if customer.title == PUBLIC_TITLE {
        return Err(ServiceError::invalid(
            "'Public' title for customer is system reserved!",
        ));
    }
    if let Some(email) = contact.email.as_deref().filter(|email| !email.is_empty()) {
        validate::email(email)?;
    }
    validate::json_object("additionalInfo", customer.additional_info.as_ref())?;
    validate::lengths(&[("title", Some(&customer.title))])?;
    super::tenants::check_contact(contact)
}
