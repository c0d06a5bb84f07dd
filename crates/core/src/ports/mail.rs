//! Mail from the platform to people.

use async_trait::async_trait;
use serde_json::Value;

/// A plain-text mail to one person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailMessage {
    /// Address of the recipient.
    pub to: String,
    /// Subject.
    pub subject: String,
    /// Text.
    pub body: String,
}

/// Sends mail.
#[async_trait]
pub trait MailSender: Send + Sync {
    /// Sends a mail through the server of these settings (those of the installation under the key `mail`), and returns
    /// once the server has accepted it.
    ///
    /// # Errors
    /// The reason why it was not sent, fit to be shown to an administrator; without passwords.
    async fn send(&self, server: &Value, mail: &MailMessage) -> Result<(), String>;

    /// Returns the URL where an administrator allows the platform to send mail through the account of these settings
    /// (OAuth 2, RFC 6749 §4.1.1); the provider returns `state` with the code for [`Self::exchange_code`].
    ///
    /// # Errors
    /// The settings that are missing.
    fn consent_url(&self, server: &Value, state: &str) -> Result<String, String>;

    /// Exchanges the code from the provider for a refresh token (RFC 6749 §4.1.3).
    ///
    /// # Errors
    /// The reason why there is none, fit to be shown to an administrator; without secrets.
    async fn exchange_code(&self, server: &Value, code: &str) -> Result<String, String>;
}

/// For programs that send no mail.
pub struct NoMails;

const NO_MAILS: &str = "This program sends no mails";

#[async_trait]
impl MailSender for NoMails {
    async fn send(&self, _: &Value, _: &MailMessage) -> Result<(), String> {
        Err(NO_MAILS.to_owned())
    }

    fn consent_url(&self, _: &Value, _: &str) -> Result<String, String> {
        Err(NO_MAILS.to_owned())
    }

    async fn exchange_code(&self, _: &Value, _: &str) -> Result<String, String> {
        Err(NO_MAILS.to_owned())
    }
}
