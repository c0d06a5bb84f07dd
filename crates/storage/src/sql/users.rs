//! Users and how they log in.

use async_trait::async_trait;
use fieldline_core::ports::{
    LoginAttemptResult, StoreError, StoreErrorKind, StoreResult, UserFilter, UserStore,
};
use fieldline_model::UserId;
use fieldline_model::entity::{Authority, User, UserCredentials};
use fieldline_model::page::{PageData, PageLink};

use super::entities::{SqlEntities, TenantRecord};
use super::list::{self, ListDefinition};
use super::query::{ColumnReader, RowOwner, SqlArg, SqlQuery, SqlRow, unreadable};
use super::record::{self, EntityRecord, EntityRowKey};
use super::statement_error::StatementError;

impl EntityRecord for User {
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
    const SELECT: &'static str = "id, created_time, version, doc, tenant_id, customer_id, email, authority";
    const IN_COLUMNS: &'static [&'static str] = &["tenantId", "customerId", "email", "name", "authority"];
    const BROKEN_REFERENCE: &'static str = "User is referencing to non-existent tenant or customer!";

    fn key(&self) -> EntityRowKey {
        EntityRowKey::new(self, RowOwner::of(self.tenant_id), self.version)
    }

    fn values(&self) -> StoreResult<Vec<SqlArg>> {
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

    fn fill(&mut self, version: i64, columns: &mut ColumnReader<'_>) -> StoreResult<()> {
        self.version = Some(version);
        self.tenant_id = columns.optional_id()?.unwrap_or_default();
        self.customer_id = columns.optional_id()?.unwrap_or_default();
        self.email = columns.next()?;
        self.name.clone_from(&self.email);
        let authority: String = columns.next()?;
        self.authority = Authority::from_name(&authority).ok_or_else(|| unreadable("unknown authority"))?;
        Ok(())
    }

    fn conflict_message(&self, constraint: &str) -> Option<String> {
        (constraint == "user_account_email_key_key")
            .then(|| format!("User with email '{}' already present in database!", self.email))
    }
}

const LISTING: ListDefinition = ListDefinition {
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

impl TenantRecord for User {
    const IN_USE: &'static str = "The user is in use and cannot be deleted!";
}

#[async_trait]
impl UserStore for SqlEntities<User> {
    async fn by_id(&self, id: UserId) -> StoreResult<Option<User>> {
        record::get(&self.database, RowOwner::Installation, id.0).await
    }

    async fn by_email(&self, email: &str) -> StoreResult<Option<User>> {
        let query = record::select::<User>()
            .push("email_key = ")
            .bind(email.to_lowercase());
        record::first(&self.database.read(query).await?)
    }

    async fn list(&self, filter: UserFilter, page: &PageLink) -> StoreResult<PageData<User>> {
        let condition = |query: SqlQuery| match filter {
            UserFilter::TenantAdmins(tenant) => {
                with_authority(query.owned_by(RowOwner::of(tenant)), Authority::TenantAdmin)
            }
            UserFilter::CustomerUsers(tenant, customer) => with_authority(
                query
                    .owned_by(RowOwner::of(tenant))
                    .push(" AND customer_id = ")
                    .bind(customer.0),
                Authority::CustomerUser,
            ),
            UserFilter::AdminsAndCustomerUsers(tenant, customer) => query
                .owned_by(RowOwner::of(tenant))
                .push(" AND (authority = ")
                .bind(Authority::TenantAdmin.name())
                .push(" OR customer_id = ")
                .bind(customer.0)
                .push(")"),
            UserFilter::OfTenant(tenant) => query.owned_by(RowOwner::of(tenant)),
            UserFilter::SysAdmins => with_authority(query.owned_by(RowOwner::NoTenant), Authority::SysAdmin),
        };
        let owner = match filter {
            UserFilter::TenantAdmins(tenant)
            | UserFilter::CustomerUsers(tenant, _)
            | UserFilter::AdminsAndCustomerUsers(tenant, _)
            | UserFilter::OfTenant(tenant) => RowOwner::of(tenant),
            UserFilter::SysAdmins => RowOwner::NoTenant,
        };
        list::indexed_page(
            &self.database,
            &LISTING,
            page,
            (owner, &[]),
            condition,
            User::read,
        )
        .await
    }

    async fn credentials(&self, id: UserId) -> StoreResult<Option<UserCredentials>> {
        let query = select_credentials().push("user_id = ").bind(id.0);
        first_credentials(&self.database.read(query).await?)
    }

    async fn credentials_by_activate_token(&self, token: &str) -> StoreResult<Option<UserCredentials>> {
        let query = select_credentials().push("activate_token = ").bind(token);
        first_credentials(&self.database.read(query).await?)
    }

    async fn credentials_by_reset_token(&self, token: &str) -> StoreResult<Option<UserCredentials>> {
        let query = select_credentials().push("reset_token = ").bind(token);
        first_credentials(&self.database.read(query).await?)
    }

    async fn note_login(&self, id: UserId, login: LoginAttemptResult) -> StoreResult<u32> {
        let query = SqlQuery::new("UPDATE user_credentials SET failed_logins = ");
        let query = match login {
            LoginAttemptResult::Right(at) => query.push("0, last_login = ").bind(at),
            LoginAttemptResult::Wrong => query.push("failed_logins + 1"),
            LoginAttemptResult::Forgiven => query.push("0"),
        };
        let query = query
            .push(" WHERE user_id = ")
            .bind(id.0)
            .push(" RETURNING failed_logins");
        let rows = self.database.write(query).await?;
        Ok(u32::try_from(record::number(&rows)?).unwrap_or(u32::MAX))
    }

    async fn save_credentials(&self, credentials: UserCredentials) -> StoreResult<()> {
        let token = |name: &str, token: Option<&str>| match token {
            Some(token) => record::bounded(name, token),
            None => Ok(SqlArg::Text(None)),
        };
        let past = serde_json::to_string(&credentials.past_passwords).map_err(unreadable)?;
        let mut query = SqlQuery::new("INSERT INTO user_credentials (user_id, ")
            .push(CREDENTIALS)
            .push(") VALUES (")
            .bind(credentials.user_id.0)
            .push(", ")
            .bind_list([
                credentials.enabled.into(),
                credentials.password_hash.into(),
                token("activateToken", credentials.activate_token.as_deref())?,
                token("resetToken", credentials.reset_token.as_deref())?,
                credentials.tokens_valid_from.into(),
                credentials.password_time.into(),
                SqlArg::from(past),
            ])
            .push(
                ") ON CONFLICT (user_id) DO UPDATE SET enabled = excluded.enabled, \
                 password_hash = excluded.password_hash, activate_token = excluded.activate_token, \
                 reset_token = excluded.reset_token, tokens_valid_from = excluded.tokens_valid_from, \
                 password_time = excluded.password_time, past_passwords = excluded.past_passwords, \
                 version = user_credentials.version + 1",
            );
        if let Some(version) = credentials.version {
            query = query.push(" WHERE user_credentials.version = ").bind(version);
        }
        match self.database.execute(query).await {
            Ok(0) => Err(record::version_conflict(User::NAME)),
            Ok(_) => Ok(()),
            Err(StatementError::BrokenReference) => Err(record::not_found(User::NAME)),
            Err(StatementError::Taken(_)) => Err(StoreError::new(
                StoreErrorKind::Conflict,
                "Such a token already exists!",
            )),
            Err(StatementError::Other(error)) => Err(error),
        }
    }
}

/// What is kept of credentials besides whose they are. Log-ins are noted on their own.
const CREDENTIALS: &str = "enabled, password_hash, activate_token, reset_token, tokens_valid_from, password_time, \
    past_passwords";

fn with_authority(query: SqlQuery, authority: Authority) -> SqlQuery {
    query.push(" AND authority = ").bind(authority.name())
}

fn select_credentials() -> SqlQuery {
    SqlQuery::new("SELECT user_id, ")
        .push(CREDENTIALS)
        .push(", last_login, failed_logins, version FROM user_credentials WHERE ")
}

fn first_credentials(rows: &[SqlRow]) -> StoreResult<Option<UserCredentials>> {
    let read = |row: &SqlRow| {
        let mut columns = row.columns();
        Ok(UserCredentials {
            user_id: UserId(columns.next()?),
            enabled: columns.next()?,
            password_hash: columns.next()?,
            activate_token: columns.next()?,
            reset_token: columns.next()?,
            tokens_valid_from: columns.next()?,
            password_time: columns.next()?,
            past_passwords: match columns.next::<Option<String>>()? {
                Some(past) => serde_json::from_str(&past).map_err(unreadable)?,
                None => Vec::new(),
            },
            last_login: columns.next()?,
            failed_logins: u32::try_from(columns.next::<i64>()?).unwrap_or(u32::MAX),
            version: Some(columns.next()?),
        })
    };
    rows.first().map(read).transpose()
}
