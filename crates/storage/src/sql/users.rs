//! Users and how they log in.

use async_trait::async_trait;
use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult, UserFilter, UserStore};
use fieldline_model::entity::{Authority, User, UserCredentials};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CustomerId, TenantId, UserId};
use uuid::Uuid;

use super::database::Database;
use super::failure::Failure;
use super::list::{self, Listing};
use super::query::{Arg, Columns, Owner, Query, Row, unreadable};
use super::record::{self, Key, Record};

impl Record for User {
    const NAME: &'static str = "User";
    const TABLE: &'static str = "user_account";
    const COLUMNS: &'static [&'static str] = &[
        "tenant_id",
        "customer_id",
        "email",
        "email_key",
        "authority",
        "search",
        "first_name_key",
        "last_name_key",
    ];
    const SELECT: &'static str = "id, created_time, tenant_id, customer_id, email, authority, version, doc";
    const IN_COLUMNS: &'static [&'static str] = &["tenantId", "customerId", "email", "name", "authority"];
    const BROKEN_REFERENCE: &'static str = "User is referencing to non-existent tenant or customer!";

    fn key(&self) -> Key {
        Key {
            id: self.id.map(record::bare),
            created_time: self.created_time,
            version: self.version,
            owner: owner(self.tenant_id),
        }
    }

    fn values(&self) -> StoreResult<Vec<Arg>> {
        if self.tenant_id.is_null() && !self.customer_id.is_null() {
            return Err(record::invalid(
                "A user of a customer should be assigned to the customer's tenant!",
            ));
        }
        Ok(vec![
            (!self.tenant_id.is_null()).then_some(self.tenant_id.0).into(),
            (!self.customer_id.is_null()).then_some(self.customer_id.0).into(),
            record::bounded("email", &self.email)?,
            self.email.to_lowercase().into(),
            self.authority.name().into(),
            record::search_text(&[
                Some(&self.email),
                self.first_name.as_deref(),
                self.last_name.as_deref(),
            ]),
            record::sort_key(self.first_name.as_deref()),
            record::sort_key(self.last_name.as_deref()),
        ])
    }

    fn read(columns: &mut Columns<'_>) -> StoreResult<Self> {
        let id = UserId(columns.next()?);
        let created_time = columns.next()?;
        let tenant_id: Option<Uuid> = columns.next()?;
        let customer_id: Option<Uuid> = columns.next()?;
        let email: String = columns.next()?;
        let authority: String = columns.next()?;
        let version = columns.next()?;
        let doc: String = columns.next()?;
        Ok(Self {
            id: Some(id),
            created_time,
            tenant_id: tenant_id.map_or(TenantId::NULL, TenantId),
            customer_id: customer_id.map_or(CustomerId::NULL, CustomerId),
            name: email.clone(),
            email,
            authority: Authority::from_name(&authority).ok_or_else(|| unreadable("unknown authority"))?,
            version: Some(version),
            ..record::parse(&doc)?
        })
    }

    fn taken(&self, constraint: &str) -> Option<String> {
        (constraint == "user_account_email_key_key")
            .then(|| format!("User with email '{}' already present in database!", self.email))
    }
}

const LISTING: Listing = Listing {
    table: User::TABLE,
    select: User::SELECT,
    joins: "",
    sorts: &[
        ("createdTime", "created_time"),
        ("email", "email_key"),
        ("name", "email_key"),
        ("firstName", "first_name_key"),
        ("lastName", "last_name_key"),
    ],
};

/// The null tenant stands for system administrators, who belong to none.
fn owner(tenant: TenantId) -> Owner {
    if tenant.is_null() {
        Owner::NoTenant
    } else {
        Owner::Tenant(tenant.0)
    }
}

/// Users in a database.
pub(super) struct Users(pub(super) Database);

#[async_trait]
impl UserStore for Users {
    async fn save(&self, user: User, create: bool) -> StoreResult<User> {
        record::save(&self.0, user, create).await
    }

    async fn get(&self, tenant: TenantId, id: UserId) -> StoreResult<Option<User>> {
        record::get(&self.0, owner(tenant), id.0).await
    }

    async fn by_id(&self, id: UserId) -> StoreResult<Option<User>> {
        record::get(&self.0, Owner::Installation, id.0).await
    }

    async fn by_email(&self, email: &str) -> StoreResult<Option<User>> {
        let query = record::select::<User>()
            .push("email_key = ")
            .bind(email.to_lowercase());
        record::first(&self.0.read(query).await?)
    }

    async fn list(&self, filter: UserFilter, page: &PageLink) -> StoreResult<PageData<User>> {
        let condition = |query: Query| match filter {
            UserFilter::TenantAdmins(tenant) => {
                with_authority(query.owned_by(owner(tenant)), Authority::TenantAdmin)
            }
            UserFilter::CustomerUsers(tenant, customer) => with_authority(
                query
                    .owned_by(owner(tenant))
                    .push(" AND customer_id = ")
                    .bind(customer.0),
                Authority::CustomerUser,
            ),
            UserFilter::AdminsAndCustomerUsers(tenant, customer) => query
                .owned_by(owner(tenant))
                .push(" AND (authority = ")
                .bind(Authority::TenantAdmin.name())
                .push(" OR customer_id = ")
                .bind(customer.0)
                .push(")"),
            UserFilter::OfTenant(tenant) => query.owned_by(owner(tenant)),
            UserFilter::SysAdmins => with_authority(query.owned_by(Owner::NoTenant), Authority::SysAdmin),
        };
        list::page(&self.0, &LISTING, page, condition, list::own_text, User::read).await
    }

    async fn delete(&self, tenant: TenantId, id: UserId) -> StoreResult<bool> {
        let in_use = "The user is in use and cannot be deleted!";
        record::delete::<User>(&self.0, owner(tenant), id.0, in_use).await
    }

    async fn count(&self, tenant: TenantId) -> StoreResult<u64> {
        record::count::<User>(&self.0, owner(tenant)).await
    }

    async fn credentials(&self, id: UserId) -> StoreResult<Option<UserCredentials>> {
        let query = select_credentials().push("user_id = ").bind(id.0);
        first_credentials(&self.0.read(query).await?)
    }

    async fn credentials_by_activate_token(&self, token: &str) -> StoreResult<Option<UserCredentials>> {
        let query = select_credentials().push("activate_token = ").bind(token);
        first_credentials(&self.0.read(query).await?)
    }

    async fn save_credentials(&self, credentials: UserCredentials) -> StoreResult<()> {
        let token = credentials.activate_token.as_deref();
        let query = Query::new(
            "INSERT INTO user_credentials (user_id, enabled, password_hash, activate_token, tokens_valid_from) VALUES (",
        )
        .bind(credentials.user_id.0)
        .push(", ")
        .bind(credentials.enabled)
        .push(", ")
        .bind(credentials.password_hash.clone())
        .push(", ")
        .bind(token.map(|token| record::bounded("activateToken", token)).transpose()?.unwrap_or(Arg::Text(None)))
        .push(", ")
        .bind(credentials.tokens_valid_from)
        .push(
            ") ON CONFLICT (user_id) DO UPDATE SET enabled = excluded.enabled, password_hash = excluded.password_hash, \
             activate_token = excluded.activate_token, tokens_valid_from = excluded.tokens_valid_from",
        );
        match self.0.execute(query).await {
            Ok(_) => Ok(()),
            Err(Failure::BrokenReference) => Err(record::not_found(User::NAME)),
            Err(Failure::Taken(_)) => Err(StoreError::new(
                StoreErrorKind::Conflict,
                "Such an activation token already exists!",
            )),
            Err(Failure::Other(error)) => Err(error),
        }
    }
}

fn with_authority(query: Query, authority: Authority) -> Query {
    query.push(" AND authority = ").bind(authority.name())
}

fn select_credentials() -> Query {
    Query::new(
        "SELECT user_id, enabled, password_hash, activate_token, tokens_valid_from FROM user_credentials WHERE ",
    )
}

fn first_credentials(rows: &[Row]) -> StoreResult<Option<UserCredentials>> {
    let read = |row: &Row| {
        let mut columns = row.columns();
        Ok(UserCredentials {
            user_id: UserId(columns.next()?),
            enabled: columns.next()?,
            password_hash: columns.next()?,
            activate_token: columns.next()?,
            tokens_valid_from: columns.next()?,
        })
    };
    rows.first().map(read).transpose()
}
