//! What connections to the outside may reach: nodes are configured by tenants, and must not reach what only the platform's
//! own network should.
//!
//! Names are resolved here, each address is looked at, and the connection goes to an address that was looked at: a name
//! that leads elsewhere when it is asked for again gains nothing. The name alone goes on to TLS and to the `Host` header.
//! What the operator has set up itself, such as the mail server of the installation, is reached through [`Egress::open`].

mod http;
mod ranges;
mod rules;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use thiserror::Error;
use tokio::net::TcpStream;

pub(crate) use self::http::{HttpClient, ProxySetting};
pub use self::rules::EgressRules;

/// What is awaited here.
pub type EgressFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where it stands what may be reached beyond public addresses, as it is now.
pub trait EgressSource: Send + Sync {
    /// The rules that count at this moment. Fails with the reason where they cannot be read; nothing is reached then.
    fn rules(&self) -> EgressFuture<'_, Result<Arc<EgressRules>, String>>;
}

/// Finds the addresses of hosts.
pub trait NameLookup: Send + Sync {
    /// The addresses of a host, which may be an address itself.
    fn lookup<'a>(&'a self, host: &'a str, port: u16) -> EgressFuture<'a, io::Result<Vec<SocketAddr>>>;
}

/// Asks the operating system.
struct SystemLookup;

impl NameLookup for SystemLookup {
    fn lookup<'a>(&'a self, host: &'a str, port: u16) -> EgressFuture<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

/// Rules that never change.
struct FixedRules(Arc<EgressRules>);

impl EgressSource for FixedRules {
    fn rules(&self) -> EgressFuture<'_, Result<Arc<EgressRules>, String>> {
        Box::pin(std::future::ready(Ok(Arc::clone(&self.0))))
    }
}

/// An address or a host that must not be reached.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} is refused: {reason}; the operator may allow it by {setting}")]
struct EgressDenial {
    what: String,
    reason: &'static str,
    setting: &'static str,
}

impl From<EgressDenial> for io::Error {
    fn from(refused: EgressDenial) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, refused)
    }
}

/// The way out: all connections of a client go through one of these.
#[derive(Clone)]
pub struct Egress {
    lookup: Arc<dyn NameLookup>,
    /// Nothing is refused where there is none.
    source: Option<Arc<dyn EgressSource>>,
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Egress")
            .field("is_open", &self.is_open())
            .finish_non_exhaustive()
    }
}

impl Egress {
    /// For what the operator has set up: everything may be reached.
    pub fn open() -> Self {
        Self {
            lookup: Arc::new(SystemLookup),
            source: None,
        }
    }

    /// Only public addresses, and what the rules allow at the time.
    pub fn guarded(source: Arc<dyn EgressSource>) -> Self {
        Self {
            lookup: Arc::new(SystemLookup),
            source: Some(source),
        }
    }

    /// Only public addresses, and what these rules allow.
    pub fn fixed(rules: EgressRules) -> Self {
        Self::guarded(Arc::new(FixedRules(Arc::new(rules))))
    }

    /// The same with other eyes for names.
    #[must_use]
    #[cfg(test)]
    fn with_lookup(mut self, lookup: Arc<dyn NameLookup>) -> Self {
        self.lookup = lookup;
        self
    }

    /// Whether nothing is refused.
    pub(crate) fn is_open(&self) -> bool {
        self.source.is_none()
    }

    /// Connects to a host, at an address that may be reached.
    ///
    /// # Errors
    /// The name leads nowhere, all of its addresses are refused, or none of the others answers.
    pub async fn connect(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        let mut last = None;
        for address in self.addresses(host, port).await? {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| no_address_error(host)))
    }

    /// The addresses of a host that may be reached, at least one.
    pub(crate) async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let host = strip_brackets(host);
        let rules = self.rules().await?;
        if rules.as_ref().is_none_or(|rules| rules.allows_host(host, port)) {
            return require_addresses(host, self.lookup.lookup(host, port).await?);
        }
        self.resolve_public(host, port, rules.as_deref()).await
    }

    /// What is said of a host that a proxy connects to: it is refused where it is known here as something that must not be
    /// reached. A name that only the proxy knows is left to the proxy.
    pub(crate) async fn check_behind_proxy(&self, host: &str, port: u16) -> io::Result<()> {
        let host = strip_brackets(host);
        let Some(rules) = self.rules().await? else {
            return Ok(());
        };
        if rules.allows_host(host, port) {
            return Ok(());
        }
        check_name(host)?;
        let found = self.lookup.lookup(host, port).await.unwrap_or_default();
        // The proxy may take any of them.
        for address in found {
            check_address(&rules, host, address.ip())?;
        }
        Ok(())
    }

    /// The rules as they are; `None` where nothing is refused.
    async fn rules(&self) -> io::Result<Option<Arc<EgressRules>>> {
        match &self.source {
            None => Ok(None),
            Some(source) => source.rules().await.map(Some).map_err(io::Error::other),
        }
    }

    /// Resolves a name that is not allowed as such, and leaves what may be reached.
    async fn resolve_public(
        &self,
        host: &str,
        port: u16,
        rules: Option<&EgressRules>,
    ) -> io::Result<Vec<SocketAddr>> {
        let Some(rules) = rules else {
            return require_addresses(host, self.lookup.lookup(host, port).await?);
        };
        check_name(host)?;
        let found = require_addresses(host, self.lookup.lookup(host, port).await?)?;
        let mut refused = None;
        let mut left = Vec::with_capacity(found.len());
        for address in found {
            match check_address(rules, host, address.ip()) {
                Ok(()) => left.push(address),
                Err(error) => refused = Some(error),
            }
        }
        match refused {
            Some(refused) if left.is_empty() => Err(refused.into()),
            _ => Ok(left),
        }
    }
}

/// A host without the brackets of an IPv6 address.
fn strip_brackets(host: &str) -> &str {
    let host = host.trim();
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

fn no_address_error(host: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("host {host} has no address"))
}

fn require_addresses(host: &str, found: Vec<SocketAddr>) -> io::Result<Vec<SocketAddr>> {
    if found.is_empty() {
        Err(no_address_error(host))
    } else {
        Ok(found)
    }
}

/// Refuses the names that clouds have for what tells a machine its own secrets, wherever they lead.
fn check_name(host: &str) -> Result<(), EgressDenial> {
    const NAMES: [&str; 6] = [
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "instance-data",
        "instance-data.ec2.internal",
        "metadata.platformequinix.com",
    ];
    let name = host.strip_suffix('.').unwrap_or(host);
    if NAMES.iter().any(|one| one.eq_ignore_ascii_case(name)) {
        return Err(EgressDenial {
            what: format!("host {host}"),
            reason: ranges::METADATA,
            setting: "egress.allow-hosts",
        });
    }
    Ok(())
}

/// Refuses an address that is not public, unless the rules allow it.
fn check_address(rules: &EgressRules, host: &str, address: IpAddr) -> Result<(), EgressDenial> {
    if rules.allows(address) {
        return Ok(());
    }
    let within = std::iter::once(address).chain(ranges::embedded(address));
    let reason = within
        .filter(|address| !rules.allows(*address))
        .find_map(ranges::reason)
        .or_else(|| is_own(address).then_some("address of this machine"));
    match reason {
        None => Ok(()),
        Some(reason) => Err(EgressDenial {
            what: match host.parse::<IpAddr>() {
                Ok(_) => format!("address {address}"),
                Err(_) => format!("address {address} of host {host}"),
            },
            reason,
            setting: "egress.allow",
        }),
    }
}

/// Whether this machine has the address: where it would connect from itself. Nothing is sent for that.
fn is_own(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = std::net::UdpSocket::bind((any, 0)).and_then(|socket| {
        // The port is of no importance.
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip() == address)
}
