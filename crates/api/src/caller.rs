//! Finds out who is calling.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};
use fieldline_core::access::Principal;

use crate::auth::Ticket;
use crate::error::{ApiError, ApiResult};
use crate::state::Api;

/// The authenticated caller of an endpoint that is not public.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller(pub(crate) Principal);

/// A caller with what its token says about itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Authenticated {
    pub(crate) principal: Principal,
    /// Of the token that was shown.
    pub(crate) ticket: Ticket,
}

/// Where a request comes from; `None` where the server does not say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) Option<IpAddr>);

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let authenticated = Authenticated::from_request_parts(parts, state).await?;
        Ok(Self(authenticated.principal))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Authenticated {
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

/// The caller that the headers prove.
pub(crate) async fn authenticate(api: &Api, headers: &HeaderMap) -> ApiResult<Authenticated> {
    let token = bearer(headers).ok_or_else(ApiError::unauthenticated)?;
    let claims = api.tokens.read_access(token, api.clock.now_ms())?;
    let user = api.sessions.user(&claims).await?;
    Ok(Authenticated {
        principal: user,
        ticket: claims.ticket(),
    })
}

/// The token of `X-Authorization`, or of `Authorization` where that header is absent.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers
        .get("x-authorization")
        .or_else(|| headers.get(axum::http::header::AUTHORIZATION))?;
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then(|| token.trim())
}
