//! Authenticates callers.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};
use fieldline_core::ports::SignInOrigin;
use fieldline_entities::access::Principal;

use crate::auth::TokenIdentity;
use crate::error::{ApiError, ApiResult};
use crate::state::SharedApi;
use crate::user_agent::UserAgent;

/// The input of handlers that need authentication: the API and the caller.
pub(crate) struct ApiCall {
    pub(crate) api: SharedApi,
    pub(crate) caller: Principal,
}

/// A caller with the identity of its token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AuthenticatedCaller {
    pub(crate) principal: Principal,
    /// The identity of the presented token.
    pub(crate) identity: TokenIdentity,
}

/// Address of the client; `None` if the server does not provide it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) Option<IpAddr>);

/// Where a request comes from, which is noted with the session that it opens.
#[derive(Debug, Clone)]
pub(crate) struct RequestOrigin(pub(crate) SignInOrigin);

impl FromRequestParts<SharedApi> for ApiCall {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &SharedApi) -> Result<Self, ApiError> {
        let authenticated = AuthenticatedCaller::from_request_parts(parts, api).await?;
        Ok(Self {
            api: SharedApi::clone(api),
            caller: authenticated.principal,
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for AuthenticatedCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        // Set by the check that runs before every endpoint that needs authentication.
        parts
            .extensions
            .get::<Self>()
            .copied()
            .ok_or_else(ApiError::unauthenticated)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PeerAddress {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self(peer(&parts.extensions)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RequestOrigin {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let agent = UserAgent::of(&parts.headers);
        Ok(Self(SignInOrigin {
            address: peer(&parts.extensions).map(|address| address.to_string()),
            browser: Some(agent.browser),
            os: Some(agent.os.to_owned()),
        }))
    }
}

/// Returns the address of the client.
pub(crate) fn peer(extensions: &Extensions) -> Option<IpAddr> {
    let peer = extensions.get::<ConnectInfo<SocketAddr>>();
    peer.map(|ConnectInfo(address)| address.ip())
}

/// Authenticates the caller by the headers, with a token or an API key.
pub(crate) async fn authenticate(api: &SharedApi, headers: &HeaderMap) -> ApiResult<AuthenticatedCaller> {
    let (scheme, secret) = authorization_parts(headers).ok_or_else(ApiError::unauthenticated)?;
    let now = api.clock.now_ms();
    let (principal, ticket) = if scheme.eq_ignore_ascii_case("Bearer") {
        let claims = api.tokens.read_access(secret, now)?;
        (api.sessions.user(&claims).await?, claims.identity())
    } else if scheme.eq_ignore_ascii_case("ApiKey") {
        let ticket = api.api_keys.identity(secret, now).await?;
        let known = api.sessions.authenticate(ticket).await?;
        (Principal::of(&known.user), ticket)
    } else {
        return Err(ApiError::unauthenticated());
    };
    Ok(AuthenticatedCaller {
        principal,
        identity: ticket,
    })
}

/// Returns scheme and secret of `X-Authorization`, or of `Authorization` if that header is absent.
fn authorization_parts(headers: &HeaderMap) -> Option<(&str, &str)> {
    let value = headers
        .get("x-authorization")
        .or_else(|| headers.get(axum::http::header::AUTHORIZATION))?;
    let (scheme, secret) = value.to_str().ok()?.split_once(' ')?;
    Some((scheme, secret.trim()))
}
