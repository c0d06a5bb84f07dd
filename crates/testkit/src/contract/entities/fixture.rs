//! What the promises are tried on.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use std::fmt::Debug;

use fieldline_core::ports::{EntityStores, StoreErrorKind, StoreResult};
use fieldline_model::entity::{
    Authority, Contact, Customer, Device, DeviceCredentials, DeviceProfile, Tenant, TenantProfile, User,
};
use fieldline_model::page::{PageLink, SortOrder};
use fieldline_model::{CustomerId, DeviceId, DeviceProfileId, TenantId, TenantProfileId, UserId};
use serde_json::json;

/// Creation time of all but those entities whose order matters.
pub(in crate::contract) const NOW: i64 = 1_700_000_000_000;

/// A tenant with a profile for its devices.
pub struct EntityFixture<'s> {
    /// The stores that it is in.
    pub stores: &'s EntityStores,
    /// The tenant.
    pub tenant: TenantId,
    /// The profile.
    pub profile: DeviceProfile,
}

impl<'s> EntityFixture<'s> {
    /// Creates a tenant of that title.
    pub async fn new(stores: &'s EntityStores, title: &str) -> Self {
        let tenant = stores.tenants.insert(tenant(title)).await.unwrap();
        let tenant = tenant.id;
        let profile = stores
            .device_profiles
            .insert(device_profile(tenant, "default"))
            .await
            .unwrap();
        Self {
            stores,
            tenant,
            profile,
        }
    }

    /// Creates a device of the tenant's profile.
    pub async fn device(&self, name: &str) -> Device {
        self.save(self.new_device(name)).await
    }

    /// A device that is not stored yet.
    pub(in crate::contract) fn new_device(&self, name: &str) -> Device {
        device(self.tenant, &self.profile, name)
    }

    /// Creates this device.
    pub(in crate::contract) async fn save(&self, device: Device) -> Device {
        self.stores.devices.insert(device).await.unwrap()
    }

    /// Creates another profile.
    pub(in crate::contract) async fn profile(&self, name: &str) -> DeviceProfile {
        let profile = device_profile(self.tenant, name);
        self.stores.device_profiles.insert(profile).await.unwrap()
    }

    /// Creates a customer.
    pub async fn customer(&self, title: &str) -> Customer {
        let customer = customer(self.tenant, title);
        self.stores.customers.insert(customer).await.unwrap()
    }

    /// Creates a user.
    pub(in crate::contract) async fn user(
        &self,
        email: &str,
        authority: Authority,
        customer: CustomerId,
    ) -> User {
        let user = User {
            customer_id: customer,
            authority,
            ..user(self.tenant, email)
        };
        self.stores.users.insert(user).await.unwrap()
    }

    /// The names of all devices in this order.
    pub(in crate::contract) async fn names(&self, page: &PageLink) -> Vec<String> {
        let page = self
            .stores
            .devices
            .list(self.tenant, &Default::default(), page)
            .await
            .unwrap();
        page.data.into_iter().map(|info| info.device.name).collect()
    }
}

/// A tenant profile that is not stored yet, with every field set.
pub(in crate::contract) fn tenant_profile(name: &str) -> TenantProfile {
    TenantProfile {
        id: TenantProfileId::new(),
        created_time: NOW,
        name: name.into(),
        description: Some("für alle".into()),
        is_default: false,
        isolated_tb_rule_engine: true,
        profile_data: json!({"configuration": {"maxDevices": 7, "type": "DEFAULT"}, "queueConfiguration": null}),
        version: None,
    }
}

/// A tenant that is not stored yet.
pub(in crate::contract) fn tenant(title: &str) -> Tenant {
    Tenant {
        id: TenantId::new(),
        created_time: NOW,
        title: title.into(),
        name: title.into(),
        ..Tenant::default()
    }
}

/// A full address.
pub(super) fn contact() -> Contact {
    Contact {
        country: Some("Österreich".into()),
        state: Some("Wien".into()),
        city: Some("Wien".into()),
        address: Some("Ring 1".into()),
        address2: Some("Tür 2".into()),
        zip: Some("1010".into()),
        phone: Some("+43".into()),
        email: Some("office@example.org".into()),
    }
}

/// A customer that is not stored yet.
pub(in crate::contract) fn customer(tenant: TenantId, title: &str) -> Customer {
    Customer {
        id: CustomerId::new(),
        created_time: NOW,
        tenant_id: tenant,
        title: title.into(),
        name: title.into(),
        ..Customer::default()
    }
}

/// A user that is not stored yet.
pub(in crate::contract) fn user(tenant: TenantId, email: &str) -> User {
    User {
        id: UserId::new(),
        created_time: NOW,
        tenant_id: tenant,
        email: email.into(),
        name: email.into(),
        authority: Authority::TenantAdmin,
        ..User::default()
    }
}

/// A device profile that is not stored yet.
pub(in crate::contract) fn device_profile(tenant: TenantId, name: &str) -> DeviceProfile {
    DeviceProfile {
        id: DeviceProfileId::new(),
        created_time: NOW,
        tenant_id: tenant,
        name: name.into(),
        ..DeviceProfile::default()
    }
}

/// A device that is not stored yet.
pub(in crate::contract) fn device(tenant: TenantId, profile: &DeviceProfile, name: &str) -> Device {
    Device {
        id: DeviceId::new(),
        created_time: NOW,
        tenant_id: tenant,
        name: name.into(),
        device_type: profile.name.clone(),
        device_profile_id: Some(profile.id),
        ..Device::default()
    }
}

/// A token of a device.
pub(in crate::contract) fn token(device: &Device, token: &str) -> DeviceCredentials {
    DeviceCredentials::access_token(device.id, token.into(), NOW)
}

/// A page of all, in this order.
pub(super) fn sorted(property: &str, order: SortOrder) -> PageLink {
    PageLink {
        sort_property: Some(property.into()),
        sort_order: Some(order),
        ..PageLink::first(100)
    }
}

/// A page of all that contain a text, by name.
pub(super) fn searched(text: &str) -> PageLink {
    PageLink {
        text_search: Some(text.into()),
        ..sorted("name", SortOrder::Asc)
    }
}

/// Checks that a call failed in this way; returns the message.
#[track_caller]
pub(super) fn expect_error<T: Debug>(result: StoreResult<T>, kind: StoreErrorKind) -> String {
    let error = result.expect_err("the call must fail");
    assert_eq!(error.kind(), kind, "{error}");
    error.message().to_owned()
}
