//! Electronic mail over SMTP.

mod client;
mod config;
mod message;
mod oauth2;
mod stream;

pub use client::MailClient;
pub use config::{SendEmailConfig, SmtpConfig, SmtpProtocol};
pub use message::OutgoingEmail;
pub use oauth2::{MailOauth2Config, TokenGrant};
