//! How people log in: what the system administrator has set, and what passwords must be like.

use std::sync::Arc;

use fieldline_model::entity::{AdminSettings, PasswordPolicy, SecuritySettings, UserCredentials};
use fieldline_model::{AdminSettingsId, TenantId, new_uuid};

use super::{ServiceContext, ServiceError, ServiceResult, validate};

/// Under which the settings are kept.
const KEY: &str = "securitySettings";
const DEFAULT_MIN_LENGTH: u32 = 6;
const DEFAULT_MAX_LENGTH: u32 = 72;
/// Longest password, so that nobody makes the server hash megabytes.
const MAX_LENGTH: usize = 256;
const DAY_MS: i64 = 86_400_000;
const HOUR_MS: i64 = 3_600_000;
const DEFAULT_TTL_HOURS: u32 = 24;

/// Rules about logging in.
#[derive(Clone)]
pub struct SecuritySettingsService {
    context: Arc<ServiceContext>,
    min_length: u32,
}

impl SecuritySettingsService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self {
            context: Arc::clone(context),
            min_length: DEFAULT_MIN_LENGTH,
        }
    }

    /// The same rules where passwords have at least so many characters until the system administrator sets something else.
    #[must_use]
    pub fn with_min_length(mut self, min_length: usize) -> Self {
        self.min_length = u32::try_from(min_length).unwrap_or(u32::MAX);
        self
    }

    /// The settings that count.
    ///
    /// # Errors
    /// The store failed, or has something that are no such settings.
    pub async fn settings(&self) -> ServiceResult<SecuritySettings> {
        let stored = self.context.stores.settings.admin(KEY).await?;
        let Some(stored) = stored else {
            let mut settings = SecuritySettings::default();
            settings.password_policy.minimum_length = Some(self.min_length);
            settings.password_policy.maximum_length = Some(DEFAULT_MAX_LENGTH);
            return Ok(settings);
        };
        serde_json::from_value(stored.json_value)
            .map_err(|_| ServiceError::invalid("The security settings cannot be read"))
    }

    /// Saves the settings.
    ///
    /// # Errors
    /// They make no sense.
    pub async fn save(&self, settings: SecuritySettings) -> ServiceResult<SecuritySettings> {
        check(&settings)?;
        let json_value = serde_json::to_value(&settings)
            .map_err(|_| ServiceError::invalid("The security settings cannot be stored"))?;
        let stored = AdminSettings {
            id: AdminSettingsId(new_uuid()),
            created_time: self.context.now(),
            tenant_id: TenantId::NULL,
            key: KEY.to_owned(),
            json_value,
        };
        self.context.stores.settings.save_admin(stored).await?;
        Ok(settings)
    }

    /// Whether a password may be the next one of a user: it keeps to the policy, and was not used lately.
    ///
    /// # Errors
    /// What it lacks.
    pub async fn check_new(&self, password: &str, credentials: &UserCredentials) -> ServiceResult<()> {
        let policy = self.settings().await?.password_policy;
        check_password(password, &policy)?;
        let Some(days) = policy.password_reuse_frequency_days.filter(|days| *days > 0) else {
            return Ok(());
        };
        let since = self.context.now().saturating_sub(i64::from(days) * DAY_MS);
        let current = credentials.password_hash.as_deref();
        let past = credentials
            .past_passwords
            .iter()
            .filter(|past| past.time >= since)
            .map(|past| past.hash.as_str());
        for hash in current.into_iter().chain(past) {
            if self.context.passwords.verify(password, Some(hash)).await? {
                return Err(ServiceError::invalid(format!(
                    "Password was already used for the last {days} days"
                )));
            }
        }
        Ok(())
    }
}

/// How long an activation link is valid, milliseconds.
pub(super) fn activation_ttl_ms(settings: &SecuritySettings) -> i64 {
    ttl_ms(settings.user_activation_token_ttl)
}

/// How long a link to reset a password is valid, milliseconds.
pub(super) fn reset_ttl_ms(settings: &SecuritySettings) -> i64 {
    ttl_ms(settings.password_reset_token_ttl)
}

fn ttl_ms(hours: Option<u32>) -> i64 {
    i64::from(hours.unwrap_or(DEFAULT_TTL_HOURS)) * HOUR_MS
}

/// Whether a password that was set at that time has to be changed now.
pub fn is_expired(policy: &PasswordPolicy, password_time: i64, now: i64) -> bool {
    let days = policy.password_expiration_period_days.unwrap_or(0);
    days > 0 && password_time > 0 && now.saturating_sub(password_time) > i64::from(days) * DAY_MS
}

fn check(settings: &SecuritySettings) -> ServiceResult<()> {
    let policy = &settings.password_policy;
    let min = policy.minimum_length.unwrap_or(0) as usize;
    let parts = [
        policy.minimum_uppercase_letters,
        policy.minimum_lowercase_letters,
        policy.minimum_digits,
        policy.minimum_special_characters,
    ];
    let parts: u64 = parts.into_iter().map(|part| u64::from(part.unwrap_or(0))).sum();
    let longest = longest(policy);
    if min > longest || parts > longest as u64 {
        return Err(ServiceError::invalid(format!(
            "No password of up to {longest} characters meets this policy!"
        )));
    }
    for (name, hours) in [
        ("userActivationTokenTtl", settings.user_activation_token_ttl),
        ("passwordResetTokenTtl", settings.password_reset_token_ttl),
    ] {
        if !(1..=24).contains(&hours.unwrap_or(DEFAULT_TTL_HOURS)) {
            return Err(ServiceError::invalid(format!(
                "Validation error: {name} must be 1 to 24"
            )));
        }
    }
    let email = settings.user_lockout_notification_email.as_deref();
    if let Some(email) = email.filter(|email| !email.trim().is_empty()) {
        validate::email(email)?;
    }
    Ok(())
}

fn longest(policy: &PasswordPolicy) -> usize {
    let min = policy.minimum_length.unwrap_or(0);
    match policy.maximum_length {
        Some(max) if max > min => (max as usize).min(MAX_LENGTH),
        _ => MAX_LENGTH,
    }
}

/// Whether a password keeps to a policy.
///
/// # Errors
/// What it lacks, one sentence a line.
pub fn check_password(password: &str, policy: &PasswordPolicy) -> ServiceResult<()> {
    let length = password.chars().count();
    let shortest = policy.minimum_length.unwrap_or(0).max(1);
    let longest = longest(policy);
    let mut problems = Vec::new();
    if length < shortest as usize {
        problems.push(format!(
            "Password must be {shortest} or more characters in length."
        ));
    }
    if length > longest {
        problems.push(format!(
            "Password must be no more than {longest} characters in length."
        ));
    }
    let count = |is: fn(&char) -> bool| password.chars().filter(is).count();
    for (name, wanted, found) in [
        (
            "uppercase",
            policy.minimum_uppercase_letters,
            count(char::is_ascii_uppercase),
        ),
        (
            "lowercase",
            policy.minimum_lowercase_letters,
            count(char::is_ascii_lowercase),
        ),
        ("digit", policy.minimum_digits, count(char::is_ascii_digit)),
        (
            "special",
            policy.minimum_special_characters,
            count(char::is_ascii_punctuation),
        ),
    ] {
        let wanted = wanted.unwrap_or(0);
        if found < wanted as usize {
            problems.push(format!(
                "Password must contain {wanted} or more {name} characters."
            ));
        }
    }
    if policy.allow_whitespaces == Some(false) && password.chars().any(char::is_whitespace) {
        problems.push("Password contains a whitespace character.".to_owned());
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(ServiceError::invalid(problems.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_told_everything_that_it_lacks() {
        let policy = PasswordPolicy {
            minimum_length: Some(8),
            maximum_length: Some(12),
            minimum_uppercase_letters: Some(1),
            minimum_digits: Some(2),
            minimum_special_characters: Some(1),
            allow_whitespaces: Some(false),
            ..PasswordPolicy::default()
        };
        assert!(check_password("Secret-12", &policy).is_ok());
        let refused = check_password("a b1", &policy).unwrap_err();
        assert_eq!(
            refused.message().lines().collect::<Vec<_>>(),
            [
                "Password must be 8 or more characters in length.",
                "Password must contain 1 or more uppercase characters.",
                "Password must contain 2 or more digit characters.",
                "Password must contain 1 or more special characters.",
                "Password contains a whitespace character.",
            ]
        );
        assert!(check_password("Secret-123456", &policy).is_err(), "too long");
        assert!(check_password("", &PasswordPolicy::default()).is_err());
        assert!(check_password(&"x".repeat(300), &PasswordPolicy::default()).is_err());
    }

    #[test]
    fn settings_that_nobody_could_keep_to_are_refused() {
        let with = |policy| SecuritySettings {
            password_policy: policy,
            ..SecuritySettings::default()
        };
        let too_many = PasswordPolicy {
            maximum_length: Some(8),
            minimum_digits: Some(9),
            ..PasswordPolicy::default()
        };
        assert!(check(&with(too_many)).is_err());
        let ttl = SecuritySettings {
            password_reset_token_ttl: Some(25),
            ..SecuritySettings::default()
        };
        assert!(check(&ttl).is_err());
        assert!(check(&SecuritySettings::default()).is_ok());
    }

    #[test]
    fn passwords_expire_after_their_days_where_it_is_known_when_they_were_set() {
        let policy = PasswordPolicy {
            password_expiration_period_days: Some(1),
            ..PasswordPolicy::default()
        };
        assert!(!is_expired(&policy, 1_000, 1_000 + DAY_MS));
        assert!(is_expired(&policy, 1_000, 1_001 + DAY_MS));
        assert!(!is_expired(&policy, 0, DAY_MS * 100));
        assert!(!is_expired(&PasswordPolicy::default(), 1, i64::MAX));
    }
}
