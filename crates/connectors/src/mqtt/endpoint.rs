//! How to reach a broker.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use crate::azure::sas_token;
use crate::config::ConnectorConfigError;
use crate::credentials::ClientCredentials;
use crate::egress::Egress;
use crate::secret::Secret;

/// Connects to a broker, without saying anything yet.
#[derive(Debug)]
pub struct MqttDialer {
    host: String,
    port: u16,
    pub(super) connect_timeout: Duration,
    tls: Option<Arc<rustls::ClientConfig>>,
    egress: Egress,
}

/// Where and as whom to connect.
#[derive(Debug)]
pub(crate) struct MqttEndpoint {
    pub(crate) dialer: MqttDialer,
    pub(crate) version: fieldline_codec::MqttProtocolVersion,
    pub(crate) client_id: String,
    pub(crate) clean_session: bool,
    pub(crate) username: Option<String>,
    pub(crate) password: BrokerPassword,
}

/// What to prove it with.
#[derive(Debug, Clone)]
pub(crate) enum BrokerPassword {
    None,
    Fixed(Secret),
    /// A token signed with this key, made anew for each connection.
    Sas(Secret),
}

/// A connection, encrypted or not.
pub trait BrokerStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> BrokerStream for T {}

impl MqttDialer {
    /// Connects to a host within a time; over TLS where there are credentials for it, which may be anonymous.
    ///
    /// # Errors
    /// The certificates or the key cannot be read.
    pub fn new(
        (host, port): (&str, u16),
        connect_timeout: Duration,
        tls: Option<&ClientCredentials>,
        egress: &Egress,
    ) -> Result<Self, ConnectorConfigError> {
        let tls = tls.map(ClientCredentials::tls).transpose()?;
        Ok(Self {
            host: host.to_owned(),
            port,
            connect_timeout,
            tls: tls.map(Arc::new),
            egress: egress.clone(),
        })
    }

    /// Names the broker in messages.
    pub fn broker(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Connects, within its time.
    ///
    /// # Errors
    /// Those of the network and of TLS.
    pub async fn dial_in_time(&self) -> io::Result<Box<dyn BrokerStream>> {
        let dialled = tokio::time::timeout(self.connect_timeout, self.dial()).await;
        dialled.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    pub(crate) async fn dial(&self) -> io::Result<Box<dyn BrokerStream>> {
        let stream = self.egress.connect(&self.host, self.port).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else {
            return Ok(Box::new(stream));
        };
        let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
        let stream = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await?;
        Ok(Box::new(stream))
    }
}

impl MqttEndpoint {
    pub(crate) fn secret(&self) -> Result<Option<Secret>, String> {
        match &self.password {
            BrokerPassword::None => Ok(None),
            BrokerPassword::Fixed(password) => Ok(Some(password.clone())),
            BrokerPassword::Sas(key) => {
                let now = chrono::Utc::now().timestamp();
                sas_token(&self.dialer.host, key, now)
                    .map(Some)
                    .map_err(|error| error.to_string())
            }
        }
    }
}
