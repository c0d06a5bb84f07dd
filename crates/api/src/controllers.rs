//! The controllers: one file an area, each reads its request, asks for the entity on the caller's behalf, and hands over
//! to the services.

mod auth;
mod conflict;
mod customer;
mod device;
mod device_assignment;
mod device_list;
mod device_profile;
mod tenant;
mod tenant_profile;
mod user;
mod user_list;

use fieldline_model::EntityId;
use serde::Serialize;

use crate::endpoint::Routes;

/// The endpoints of all controllers.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .merge(auth::routes())
        .merge(tenant::routes())
        .merge(tenant_profile::routes())
        .merge(customer::routes())
        .merge(user::routes())
        .merge(user_list::routes())
        .merge(device::routes())
        .merge(device_list::routes())
        .merge(device_assignment::routes())
        .merge(device_profile::routes())
}

/// An entity with its name only.
#[derive(Serialize, utoipa::ToSchema)]
struct EntityInfo {
    /// Id with its entity type.
    id: EntityId,
    /// Name.
    name: String,
}

/// A list, or one entity, by which parameters are given.
#[derive(Serialize)]
#[serde(untagged)]
enum Either<A, B> {
    Left(A),
    Right(B),
}
