//! Mails that the platform sends to people.

use async_trait::async_trait;
use serde_json::Value;

/// A mail of plain text to one person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailMessage {
    /// Address of the receiver.
    pub to: String,
    /// Subject.
    pub subject: String,
    /// Text.
    pub body: String,
}

/// Sends mails.
#[async_trait]
pub trait MailSender: Send + Sync {
    /// Sends a mail through the server of these settings (those of the installation under the key `mail`), and returns once
    /// the server has taken it.
    ///
    /// # Errors
    /// Why it was not sent, fit to be shown to an administrator; without passwords.
    async fn send(&self, server: &Value, mail: &MailMessage) -> Result<(), String>;

    /// Where an administrator allows the platform to send mails by the account of these settings (OAuth 2, RFC 6749 §4.1.1);
    /// the provider sends `state` back with the code for [`Self::exchange_code`].
    ///
    /// # Errors
    /// What the settings lack.
    fn consent_url(&self, server: &Value, state: &str) -> Result<String, String>;

    /// Turns the code that the provider gave into a refresh token (RFC 6749 §4.1.3).
    ///
    /// # Errors
    /// Why there is none, fit to be shown to an administrator; without secrets.
    async fn exchange_code(&self, server: &Value, code: &str) -> Result<String, String>;
}

/// Of a program that sends none.
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
