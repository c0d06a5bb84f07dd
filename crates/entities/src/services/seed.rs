//! What a new installation starts with, and the well-known demo.

mod thermostats;

pub use thermostats::seed_thermostats;

use std::sync::Arc;

use fieldline_core::ports::UserFilter;
use fieldline_model::entity::{Authority, Customer, Device, Tenant};
use fieldline_model::page::PageLink;
use fieldline_model::{CustomerId, TenantId};
use serde_json::json;
use tracing::warn;

use super::{
    CustomerService, DeviceService, NameConflict, NewCredentials, ServiceContext, ServiceErrorKind,
    ServiceResult, TenantService, queues, random_text, rule_chains, tenant_profiles, users,
};

/// Login name of the first system administrator.
pub const ADMIN_EMAIL: &str = "sysadmin@thingsboard.org";
/// Password of the system administrator of the demo.
pub const DEMO_ADMIN_PASSWORD: &str = "sysadmin";
const DEMO_TENANT: &str = "Tenant";
const GENERATED_PASSWORD_LENGTH: usize = 20;

/// What [`ensure_system`] has created.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SeedResult {
    /// Login name of the system administrator, where one was created.
    pub admin_email: Option<&'static str>,
    /// Its password, where it was made up: to be printed once.
    pub generated_password: Option<String>,
}

/// Whether there is a system administrator who can log in.
///
/// # Errors
/// The store failed.
pub async fn has_admin(context: &ServiceContext) -> ServiceResult<bool> {
    let admins = context
        .stores
        .users
        .list(UserFilter::SysAdmins, &PageLink::first(100))
        .await?;
    for admin in admins.data.iter().map(|admin| admin.id) {
        let credentials = context.stores.users.credentials(admin).await?;
        if credentials.is_some_and(|credentials| credentials.password_hash.is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A password that nobody can guess.
pub fn new_password() -> String {
    random_text(GENERATED_PASSWORD_LENGTH)
}

/// Makes sure that there are a default tenant profile, the shared queues, what every tenant has, and a system
/// administrator.
///
/// # Errors
/// The store failed.
pub async fn ensure_system(
    context: &ServiceContext,
    admin_password: Option<&str>,
) -> ServiceResult<SeedResult> {
    let context = Arc::new(context.clone());
    tenant_profiles::ensure_default(&context).await?;
    queues::ensure_shared(&context).await?;
    complete_tenants(&context).await?;
    if has_admin(&context).await? {
        return Ok(SeedResult::default());
    }
    let generated = match admin_password {
        Some(_) => None,
        None => Some(new_password()),
    };
    let password = admin_password.or(generated.as_deref()).unwrap_or_default();
    users::create_active(
        &context,
        Authority::SysAdmin,
        TenantId::NULL,
        CustomerId::NULL,
        ADMIN_EMAIL,
        password,
    )
    .await?;
    Ok(SeedResult {
        admin_email: Some(ADMIN_EMAIL),
        generated_password: generated,
    })
}

/// What tenants that were created by an older version do not have yet.
async fn complete_tenants(context: &ServiceContext) -> ServiceResult<()> {
    let mut link = PageLink::first(1_000);
    loop {
        let page = context.stores.tenants.list(&link).await?;
        for tenant in page.data.iter().map(|tenant| tenant.id) {
            rule_chains::ensure_root(context, tenant).await?;
            // A profile from before queues were checked must not keep the platform from starting.
            match queues::align(context, tenant).await {
                Err(error) if error.kind() == ServiceErrorKind::Invalid => {
                    warn!(%tenant, %error, "the tenant profile's queues cannot be used");
                }
                aligned => {
                    aligned?;
                }
            }
        }
        if !page.has_next {
            return Ok(());
        }
        link.page += 1;
    }
}

/// A device of the demo: name, type, access token, description, customer.
type DemoDevice = (
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
    Option<&'static str>,
);

const DEMO_DEVICES: [DemoDevice; 9] = [
    (
        "Test Device A1",
        "default",
        "A1_TEST_TOKEN",
        None,
        Some("Customer A"),
    ),
    (
        "Test Device A2",
        "default",
        "A2_TEST_TOKEN",
        None,
        Some("Customer A"),
    ),
    (
        "Test Device A3",
        "default",
        "A3_TEST_TOKEN",
        None,
        Some("Customer A"),
    ),
    (
        "Test Device B1",
        "default",
        "B1_TEST_TOKEN",
        None,
        Some("Customer B"),
    ),
    (
        "Test Device C1",
        "default",
        "C1_TEST_TOKEN",
        None,
        Some("Customer C"),
    ),
    (
        "DHT11 Demo Device",
        "default",
        "DHT11_DEMO_TOKEN",
        Some("Temperature and humidity sensor of the getting-started guides"),
        None,
    ),
    (
        "Raspberry Pi Demo Device",
        "default",
        "RASPBERRY_PI_DEMO_TOKEN",
        Some("Raspberry Pi of the getting-started guides"),
        None,
    ),
    ("Thermostat T1", "thermostat", "T1_TEST_TOKEN", None, None),
    ("Thermostat T2", "thermostat", "T2_TEST_TOKEN", None, None),
];

const DEMO_CUSTOMERS: [(&str, &[&str]); 3] = [
    (
        "Customer A",
        &["customer@thingsboard.org", "customerA@thingsboard.org"],
    ),
    ("Customer B", &["customerB@thingsboard.org"]),
    ("Customer C", &["customerC@thingsboard.org"]),
];

/// Makes sure that the demo tenant is there with its customers, users and devices; what exists is left as it is.
///
/// # Errors
/// The store failed.
pub async fn seed_demo(context: &ServiceContext) -> ServiceResult<()> {
    ensure_system(context, Some(DEMO_ADMIN_PASSWORD)).await?;
    let context = Arc::new(context.clone());
    let tenant = demo_tenant(&context).await?;
    users::create_active(
        &context,
        Authority::TenantAdmin,
        tenant,
        CustomerId::NULL,
        "tenant@thingsboard.org",
        "tenant",
    )
    .await?;
    for (title, emails) in DEMO_CUSTOMERS {
        let customer = demo_customer(&context, tenant, title).await?;
        for email in emails {
            users::create_active(
                &context,
                Authority::CustomerUser,
                tenant,
                customer,
                email,
                "customer",
            )
            .await?;
        }
    }
    for device in DEMO_DEVICES {
        demo_device(&context, tenant, device).await?;
    }
    Ok(())
}

/// Whether the demo's tenant is there.
pub async fn has_demo(context: &ServiceContext) -> ServiceResult<bool> {
    Ok(find_demo(context).await?.is_some())
}

async fn find_demo(context: &ServiceContext) -> ServiceResult<Option<Tenant>> {
    let page = PageLink {
        text_search: Some(DEMO_TENANT.to_owned()),
        ..PageLink::first(1_000)
    };
    let found = context.stores.tenants.list(&page).await?;
    Ok(found.data.into_iter().find(|tenant| tenant.title == DEMO_TENANT))
}

async fn demo_tenant(context: &Arc<ServiceContext>) -> ServiceResult<TenantId> {
    let found = find_demo(context).await?;
    let tenant = match found {
        Some(tenant) => tenant,
        None => {
            let tenant = Tenant {
                title: DEMO_TENANT.to_owned(),
                region: Some("Global".to_owned()),
                ..Tenant::default()
            };
            TenantService::new(context).save(tenant.into()).await?
        }
    };
    Ok(tenant.id)
}

async fn demo_customer(
    context: &Arc<ServiceContext>,
    tenant: TenantId,
    title: &str,
) -> ServiceResult<CustomerId> {
    let found = context.stores.customers.by_title(tenant, title).await?;
    let customer = match found {
        Some(customer) => customer,
        None => {
            let customer = Customer {
                title: title.to_owned(),
                ..Customer::default()
            };
            CustomerService::new(context)
                .save(tenant, customer.into(), &NameConflict::Fail)
                .await?
        }
    };
    Ok(customer.id)
}

async fn demo_device(
    context: &Arc<ServiceContext>,
    tenant: TenantId,
    device: DemoDevice,
) -> ServiceResult<()> {
    let (name, device_type, token, description, customer) = device;
    if context.stores.devices.by_name(tenant, name).await?.is_some() {
        return Ok(());
    }
    let customer_id = match customer {
        Some(title) => demo_customer(context, tenant, title).await?,
        None => CustomerId::NULL,
    };
    let device = Device {
        name: name.to_owned(),
        device_type: device_type.to_owned(),
        customer_id,
        additional_info: description.map(|text| json!({ "description": text })),
        ..Device::default()
    };
    let credentials = NewCredentials::AccessToken(Some(token.to_owned()));
    DeviceService::new(context)
        .save_with_credentials(tenant, device.into(), credentials, &NameConflict::Fail)
        .await?;
    Ok(())
}
