//! Sending through a provider.

use std::time::Duration;

use serde_json::Value;

use super::config::{SmsProviderConfig, TwilioConfig, is_phone_number};
use super::smpp::SmppClient;
use crate::aws::{AwsClient, publish_sms, sms_client};
use crate::concurrency_limiter::ConcurrencyLimiter;
use crate::config::{ConnectorConfig, ConnectorConfigError};
use crate::egress::{Egress, HttpClient};
use crate::http;
use crate::outcome::{ConnectorError, ConnectorOutcome};
use crate::percent;

/// The longest message, in UTF-16 units as the providers count; what is longer is cut.
const MAX_MESSAGE: usize = 1600;
const TWILIO: &str = "https://api.twilio.com";
const MAX_PARALLEL: usize = 16;
const MAX_WAITING: usize = 1000;

/// Sends text messages through one provider.
#[derive(Debug)]
pub struct SmsClient {
    provider: SmsProvider,
    gate: ConcurrencyLimiter,
}

#[derive(Debug)]
enum SmsProvider {
    AwsSns(AwsClient),
    Twilio(TwilioClient),
    Smpp(SmppClient),
}

#[derive(Debug)]
struct TwilioClient {
    client: HttpClient,
    config: TwilioConfig,
    url: String,
}

impl SmsClient {
    /// Makes a client.
    pub fn new(config: &SmsProviderConfig, egress: &Egress) -> Result<Self, ConnectorConfigError> {
        Self::with_endpoint(config, None, egress)
    }

    /// Like [`Self::new`], with another base URL than that of the provider.
    pub fn with_endpoint(
        config: &SmsProviderConfig,
        endpoint: Option<&str>,
        egress: &Egress,
    ) -> Result<Self, ConnectorConfigError> {
        config.validate()?;
        let provider = match config {
            SmsProviderConfig::AwsSns(aws) => {
                let credentials = (aws.access_key_id.as_str(), &aws.secret_access_key);
                SmsProvider::AwsSns(sms_client(credentials, &aws.region, endpoint, egress)?)
            }
            SmsProviderConfig::Twilio(twilio) => SmsProvider::Twilio(TwilioClient {
                client: http::service_client(egress, Duration::from_secs(30))?,
                url: format!(
                    "{}/2010-04-01/Accounts/{}/Messages.json",
                    endpoint.unwrap_or(TWILIO).trim_end_matches('/'),
                    percent::encode(twilio.account_sid.trim())
                ),
                config: twilio.clone(),
            }),
            SmsProviderConfig::Smpp(smpp) => SmsProvider::Smpp(SmppClient::new(smpp, egress)),
        };
        Ok(Self {
            provider,
            gate: ConcurrencyLimiter::new(MAX_PARALLEL, MAX_WAITING),
        })
    }

    /// Sends a message to phone numbers that are separated by commas, and stops at the first that fails.
    ///
    /// Returns the number of parts the messages have been split into, which is what providers bill, and the outcome.
    pub async fn send(
        &self,
        numbers: &str,
        message: &str,
    ) -> Result<(u32, ConnectorOutcome), ConnectorError> {
        let mut segments = 0;
        for number in numbers.split(',') {
            segments += self
                .send_to(number.trim(), message)
                .await
                .map_err(ConnectorError::bare)?;
        }
        Ok((segments, ConnectorOutcome::default()))
    }

    async fn send_to(&self, number: &str, message: &str) -> Result<u32, String> {
        let _permit = self
            .gate
            .acquire()
            .await
            .map_err(|_| "too many messages wait".to_owned())?;
        if let SmsProvider::Smpp(smpp) = &self.provider {
            smpp.send(number, message).await?;
            return Ok(segments(message));
        }
        if !is_phone_number(number) {
            return Err("Invalid phone number format. Phone number must be in E.164 format.".to_owned());
        }
        let message = prepare_message(message);
        let failed = |error: String| format!("Failed to send SMS message - {error}");
        match &self.provider {
            SmsProvider::AwsSns(client) => publish_sms(client, number, &message).await.map_err(failed)?,
            SmsProvider::Twilio(twilio) => return twilio.send(number, &message).await.map_err(failed),
            SmsProvider::Smpp(_) => {}
        }
        Ok(segments(&message))
    }
}

impl TwilioClient {
    async fn send(&self, number: &str, message: &str) -> Result<u32, String> {
        let from = self.config.number_from.trim();
        let sender = if from.starts_with("MG") {
            "MessagingServiceSid"
        } else {
            "From"
        };
        let body = format!(
            "To={}&{sender}={}&Body={}",
            percent::encode(number),
            percent::encode(from),
            percent::encode(message)
        );
        let request = self
            .client
            .post(&self.url)
            .basic_auth(
                self.config.account_sid.trim(),
                Some(self.config.account_token.expose()),
            )
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body);
        let answer = http::exchange(&self.client, request).await?;
        let result: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        if !answer.status.is_success() {
            let message = result.get("message").and_then(Value::as_str);
            return Err(message.unwrap_or(answer.status.as_str()).to_owned());
        }
        let parts = result.get("num_segments").and_then(Value::as_str);
        Ok(parts.and_then(|parts| parts.parse().ok()).unwrap_or(1))
    }
}

/// Takes a message out of its quotes, makes line breaks of `\n`, and cuts it to the longest there may be.
fn prepare_message(message: &str) -> String {
    let message = message.strip_prefix('"').unwrap_or(message);
    let message = message.strip_suffix('"').unwrap_or(message);
    let message = message.replace("\\n", "\n");
    let mut units = 0;
    let fits = |character: &char| {
        units += character.len_utf16();
        units <= MAX_MESSAGE
    };
    message.chars().take_while(fits).collect()
}

fn segments(message: &str) -> u32 {
    u32::try_from(message.encode_utf16().count().div_ceil(70)).unwrap_or(u32::MAX)
}
