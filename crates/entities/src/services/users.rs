//! Users, their activation and passwords.

use std::sync::Arc;

use fieldline_core::events::EntityChange;
use fieldline_core::ports::{LoginAttemptResult, StoreErrorKind, UserFilter};
use fieldline_model::entity::{Authority, EntityDraft, PastPassword, User, UserCredentials};
use fieldline_model::page::PageLink;
use fieldline_model::{CustomerId, EntityKey, EntityType, TenantId, UserId};

use super::{
    AlarmService, EntityActionService, SecuritySettingsService, ServiceContext, ServiceError,
    ServiceErrorKind, ServiceResult, conflict, quota, random_text, security, validate,
};
use crate::password::PasswordError;

const TOKEN_LENGTH: usize = 30;
const ONE_DAY_MS: i64 = 24 * 3_600_000;
/// Earlier passwords that are remembered of a user.
const PAST_PASSWORDS: usize = 10;
/// Time between two links to reset the password of one user, so that nobody's mailbox is filled by others.
const RESET_PAUSE_MS: i64 = 60_000;

/// What a new user activates the account with.
#[derive(Clone, PartialEq, Eq)]
pub struct ActivationToken {
    /// Secret part of the activation link.
    pub token: String,
    /// For how long it is still valid, milliseconds.
    pub ttl_ms: i64,
}

/// Rules about users.
#[derive(Clone)]
pub struct UserService(Arc<ServiceContext>);

impl From<PasswordError> for ServiceError {
    fn from(error: PasswordError) -> Self {
        let kind = match error {
            PasswordError::Busy => ServiceErrorKind::TooManyRequests,
            PasswordError::Failed => ServiceErrorKind::Internal,
        };
        Self::new(kind, error.to_string())
    }
}

impl UserService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::clone(context))
    }

    /// Creates the user, who has to activate the account before logging in, or updates it where it has an id.
    ///
    /// # Errors
    /// A rule is broken, the e-mail address is taken, or the tenant has as many users as it may have.
    pub async fn save(&self, mut user: EntityDraft<User>) -> ServiceResult<User> {
        let stores = &self.0.stores.users;
        self.check(&user).await?;
        user.name = user.email.clone();
        let taken = format!("User with email '{}' already present in database!", user.email);
        let saved = if let Some(id) = user.id {
            let old = stores
                .by_id(id)
                .await?
                .ok_or_else(|| ServiceError::invalid("Can't update non existing user!"))?;
            unchanged(&old, &user)?;
            conflict(stores.update(user.into_update(&old)).await, &taken)?
        } else {
            if !user.tenant_id.is_null() {
                quota::check(&self.0, user.tenant_id, EntityType::User).await?;
            }
            let (id, now) = (UserId::new(), self.0.now());
            let saved = conflict(stores.insert(user.into_new(id, now)).await, &taken)?;
            let ttl = security::activation_ttl_ms(&self.security().settings().await?);
            stores.save_credentials(inactive(id, now + ttl)).await?;
            saved
        };
        self.publish_saved(&saved);
        Ok(saved)
    }

    fn publish_saved(&self, user: &User) {
        self.0
            .publish_change(EntityChange::saved(user.tenant_id, user.id));
    }

    async fn check(&self, user: &User) -> ServiceResult<()> {
        if user.email.is_empty() {
            return Err(ServiceError::invalid("User email should be specified!"));
        }
        validate::email(&user.email)?;
        validate::json_object("additionalInfo", user.additional_info.as_ref())?;
        validate::lengths(&[
            ("email", Some(&user.email)),
            ("first name", user.first_name.as_deref()),
            ("last name", user.last_name.as_deref()),
            ("phone", user.phone.as_deref()),
        ])?;
        belongs(user)?;
        let stores = &self.0.stores;
        if !user.tenant_id.is_null() && stores.tenants.get(user.tenant_id).await?.is_none() {
            return Err(ServiceError::invalid(
                "User is referencing to non-existent tenant!",
            ));
        }
        if !user.customer_id.is_null()
            && stores
                .customers
                .get(user.tenant_id, user.customer_id)
                .await?
                .is_none()
        {
            return Err(ServiceError::invalid(
                "User is referencing to non-existent customer!",
            ));
        }
        Ok(())
    }

    /// Deletes a user with its data and relations, and takes its alarms.
    ///
    /// # Errors
    /// It is the last administrator of its tenant.
    pub async fn delete(&self, user: &User) -> ServiceResult<()> {
        let (tenant, id) = (user.tenant_id, user.id);
        let stores = &self.0.stores.users;
        if user.authority == Authority::TenantAdmin {
            let filter = UserFilter::TenantAdmins(tenant);
            if stores.list(filter, &PageLink::first(1)).await?.total_elements <= 1 {
                return Err(ServiceError::invalid(
                    "At least one tenant administrator must remain!",
                ));
            }
        }
        let subject = EntityKey {
            tenant,
            entity: id.into(),
        };
        stores.delete(tenant, id).await?;
        self.0.publish_change(EntityChange::deleted(tenant, id));
        self.0.delete_links(subject).await?;
        let actions = EntityActionService::new(&self.0);
        AlarmService::new(&self.0, &actions)
            .release_of(tenant, user)
            .await
    }

    /// How a user logs in.
    ///
    /// # Errors
    /// The user has no credentials, which cannot be.
    pub async fn credentials(&self, id: UserId) -> ServiceResult<UserCredentials> {
        let found = self.0.stores.users.credentials(id).await?;
        found.ok_or_else(|| ServiceError::not_found(format!("User with id [{id}] is not found")))
    }

    /// The activation of a user who is not active yet, renewed where it has expired.
    ///
    /// # Errors
    /// The user is active already.
    pub async fn activation(&self, id: UserId) -> ServiceResult<ActivationToken> {
        let mut credentials = self.credentials(id).await?;
        let now = self.0.now();
        let Some(token) = credentials
            .activate_token
            .clone()
            .filter(|_| !credentials.enabled)
        else {
            return Err(ServiceError::invalid("User is already activated!"));
        };
        let ttl_ms = expiry(&token) - now;
        if ttl_ms > 0 {
            return Ok(ActivationToken { token, ttl_ms });
        }
        let ttl_ms = security::activation_ttl_ms(&self.security().settings().await?);
        let token = new_token(now + ttl_ms);
        credentials.activate_token = Some(token.clone());
        self.0.stores.users.save_credentials(credentials).await?;
        Ok(ActivationToken { token, ttl_ms })
    }

    /// Whether an activation token is known; `Some(false)` where it has expired.
    ///
    /// # Errors
    /// The store failed.
    pub async fn activation_state(&self, token: &str) -> ServiceResult<Option<bool>> {
        let found = self.0.stores.users.credentials_by_activate_token(token).await?;
        Ok(found.map(|_| expiry(token) > self.0.now()))
    }

    /// Activates a user with a first password.
    ///
    /// # Errors
    /// The token is unknown or has expired, or the password breaks the policy.
    pub async fn activate(
        &self,
        token: &str,
        password: &str,
        rules: &SecuritySettingsService,
    ) -> ServiceResult<(User, UserCredentials)> {
        let stores = &self.0.stores.users;
        let unknown = || ServiceError::invalid("Unable to find user credentials by activateToken");
        let credentials = stores.credentials_by_activate_token(token).await?;
        let credentials = credentials.ok_or_else(unknown)?;
        if expiry(token) <= self.0.now() {
            return Err(ServiceError::invalid("Activation token expired"));
        }
        let user = stores.by_id(credentials.user_id).await?.ok_or_else(unknown)?;
        rules.check_new(password, &credentials).await?;
        let credentials = self.set_password(&user, credentials, password).await?;
        Ok((user, credentials))
    }

    /// A token with which somebody may set another password without the old one; `None` where the user is not active, or
    /// has got one within the last minute.
    ///
    /// # Errors
    /// The store failed.
    pub async fn request_reset(&self, id: UserId) -> ServiceResult<Option<ActivationToken>> {
        let mut credentials = self.credentials(id).await?;
        let now = self.0.now();
        let ttl_ms = security::reset_ttl_ms(&self.security().settings().await?);
        let asked = credentials.reset_token.as_deref().map(expiry);
        let just_asked = asked.is_some_and(|expiry| (0..RESET_PAUSE_MS).contains(&(now + ttl_ms - expiry)));
        if !credentials.enabled || just_asked {
            return Ok(None);
        }
        let token = new_token(now + ttl_ms);
        credentials.reset_token = Some(token.clone());
        self.0.stores.users.save_credentials(credentials).await?;
        Ok(Some(ActivationToken { token, ttl_ms }))
    }

    /// The token with which the user of an expired password has to set another one; `None` where the password that the
    /// credentials were read with is not the one any longer, or the user may not log in any longer.
    ///
    /// # Errors
    /// The store failed.
    pub async fn expired_reset(&self, mut credentials: UserCredentials) -> ServiceResult<Option<String>> {
        let shown = credentials.password_hash.clone();
        loop {
            let now = self.0.now();
            let valid = credentials
                .reset_token
                .as_ref()
                .filter(|token| expiry(token) > now);
            if let Some(token) = valid {
                return Ok(Some(token.clone()));
            }
            let ttl_ms = security::reset_ttl_ms(&self.security().settings().await?);
            let token = new_token(now + ttl_ms);
            credentials.reset_token = Some(token.clone());
            let id = credentials.user_id;
            match self.0.stores.users.save_credentials(credentials).await {
                Ok(()) => return Ok(Some(token)),
                Err(error) if error.kind() == StoreErrorKind::VersionConflict => {}
                Err(error) => return Err(error.into()),
            }
            // Somebody has changed them meanwhile, like another log-in that has just made a token.
            credentials = self.credentials(id).await?;
            if credentials.password_hash != shown || !credentials.enabled {
                return Ok(None);
            }
        }
    }

    /// Whether a token to reset a password is known; `Some(false)` where it has expired.
    ///
    /// # Errors
    /// The store failed.
    pub async fn reset_state(&self, token: &str) -> ServiceResult<Option<bool>> {
        let found = self.0.stores.users.credentials_by_reset_token(token).await?;
        Ok(found.map(|_| expiry(token) > self.0.now()))
    }

    /// Sets another password by a token that was mailed.
    ///
    /// # Errors
    /// The token is unknown or has expired, or the password breaks the policy or is the old one.
    pub async fn reset(
        &self,
        token: &str,
        password: &str,
        rules: &SecuritySettingsService,
    ) -> ServiceResult<User> {
        let stores = &self.0.stores.users;
        let unknown = || ServiceError::invalid("Invalid reset token!");
        let found = stores.credentials_by_reset_token(token).await?;
        let credentials = found.filter(|_| !token.is_empty()).ok_or_else(unknown)?;
        if expiry(token) <= self.0.now() {
            return Err(ServiceError::invalid("Password reset token expired"));
        }
        let user = stores.by_id(credentials.user_id).await?.ok_or_else(unknown)?;
        if !credentials.enabled {
            return Err(unknown());
        }
        rules.check_new(password, &credentials).await?;
        let hash = credentials.password_hash.as_deref();
        if self.0.passwords.verify(password, hash).await? {
            return Err(ServiceError::invalid(
                "New password should be different from existing!",
            ));
        }
        self.set_password(&user, credentials, password).await?;
        Ok(user)
    }

    fn security(&self) -> SecuritySettingsService {
        SecuritySettingsService::new(&self.0)
    }

    /// Sets a password; makes a user active who had none. Tokens issued so far no longer count.
    ///
    /// # Errors
    /// The password could not be hashed or stored, or the credentials were changed since they were read.
    pub async fn set_password(
        &self,
        user: &User,
        mut credentials: UserCredentials,
        password: &str,
    ) -> ServiceResult<UserCredentials> {
        let hash = self.0.passwords.hash(password).await?;
        credentials.enabled |= credentials.password_hash.is_none();
        if let Some(hash) = credentials.password_hash.replace(hash) {
            let time = credentials.password_time;
            credentials.past_passwords.push(PastPassword { time, hash });
            let forgotten = credentials.past_passwords.len().saturating_sub(PAST_PASSWORDS);
            credentials.past_passwords.drain(..forgotten);
        }
        credentials.password_time = self.0.now();
        credentials.activate_token = None;
        credentials.reset_token = None;
        credentials.tokens_valid_from = self.outdate(&credentials);
        self.0.stores.users.save_credentials(credentials.clone()).await?;
        credentials.version = None;
        self.publish_saved(user);
        Ok(credentials)
    }

    /// Lets a user log in, or no longer.
    ///
    /// # Errors
    /// The user has no password yet.
    pub async fn set_enabled(&self, user: &User, enabled: bool) -> ServiceResult<()> {
        let mut credentials = self.credentials(user.id).await?;
        if enabled && credentials.password_hash.is_none() {
            return Err(ServiceError::invalid(
                "Enabled user credentials should have password!",
            ));
        }
        credentials.enabled = enabled;
        let id = credentials.user_id;
        if enabled {
            self.0
                .stores
                .users
                .note_login(id, LoginAttemptResult::Forgiven)
                .await?;
        } else {
            credentials.tokens_valid_from = self.outdate(&credentials);
        }
        self.0.stores.users.save_credentials(credentials).await?;
        self.publish_saved(user);
        Ok(())
    }

    /// From when on tokens count after a change at this moment. Tokens carry whole seconds, so it is the next one that no
    /// token issued so far can carry.
    fn outdate(&self, credentials: &UserCredentials) -> i64 {
        let next_second = (self.0.now().div_euclid(1_000) + 1) * 1_000;
        next_second.max(credentials.tokens_valid_from.saturating_add(1_000))
    }
}

/// Whom a user may belong to, by its authority.
fn belongs(user: &User) -> ServiceResult<()> {
    let (no_tenant, no_customer) = (user.tenant_id.is_null(), user.customer_id.is_null());
    let problem = match user.authority {
        Authority::SysAdmin if !no_tenant || !no_customer => {
            "System administrator can't be assigned neither to tenant nor to customer!"
        }
        Authority::TenantAdmin if no_tenant => "Tenant administrator should be assigned to tenant!",
        Authority::TenantAdmin if !no_customer => "Tenant administrator can't be assigned to customer!",
        Authority::CustomerUser if no_tenant || no_customer => {
            "Customer user should be assigned to customer!"
        }
        _ => return Ok(()),
    };
    Err(ServiceError::invalid(problem))
}

/// An update must not move a user or change what it may do.
fn unchanged(old: &User, new: &User) -> ServiceResult<()> {
    let problem = if old.tenant_id != new.tenant_id {
        "Can't update user tenant id!"
    } else if old.authority != new.authority {
        "Can't update user authority!"
    } else if old.customer_id != new.customer_id {
        "Can't update user customer id!"
    } else {
        return Ok(());
    };
    Err(ServiceError::invalid(problem))
}

/// A token carries the time it expires at, so that the store need not.
fn new_token(expires: i64) -> String {
    format!("{}{expires:x}", random_text(TOKEN_LENGTH))
}

fn expiry(token: &str) -> i64 {
    token
        .get(TOKEN_LENGTH..)
        .and_then(|time| i64::from_str_radix(time, 16).ok())
        .unwrap_or(0)
}

/// The credentials of a user who has no password yet.
fn inactive(id: UserId, expires: i64) -> UserCredentials {
    UserCredentials {
        user_id: id,
        activate_token: Some(new_token(expires)),
        ..UserCredentials::default()
    }
}

/// A user that is created with a password, without activation: for seeding.
pub(super) async fn create_active(
    context: &Arc<ServiceContext>,
    authority: Authority,
    tenant: TenantId,
    customer: CustomerId,
    email: &str,
    password: &str,
) -> ServiceResult<()> {
    let users = UserService::new(context);
    let user = match context.stores.users.by_email(email).await? {
        Some(user) => user,
        None => {
            let user = User {
                tenant_id: tenant,
                customer_id: customer,
                email: email.to_owned(),
                authority,
                ..User::default()
            };
            users.save(user.into()).await?
        }
    };
    let id = user.id;
    // A start that was cut short may have left the user without credentials or password; one that has it keeps it.
    let credentials = context.stores.users.credentials(id).await?;
    let credentials = credentials.unwrap_or_else(|| inactive(id, context.now() + ONE_DAY_MS));
    if credentials.password_hash.is_some() {
        return Ok(());
    }
    users.set_password(&user, credentials, password).await?;
    Ok(())
}
