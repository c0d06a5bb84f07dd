//! Text messages to phones.

mod client;
mod config;
mod smpp;

pub use client::SmsClient;
pub use config::{
    AwsSnsSmsConfig, SendSmsConfig, SmppBindType, SmppConfig, SmppVersion, SmsProviderConfig, TwilioConfig,
};
