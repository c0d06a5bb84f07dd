//! The way out for clients of HTTP.

use std::io;
use std::sync::{Arc, OnceLock};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, ClientBuilder, Method, RequestBuilder, Response, Url};

use super::{Egress, EgressRules};
use crate::config::ConnectorConfigError;
use crate::http;

type HttpClientFactory = dyn Fn() -> Result<ClientBuilder, ConnectorConfigError> + Send + Sync;

/// The proxy that requests go through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProxySetting {
    /// None, whatever the environment says.
    None,
    /// The one that the environment names for the URL, if it does: the operator has set it up.
    Environment,
    /// This one, which a tenant has named.
    Own { host: String, port: u16 },
}

/// A client whose requests reach only what its [`Egress`] allows.
///
/// It has two clients within: the resolver of one leaves only addresses that may be reached, whatever the name; the other
/// one is for hosts that are allowed by name and port, which a resolver is not told.
pub(crate) struct HttpClient {
    egress: Egress,
    proxy: ProxySetting,
    make: Box<HttpClientFactory>,
    guarded: OnceLock<Client>,
    allowed: OnceLock<Client>,
    /// Makes requests.
    request_client: Client,
}

impl std::fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpClient")
            .field("egress", &self.egress)
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}

impl HttpClient {
    /// `make` builds a client without a resolver of its own; it is called again when the other one is needed.
    pub(crate) fn new(
        egress: &Egress,
        proxy: ProxySetting,
        make: impl Fn() -> Result<ClientBuilder, ConnectorConfigError> + Send + Sync + 'static,
    ) -> Result<Self, ConnectorConfigError> {
        let made = Self {
            egress: egress.clone(),
            proxy,
            guarded: OnceLock::new(),
            allowed: OnceLock::new(),
            request_client: http::build_client(match egress.is_open() {
                true => make()?,
                false => make()?.dns_resolver(resolver(egress)),
            })?,
            make: Box::new(make),
        };
        let usual = if egress.is_open() {
            &made.allowed
        } else {
            &made.guarded
        };
        let _ = usual.set(made.request_client.clone());
        Ok(made)
    }

    /// Begins a request.
    pub(crate) fn request(&self, method: Method, url: impl reqwest::IntoUrl) -> RequestBuilder {
        self.request_client.request(method, url)
    }

    /// Begins a POST request.
    pub(crate) fn post(&self, url: impl reqwest::IntoUrl) -> RequestBuilder {
        self.request_client.post(url)
    }

    /// Sends a request, if its host may be reached; fails with the reason otherwise.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, String> {
        let request = request.build().map_err(http::describe)?;
        let client = self.client(request.url()).await?;
        client.execute(request).await.map_err(http::describe)
    }

    /// The client for a URL.
    async fn client(&self, url: &Url) -> Result<&Client, String> {
        let text = |error: io::Error| error.to_string();
        let Some(rules) = self.egress.rules().await.map_err(text)? else {
            return self.allowed();
        };
        let host = url.host_str().ok_or("the URL has no host")?;
        let port = url.port_or_known_default().unwrap_or_default();
        match &self.proxy {
            ProxySetting::None => self.client_for_host(&rules, host, port).await,
            ProxySetting::Environment if environment_proxies().is_empty() => {
                self.client_for_host(&rules, host, port).await
            }
            ProxySetting::Environment if rules.allows_host(super::strip_brackets(host), port) => {
                self.allowed()
            }
            ProxySetting::Environment => {
                self.egress.check_behind_proxy(host, port).await.map_err(text)?;
                // Which lets the names of the environment's proxies through.
                self.guarded()
            }
            ProxySetting::Own {
                host: proxy,
                port: at,
            } => {
                self.egress.check_behind_proxy(host, port).await.map_err(text)?;
                self.client_for_host(&rules, proxy, *at).await
            }
        }
    }

    /// The client for connections to a host.
    async fn client_for_host(&self, rules: &EgressRules, host: &str, port: u16) -> Result<&Client, String> {
        if rules.allows_host(super::strip_brackets(host), port) {
            return self.allowed();
        }
        // An address is not given to the resolver; a name is, when there is no connection yet.
        if super::strip_brackets(host).parse::<std::net::IpAddr>().is_ok() {
            self.egress
                .addresses(host, port)
                .await
                .map_err(|error| error.to_string())?;
        }
        self.guarded()
    }

    fn guarded(&self) -> Result<&Client, String> {
        self.get_or_build(&self.guarded, |builder| {
            builder.dns_resolver(resolver(&self.egress))
        })
    }

    fn allowed(&self) -> Result<&Client, String> {
        self.get_or_build(&self.allowed, |builder| builder)
    }

    fn get_or_build<'a>(
        &self,
        kept: &'a OnceLock<Client>,
        finish: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<&'a Client, String> {
        if let Some(client) = kept.get() {
            return Ok(client);
        }
        let client = (self.make)()
            .and_then(|builder| http::build_client(finish(builder)))
            .map_err(|error| error.to_string())?;
        Ok(kept.get_or_init(|| client))
    }
}

/// Resolves names for a client of HTTP, and leaves what may be reached.
struct GuardedResolver(Egress);

fn resolver(egress: &Egress) -> Arc<GuardedResolver> {
    Arc::new(GuardedResolver(egress.clone()))
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let egress = self.0.clone();
        Box::pin(async move {
            let name = name.as_str();
            // It takes the port of the URL for 0. Rules for hosts need the port: see above.
            let rules = match environment_proxies().iter().any(|proxy| proxy == name) {
                true => None,
                false => egress.rules().await?,
            };
            let found = egress
                .resolve_public(super::strip_brackets(name), 0, rules.as_deref())
                .await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The hosts of the proxies that the environment of the platform names.
fn environment_proxies() -> &'static [String] {
    static PROXIES: OnceLock<Vec<String>> = OnceLock::new();
    PROXIES.get_or_init(|| {
        const NAMES: [&str; 3] = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"];
        NAMES
            .iter()
            .flat_map(|name| [(*name).to_owned(), name.to_lowercase()])
            .filter_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
            .filter_map(|value| {
                let url = if value.contains("://") {
                    value
                } else {
                    format!("http://{value}")
                };
                Some(Url::parse(&url).ok()?.host_str()?.to_owned())
            })
            .collect()
    })
}
