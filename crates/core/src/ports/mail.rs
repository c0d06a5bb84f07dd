//! Mails that the platform sends to people.

use async_trait::async_trait;
use serde_json::Value;

/// A mail of plain text to one person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
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
    async fn send(&self, server: &Value, mail: &Mail) -> Result<(), String>;
}

/// Of a program that sends none.
pub struct NoMails;

#[async_trait]
impl MailSender for NoMails {
    async fn send(&self, _: &Value, _: &Mail) -> Result<(), String> {
        Err("This program sends no mails".to_owned())
    }
}
