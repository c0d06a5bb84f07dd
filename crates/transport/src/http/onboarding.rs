//! Claiming and provisioning of devices.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use fieldline_entities::services::{ProvisionResponse, ProvisionStatus};
use fieldline_model::{DeviceId, TenantId, json};

use super::{HttpClientAddress, HttpRefusal, HttpShared, store_failed};
use crate::payload;

/// Opens the device for claiming by a customer who knows the same secret.
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

/// Gives a device its credentials; a refusal is a normal response, too.
pub(super) async fn provision(
    State(shared): State<Arc<HttpShared>>,
    peer: HttpClientAddress,
    request: Request,
) -> Result<Json<ProvisionResponse>, HttpRefusal> {
    shared.admit(peer)?;
    // The requester is no known device: all such requests share the memory of one device.
    let body = shared.small_body(TenantId::NULL, DeviceId::NULL, request).await?;
    let request = payload::provision_request(&body).map_err(HttpRefusal::Malformed)?;
    let provisioning = &shared.services.onboarding.provisioning;
    let provisioned = provisioning.provision(&request).await;
    let provisioned = provisioned.map_err(|error| store_failed(&error))?;
    if provisioned.status == ProvisionStatus::NotFound {
        // Wrong keys and secrets count against the address, as there is no device to blame.
        peer.0
            .inspect(|address| shared.services.guard.record_failure(*address));
    }
    Ok(Json(provisioned))
}
