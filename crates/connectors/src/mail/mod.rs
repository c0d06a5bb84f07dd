//! Electronic mail over SMTP.

mod client;
mod config;
mod message;
mod stream;

pub use client::MailClient;
pub use config::{SendEmailConfig, SmtpConfig, SmtpProtocol};
pub use message::Email;
