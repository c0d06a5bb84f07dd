//! Finds out who is calling.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};
use fieldline_entities::access::Principal;

use crate::auth::TokenIdentity;
use crate::error::{ApiError, ApiResult};
use crate::state::SharedApi;

/// What the handler of an endpoint that is not public gets: the API, and the authenticated caller.
pub(crate) struct ApiCall {
    pub(crate) api: SharedApi,
    pub(crate) caller: Principal,
}

/// A caller with what its token says about itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AuthenticatedCaller {
    pub(crate) principal: Principal,
    /// Of the token that was shown.
    pub(crate) identity: TokenIdentity,
}

/// Where a request comes from; `None` where the server does not say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) Option<IpAddr>);

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
        // Attached by the check in front of every endpoint that is not public.
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

/// Where a request comes from.
pub(crate) fn peer(extensions: &Extensions) -> Option<IpAddr> {
    let peer = extensions.get::<ConnectInfo<SocketAddr>>();
    peer.map(|ConnectInfo(address)| address.ip())
}

/// The caller that the headers prove, by a token or by an API key.
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

/// Scheme and secret of `X-Authorization`, or of `Authorization` where that header is absent.
fn authorization_parts(headers: &HeaderMap) -> Option<(&str, &str)> {
    let value = headers
        .get("x-authorization")
        .or_else(|| headers.get(axum::http::header::AUTHORIZATION))?;
    let (scheme, secret) = value.to_str().ok()?.split_once(' ')?;
    Some((scheme, secret.trim()))
}
