//! Mails that the platform sends to users: links, and notices about their accounts.

use std::sync::Arc;

use fieldline_core::logging::LogGate;
use fieldline_core::ports::{MailMessage, MailSender, SettingsStore};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::error::{ApiError, ApiResult, ErrorCode};

/// Key of the settings of the mail server.
pub(crate) const MAIL: &str = "mail";
/// Most mails sent at the same time, and most mails that may wait besides.
const PARALLEL: usize = 4;
const WAITING: usize = 200;

static FAILURES: LogGate = LogGate::new(2);

/// Sends mails through the configured mail server.
#[derive(Clone)]
pub(crate) struct MailDispatcher {
    settings: Arc<dyn SettingsStore>,
    sender: Arc<dyn MailSender>,
    send_permits: Arc<Semaphore>,
    queue_permits: Arc<Semaphore>,
}

impl MailDispatcher {
    pub(crate) fn new(settings: Arc<dyn SettingsStore>, sender: Arc<dyn MailSender>) -> Self {
        Self {
            settings,
            sender,
            send_permits: Arc::new(Semaphore::new(PARALLEL)),
            queue_permits: Arc::new(Semaphore::new(PARALLEL + WAITING)),
        }
    }

    /// Returns the settings of the mail server, if configured.
    pub(crate) async fn server(&self) -> ApiResult<Option<Value>> {
        Ok(self.settings.admin(MAIL).await?.map(|stored| stored.json_value))
    }

    /// Sends a mail through a server, and waits until the server has accepted it.
    pub(crate) async fn send(&self, server: &Value, mail: &MailMessage) -> ApiResult<()> {
        let failed = |error: &str| ApiError::new(ErrorCode::General, format!("Unable to send mail: {error}"));
        let _place = self
            .queue_permits
            .try_acquire()
            .map_err(|_| failed("too many mails wait"))?;
        let _turn = self
            .send_permits
            .acquire()
            .await
            .map_err(|_| failed("the server is stopping"))?;
        self.sender
            .send(server, mail)
            .await
            .map_err(|error| failed(&error))
    }

    /// Returns the address where an administrator allows the platform to send mails by the account of these settings.
    pub(crate) fn consent_url(&self, server: &Value, state: &str) -> ApiResult<String> {
        let url = self.sender.consent_url(server, state);
        url.map_err(ApiError::bad_request)
    }

    /// Exchanges a code for a refresh token of the provider.
    pub(crate) async fn exchange_code(&self, server: &Value, code: &str) -> ApiResult<String> {
        let token = self.sender.exchange_code(server, code).await;
        token.map_err(ApiError::bad_request)
    }

    /// Sends a mail in the background; logs a failure. Does nothing if no mail server is configured.
    pub(crate) fn send_later(&self, mail: MailMessage) {
        let mails = self.clone();
        tokio::spawn(async move {
            let sent = match mails.server().await {
                Ok(Some(server)) => mails.send(&server, &mail).await,
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = sent
                && let Some(suppressed) = FAILURES.open()
            {
                tracing::warn!(error = error.message(), suppressed, "a mail was not sent");
            }
        });
    }
}

/// Formats the lifetime of a link.
fn valid_for(ttl_ms: i64) -> String {
    let minutes = ttl_ms.max(0) / 60_000;
    match minutes {
        0..120 => format!("{minutes} minutes"),
        _ => format!("{} hours", minutes / 60),
    }
}

/// The mail that asks a new user to activate the account.
pub(crate) fn activation(to: &str, link: &str, ttl_ms: i64) -> MailMessage {
    let valid = valid_for(ttl_ms);
    MailMessage {
        to: to.to_owned(),
        subject: "Activate your account".to_owned(),
        body: format!(
            "An account was created for you. Choose your password here:\n\n{link}\n\nThe link is valid for {valid}.\n"
        ),
    }
}

/// The notice that an account is active.
pub(crate) fn activation_notice(to: &str, login: &str) -> MailMessage {
    MailMessage {
        to: to.to_owned(),
        subject: "Your account is active".to_owned(),
        body: format!("Your account is active now. Log in here:\n\n{login}\n"),
    }
}

/// The mail with a link for setting a new password.
pub(crate) fn reset(to: &str, link: &str, ttl_ms: i64) -> MailMessage {
    let valid = valid_for(ttl_ms);
    MailMessage {
        to: to.to_owned(),
        subject: "Reset your password".to_owned(),
        body: format!(
            "Somebody, probably you, has asked to reset your password. Choose another one here:\n\n{link}\n\nThe link is \
             valid for {valid}. If it was not you, there is nothing to do: the password stays as it is.\n"
        ),
    }
}

/// The notice that a password was reset.
pub(crate) fn reset_notice(to: &str, login: &str) -> MailMessage {
    MailMessage {
        to: to.to_owned(),
        subject: "Your password was reset".to_owned(),
        body: format!(
            "Your password was reset. If it was not you, tell your administrator. Log in here:\n\n{login}\n"
        ),
    }
}

/// The notice that a user was locked out.
pub(crate) fn lockout_notice(to: &str, user: &str, failures: u32) -> MailMessage {
    MailMessage {
        to: to.to_owned(),
        subject: "A user account was locked".to_owned(),
        body: format!(
            "The account {user} was disabled after {failures} wrong passwords in a row. An administrator may enable it again.\n"
        ),
    }
}

/// The test mail.
pub(crate) fn test(to: &str) -> MailMessage {
    MailMessage {
        to: to.to_owned(),
        subject: "Test mail".to_owned(),
        body: "The mail server is set up as it should be.\n".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_words() {
        assert_eq!(valid_for(24 * 3_600_000), "24 hours");
        assert_eq!(valid_for(90 * 60_000), "90 minutes");
        assert!(activation("a@b.co", "http://x/y", 1).body.contains("http://x/y"));
    }
}
