//! Text messages to phones.

use async_trait::async_trait;
use serde_json::Value;

/// Sends text messages through the provider of some settings (those of the installation under the key `sms`).
#[async_trait]
pub trait SmsSender: Send + Sync {
    /// Checks whether the settings name a provider with everything that it needs.
    ///
    /// # Errors
    /// The error in the settings, fit to be shown to an administrator; without secrets.
    fn check(&self, provider: &Value) -> Result<(), String>;

    /// Sends a message to a phone number, and returns once the provider has accepted it.
    ///
    /// # Errors
    /// The reason why it was not sent, fit to be shown to an administrator; without secrets.
    async fn send(&self, provider: &Value, number: &str, message: &str) -> Result<(), String>;
}

/// For programs that send no text messages.
pub struct NoSms;

const NO_SMS: &str = "This program sends no text messages";

#[async_trait]
impl SmsSender for NoSms {
    fn check(&self, _: &Value) -> Result<(), String> {
        Err(NO_SMS.to_owned())
    }

    async fn send(&self, _: &Value, _: &str, _: &str) -> Result<(), String> {
        Err(NO_SMS.to_owned())
    }
}
