//! Sending mails.

use std::sync::Arc;

use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, TlsParameters, TlsVersion};
use lettre::transport::smtp::extension::ClientId;
use tokio::time::timeout;

use super::config::{SmtpConfig, SmtpProtocol};
use super::message::OutgoingEmail;
use super::stream;
use crate::concurrency_limiter::ConcurrencyLimiter;
use crate::config::{ConnectorConfig, ConnectorConfigError};
use crate::egress::Egress;
use crate::outcome::{ConnectorError, ConnectorOutcome};
use crate::tls;

/// How many mails may be on their way to one server, and how many more may wait.
const MAX_PARALLEL: usize = 8;
const MAX_WAITING: usize = 1000;

/// Sends mails through one server, each over a connection of its own.
pub struct MailClient {
    config: SmtpConfig,
    egress: Egress,
    tls: Arc<rustls::ClientConfig>,
    /// Where a connection may be encrypted after its beginning.
    starttls: Option<TlsParameters>,
    gate: ConcurrencyLimiter,
}

impl std::fmt::Debug for MailClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MailClient")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl MailClient {
    /// Makes a client.
    pub fn new(config: &SmtpConfig, egress: &Egress) -> Result<Self, ConnectorConfigError> {
        config.validate()?;
        let starttls = if config.enable_tls && config.smtp_protocol == SmtpProtocol::Smtp {
            let lowest = match config.tls_version.as_str() {
                "TLSv1.3" => TlsVersion::Tlsv13,
                _ => TlsVersion::Tlsv12,
            };
            let parameters = TlsParameters::builder(config.smtp_host.trim().to_owned())
                .set_min_tls_version(lowest)
                .build()
                .map_err(|error| ConnectorConfigError::new("enableTls", error.to_string()))?;
            Some(parameters)
        } else {
            None
        };
        Ok(Self {
            config: config.clone(),
            egress: egress.clone(),
            tls: Arc::new(tls::client_config("", None)?),
            starttls,
            gate: ConcurrencyLimiter::new(MAX_PARALLEL, MAX_WAITING),
        })
    }

    /// Sends a mail and waits until the server has taken it.
    pub async fn send(&self, email: &OutgoingEmail) -> Result<ConnectorOutcome, ConnectorError> {
        let failed = |error: String| ConnectorError::bare(format!("Unable to send mail: {error}"));
        let _permit = self
            .gate
            .acquire()
            .await
            .map_err(|_| failed("too many mails wait".to_owned()))?;
        match timeout(self.config.time(), self.deliver(email)).await {
            Ok(Ok(())) => Ok(ConnectorOutcome::default()),
            Ok(Err(error)) => Err(failed(error)),
            Err(_) => Err(failed("Timeout!".to_owned())),
        }
    }

    /// Connects and logs in, to see whether the configuration works.
    pub async fn check(&self) -> Result<(), ConnectorError> {
        let failed = |error: String| ConnectorError::bare(format!("Unable to connect: {error}"));
        match timeout(self.config.time(), self.connect()).await {
            Ok(Ok(mut connection)) => {
                connection.abort().await;
                Ok(())
            }
            Ok(Err(error)) => Err(failed(error)),
            Err(_) => Err(failed("Timeout!".to_owned())),
        }
    }

    async fn deliver(&self, email: &OutgoingEmail) -> Result<(), String> {
        let message = email.message(&self.config.mail_from)?;
        let mut connection = self.connect().await?;
        connection
            .send(message.envelope(), &message.formatted())
            .await
            .map_err(describe)?;
        // The server has it; how the connection ends does not matter.
        let _ = connection.quit().await;
        Ok(())
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, String> {
        let config = &self.config;
        let hello = ClientId::default();
        let stream = stream::dial(config, &self.egress)
            .await
            .map_err(|error| error.to_string())?;
        let mut connection = match config.smtp_protocol {
            SmtpProtocol::Smtp => AsyncSmtpConnection::connect_with_transport(Box::new(stream), &hello).await,
            SmtpProtocol::Smtps => {
                let stream = stream::encrypt(&self.tls, &config.smtp_host, stream)
                    .await
                    .map_err(|error| error.to_string())?;
                AsyncSmtpConnection::connect_with_transport(Box::new(stream), &hello).await
            }
        }
        .map_err(describe)?;
        if let Some(parameters) = &self.starttls
            && connection.can_starttls()
        {
            connection
                .starttls(parameters.clone(), &hello)
                .await
                .map_err(describe)?;
        }
        if !config.username.is_empty() {
            let mechanisms: &[Mechanism] = if config.enable_oauth2 {
                &[Mechanism::Xoauth2]
            } else {
                &[Mechanism::Plain, Mechanism::Login]
            };
            let credentials = Credentials::new(config.username.clone(), config.password.expose().to_owned());
            connection
                .auth(mechanisms, &credentials)
                .await
                .map_err(describe)?;
        }
        Ok(connection)
    }
}

fn describe(error: lettre::transport::smtp::Error) -> String {
    error.to_string()
}
