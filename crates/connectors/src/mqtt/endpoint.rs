//! How to reach a broker.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use crate::azure::sas_token;
use crate::egress::Egress;
use crate::secret::Secret;

/// Where and as whom to connect.
#[derive(Debug)]
pub(crate) struct MqttEndpoint {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) connect_timeout: Duration,
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
    pub(crate) version: fieldline_codec::MqttProtocolVersion,
    pub(crate) client_id: String,
    pub(crate) clean_session: bool,
    pub(crate) username: Option<String>,
    pub(crate) password: BrokerPassword,
    pub(crate) egress: Egress,
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
pub(crate) trait BrokerStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> BrokerStream for T {}

impl MqttEndpoint {
    /// Names the broker in messages.
    pub(crate) fn broker(&self) -> String {
        format!("{}:{}", self.host, self.port)
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

    pub(crate) fn secret(&self) -> Result<Option<Secret>, String> {
        match &self.password {
            BrokerPassword::None => Ok(None),
            BrokerPassword::Fixed(password) => Ok(Some(password.clone())),
            BrokerPassword::Sas(key) => {
                let now = chrono::Utc::now().timestamp();
                sas_token(&self.host, key, now)
                    .map(Some)
                    .map_err(|error| error.to_string())
            }
        }
    }
}
