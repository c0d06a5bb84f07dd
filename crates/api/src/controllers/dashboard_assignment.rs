//! Assignment of dashboards to customers. Unlike other entities, a dashboard may be assigned to several customers.

use std::collections::BTreeSet;

use axum::Json;
use fieldline_core::any_entity::AnyEntity;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::entity::{Customer, Dashboard, DashboardInfo};
use fieldline_model::{CustomerId, DashboardId, EntityType};
use serde_json::Value;
use utoipa_axum::routes;
use uuid::Uuid;

use super::dashboard::whole;
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, T};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PathIds, parse_uuid};
use crate::state::ApiState;

/// Most customers in one request.
const MAX_CUSTOMERS: usize = 1_000;

const KIND: EntityType = EntityType::Dashboard;
const ASSIGN: AccessOperation = AccessOperation::AssignToCustomer;
const UNASSIGN: AccessOperation = AccessOperation::UnassignFromCustomer;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(T.changes(routes!(assign), AuditRule::Assign(KIND)))
        .add(T.changes(routes!(unassign), AuditRule::Unassign(KIND)))
        .add(T.changes(routes!(assign_to_public), AuditRule::Assign(KIND)))
        .add(T.changes(routes!(unassign_from_public), AuditRule::Unassign(KIND)))
        .add(T.changes(routes!(set_customers), AuditRule::Nothing))
        .add(T.changes(routes!(add_customers), AuditRule::Nothing))
        .add(T.changes(routes!(remove_customers), AuditRule::Nothing))
}

/// Assigns or unassigns a dashboard, notifies the rule engine of each change, and returns the resulting dashboard.
struct DashboardAssignment<'a> {
    api: &'a ApiState,
    caller: &'a Principal,
    dashboard: DashboardInfo,
}

/// The customer that a dashboard is assigned to or unassigned from.
enum AssignmentTarget {
    Customer(Uuid),
    Public,
}

impl<'a> DashboardAssignment<'a> {
    async fn of(
        api: &'a ApiState,
        caller: &'a Principal,
        id: Uuid,
        operation: AccessOperation,
    ) -> ApiResult<Self> {
        let dashboard = api.load::<DashboardInfo>(caller, id, operation).await?;
        Ok(Self {
            api,
            caller,
            dashboard,
        })
    }

    /// Assigns a dashboard to one customer, or unassigns it from there.
    async fn one(
        api: &'a ApiState,
        caller: &'a Principal,
        operation: AccessOperation,
        to: AssignmentTarget,
        id: Uuid,
    ) -> ApiResult<Json<Dashboard>> {
        let (change, customer) = match to {
            AssignmentTarget::Customer(customer) => {
                let customer = api
                    .load::<Customer>(caller, customer, AccessOperation::Read)
                    .await?;
                (Self::of(api, caller, id, operation).await?, customer)
            }
            AssignmentTarget::Public => {
                let change = Self::of(api, caller, id, operation).await?;
                (change, api.services.customers.ensure_public(caller.tenant).await?)
            }
        };
        change.apply(operation, &customer).await?;
        change.into_dashboard().await
    }

    /// Assigns a dashboard to each of these customers, or unassigns it from them.
    async fn each(
        api: &'a ApiState,
        caller: &'a Principal,
        operation: AccessOperation,
        ids: Value,
        id: Uuid,
    ) -> ApiResult<Json<Dashboard>> {
        let change = Self::of(api, caller, id, operation).await?;
        for customer in change.customers(ids).await? {
            change.apply(operation, &customer).await?;
        }
        change.into_dashboard().await
    }

    async fn apply(&self, operation: AccessOperation, customer: &Customer) -> ApiResult<()> {
        match operation {
            AccessOperation::AssignToCustomer => self.assign(customer).await,
            _ => self.unassign(customer).await,
        }
    }

    fn id(&self) -> DashboardId {
        self.dashboard.id
    }

    async fn assign(&self, customer: &Customer) -> ApiResult<()> {
        let services = &self.api.services;
        let dashboards = &services.dashboards;
        if dashboards.assign(self.caller.tenant, self.id(), customer).await? {
            let entity = AnyEntity::Dashboard(self.dashboard.clone());
            services
                .actions
                .push_assigned(self.caller, &entity, customer)
                .await;
        }
        Ok(())
    }

    async fn unassign(&self, customer: &Customer) -> ApiResult<()> {
        let services = &self.api.services;
        let dashboards = &services.dashboards;
        if dashboards
            .unassign(self.caller.tenant, self.id(), customer)
            .await?
        {
            let entity = AnyEntity::Dashboard(self.dashboard.clone());
            services
                .actions
                .push_unassigned(self.caller, &entity, customer)
                .await;
        }
        Ok(())
    }

    /// Returns the customers with these ids, all of which the tenant must have.
    async fn customers(&self, ids: Value) -> ApiResult<Vec<Customer>> {
        // Parsed only after access to the dashboard was checked: other callers must not see errors about the body.
        let ids: Option<Vec<String>> = serde_json::from_value(ids)
            .map_err(|_| ApiError::bad_request("The body must be a list of customer ids!"))?;
        let ids = ids.unwrap_or_default();
        if ids.len() > MAX_CUSTOMERS {
            return Err(ApiError::bad_request(format!(
                "A request must not name more than {MAX_CUSTOMERS} customers!"
            )));
        }
        let mut customers = Vec::with_capacity(ids.len());
        let ids: ApiResult<BTreeSet<Uuid>> = ids.iter().map(|id| parse_uuid(id)).collect();
        for id in ids? {
            customers.push(
                self.api
                    .load::<Customer>(self.caller, id, AccessOperation::Read)
                    .await?,
            );
        }
        Ok(customers)
    }

    async fn into_dashboard(self) -> ApiResult<Json<Dashboard>> {
        let mut dashboard = whole(self.api, self.caller, self.id()).await?;
        dashboard.resources = None;
        Ok(Json(dashboard))
    }
}

/// Assigns a dashboard to a customer, in addition to its current ones.
#[utoipa::path(post, path = "/api/customer/{customerId}/dashboard/{dashboardId}", tag = "dashboard",
    operation_id = "assignDashboardToCustomer",
    params(("customerId" = Uuid, Path), ("dashboardId" = Uuid, Path)), responses((status = 200, body = Dashboard)))]
async fn assign(
    ApiCall { api, caller }: ApiCall,
    PathIds([customer, dashboard]): PathIds<2>,
) -> ApiResult<Json<Dashboard>> {
    let target = AssignmentTarget::Customer(customer);
    DashboardAssignment::one(&api, &caller, ASSIGN, target, dashboard).await
}

/// Unassigns a dashboard from a customer.
#[utoipa::path(delete, path = "/api/customer/{customerId}/dashboard/{dashboardId}", tag = "dashboard",
    operation_id = "unassignDashboardFromCustomer",
    params(("customerId" = Uuid, Path), ("dashboardId" = Uuid, Path)), responses((status = 200, body = Dashboard)))]
async fn unassign(
    ApiCall { api, caller }: ApiCall,
    PathIds([customer, dashboard]): PathIds<2>,
) -> ApiResult<Json<Dashboard>> {
    let target = AssignmentTarget::Customer(customer);
    DashboardAssignment::one(&api, &caller, UNASSIGN, target, dashboard).await
}

/// Assigns a dashboard to the public customer: anyone who knows its address can view it.
#[utoipa::path(post, path = "/api/customer/public/dashboard/{dashboardId}", tag = "dashboard",
    operation_id = "assignDashboardToPublicCustomer", params(("dashboardId" = Uuid, Path)),
    responses((status = 200, body = Dashboard)))]
async fn assign_to_public(
    ApiCall { api, caller }: ApiCall,
    PathIds([dashboard]): PathIds<1>,
) -> ApiResult<Json<Dashboard>> {
    DashboardAssignment::one(&api, &caller, ASSIGN, AssignmentTarget::Public, dashboard).await
}

/// Unassigns a dashboard from the public customer.
#[utoipa::path(delete, path = "/api/customer/public/dashboard/{dashboardId}", tag = "dashboard",
    operation_id = "unassignDashboardFromPublicCustomer", params(("dashboardId" = Uuid, Path)),
    responses((status = 200, body = Dashboard)))]
async fn unassign_from_public(
    ApiCall { api, caller }: ApiCall,
    PathIds([dashboard]): PathIds<1>,
) -> ApiResult<Json<Dashboard>> {
    DashboardAssignment::one(&api, &caller, UNASSIGN, AssignmentTarget::Public, dashboard).await
}

/// Assigns a dashboard to these customers and no others.
#[utoipa::path(post, path = "/api/dashboard/{dashboardId}/customers", tag = "dashboard",
    operation_id = "updateDashboardCustomers", params(("dashboardId" = Uuid, Path)), request_body = Vec<String>,
    responses((status = 200, body = Dashboard)))]
async fn set_customers(
    ApiCall { api, caller }: ApiCall,
    PathIds([dashboard]): PathIds<1>,
    JsonBody(ids): JsonBody<Value>,
) -> ApiResult<Json<Dashboard>> {
    let change = DashboardAssignment::of(&api, &caller, dashboard, ASSIGN).await?;
    let wanted = change.customers(ids).await?;
    for customer in &wanted {
        change.assign(customer).await?;
    }
    let kept: BTreeSet<CustomerId> = wanted.iter().map(|customer| customer.id).collect();
    let assigned = change.dashboard.assigned_customers.as_deref().unwrap_or_default();
    let others = assigned.iter().filter(|one| !kept.contains(&one.customer_id));
    for other in others {
        if let Some(customer) = api
            .entities
            .customers
            .get(caller.tenant, other.customer_id)
            .await?
        {
            change.unassign(&customer).await?;
        }
    }
    change.into_dashboard().await
}

/// Assigns a dashboard to these customers, in addition to its current ones.
#[utoipa::path(post, path = "/api/dashboard/{dashboardId}/customers/add", tag = "dashboard",
    operation_id = "addDashboardCustomers", params(("dashboardId" = Uuid, Path)), request_body = Vec<String>,
    responses((status = 200, body = Dashboard)))]
async fn add_customers(
    ApiCall { api, caller }: ApiCall,
    PathIds([dashboard]): PathIds<1>,
    JsonBody(ids): JsonBody<Value>,
) -> ApiResult<Json<Dashboard>> {
    DashboardAssignment::each(&api, &caller, ASSIGN, ids, dashboard).await
}

/// Unassigns a dashboard from these customers.
#[utoipa::path(post, path = "/api/dashboard/{dashboardId}/customers/remove", tag = "dashboard",
    operation_id = "removeDashboardCustomers", params(("dashboardId" = Uuid, Path)), request_body = Vec<String>,
    responses((status = 200, body = Dashboard)))]
async fn remove_customers(
    ApiCall { api, caller }: ApiCall,
    PathIds([dashboard]): PathIds<1>,
    JsonBody(ids): JsonBody<Value>,
) -> ApiResult<Json<Dashboard>> {
    DashboardAssignment::each(&api, &caller, UNASSIGN, ids, dashboard).await
}
