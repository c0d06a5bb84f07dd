//! Devices that let themselves be claimed, and devices that ask for their credentials.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use fieldline_entities::services::{ProvisionResponse, ProvisionStatus};
use fieldline_model::{DeviceId, TenantId, json};

use super::{HttpClientAddress, HttpRefusal, HttpShared, store_failed};
use crate::payload;

/// Lets a customer who tells the same secret claim the device.
pub(super) async fn claim(
    State(shared): State<Arc<HttpShared>>,
    Path(token): Path<String>,
    peer: HttpClientAddress,
    request: Request,
) -> Result<StatusCode, HttpRefusal> {
    let device = shared.admit_device(&token, peer).await?;
    let body = shared
        .small_body(device.subject.tenant, device.id, request)
        .await?;
    let claim = json::claim(&body).map_err(HttpRefusal::Malformed)?;
    let claims = &shared.services.onboarding.claims;
    claims
        .open(device.subject, claim.secret_key, claim.duration_ms)
        .await
        .map_err(|error| store_failed(&error))?;
    Ok(StatusCode::OK)
}

/// Gives a device its credentials, or says why not; that is an answer as well.
pub(super) async fn provision(
    State(shared): State<Arc<HttpShared>>,
    peer: HttpClientAddress,
    request: Request,
) -> Result<Json<ProvisionResponse>, HttpRefusal> {
    shared.admit(peer)?;
    // Whoever asks is nobody yet: all of them share what one device may take.
    let body = shared.small_body(TenantId::NULL, DeviceId::NULL, request).await?;
    let request = payload::provision_request(&body).map_err(HttpRefusal::Malformed)?;
    let provisioning = &shared.services.onboarding.provisioning;
    let provisioned = provisioning.provision(&request).await;
    let provisioned = provisioned.map_err(|error| store_failed(&error))?;
    if provisioned.status == ProvisionStatus::NotFound {
        // Whoever guesses keys and secrets is nobody's device.
        peer.0
            .inspect(|address| shared.services.guard.record_failure(*address));
    }
    Ok(Json(provisioned))
}
