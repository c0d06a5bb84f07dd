//! Calculated fields.

use std::sync::Arc;

use fieldline_core::events::{ChangeKind, EntityChange};
use fieldline_core::ports::StoreResult;
use fieldline_model::entity::calculated_field::{
    CalculatedFieldConfiguration, CalculatedFieldLimits, FieldConfigError,
};
use fieldline_model::entity::{CalculatedField, CalculatedFieldType, EntityDraft};
use fieldline_model::{
    AssetId, AssetProfileId, CalculatedFieldId, CustomerId, DeviceId, DeviceProfileId, EntityId, EntityType,
    TenantId,
};
use serde_json::Value;

use super::{
    ServiceContext, ServiceError, ServiceErrorKind, ServiceResult, conflict, debug, saving, validate,
};
use crate::access::title;

/// Rules about calculated fields.
#[derive(Clone)]
pub struct CalculatedFieldService(Arc<ServiceContext>);

impl CalculatedFieldService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::clone(context))
    }

    /// Creates the field, or updates it where it has an id.
    ///
    /// # Errors
    /// A rule is broken, which the message says with the name of the setting; the name is taken; or the entity has as
    /// many fields as it may have.
    pub async fn save(
        &self,
        tenant: TenantId,
        mut field: EntityDraft<CalculatedField>,
    ) -> ServiceResult<CalculatedField> {
        let stores = &*self.0.stores.calculated_fields;
        let entity = field
            .entity_id
            .ok_or_else(|| ServiceError::invalid("Calculated field entity should be specified!"))?;
        let old = saving::stored(stores, tenant, &field).await?;
        if old.as_ref().is_some_and(|old| old.entity_id != field.entity_id) {
            return Err(ServiceError::invalid(
                "Changing the calculated field target entity after initialization is prohibited.",
            ));
        }
        field.tenant_id = tenant;
        check_names(&field)?;
        self.check_entity(tenant, entity, Some(field.field_type)).await?;
        let limits = self.limits(tenant).await?;
        complete(&mut field, &limits);
        self.check_configuration(tenant, &field, &limits).await?;
        self.limit_debugging(tenant, &mut field).await?;
        let taken = match field.field_type {
            CalculatedFieldType::Alarm => "Alarm rule with such type already exists",
            _ => "Calculated field with such name and type already exists",
        };
        if old.is_none() {
            self.check_count(tenant, entity, field.field_type, &limits)
                .await?;
        }
        let saved = saving::save(&self.0, stores, field, old.as_ref()).await;
        let saved = conflict(saved, taken)?;
        self.publish_change(tenant, entity, saved.id);
        Ok(saved)
    }

    /// Deletes the field.
    ///
    /// # Errors
    /// The store failed.
    pub async fn delete(&self, field: &CalculatedField) -> ServiceResult<()> {
        let Some(entity) = field.entity_id else {
            return Ok(());
        };
        self.0
            .stores
            .calculated_fields
            .delete(field.tenant_id, field.id)
            .await?;
        self.publish_change(field.tenant_id, entity, field.id);
        Ok(())
    }

    /// What the tenant's profile allows.
    ///
    /// # Errors
    /// The store failed.
    pub async fn limits(&self, tenant: TenantId) -> ServiceResult<CalculatedFieldLimits> {
        let profile = self.0.stores.profile_of(tenant).await?;
        Ok(profile.map_or_else(CalculatedFieldLimits::default, |profile| {
            CalculatedFieldLimits::of(&profile)
        }))
    }

    /// Whether the tenant has the entity, and it can have fields of that type.
    ///
    /// # Errors
    /// It has not, or cannot.
    pub async fn check_entity(
        &self,
        tenant: TenantId,
        entity: EntityId,
        kind: Option<CalculatedFieldType>,
    ) -> ServiceResult<()> {
        let supported = |kind: CalculatedFieldType| kind.supports(entity.entity_type);
        if !CalculatedFieldType::ALL.into_iter().any(supported) {
            return Err(ServiceError::invalid(format!(
                "Entity type '{}' does not support calculated fields",
                entity.entity_type
            )));
        }
        if let Some(kind) = kind.filter(|kind| !supported(*kind)) {
            return Err(ServiceError::invalid(format!(
                "Entity type '{}' does not support '{}' calculated fields",
                entity.entity_type,
                kind.name()
            )));
        }
        self.check_exists(tenant, entity).await
    }

    async fn check_exists(&self, tenant: TenantId, entity: EntityId) -> ServiceResult<()> {
        let stores = &self.0.stores;
        let id = entity.id;
        let exists = match entity.entity_type {
            EntityType::Tenant => id == tenant.0,
            EntityType::Customer => stores.customers.get(tenant, CustomerId(id)).await?.is_some(),
            EntityType::Device => stores.devices.get(tenant, DeviceId(id)).await?.is_some(),
            EntityType::DeviceProfile => {
                let profile = stores.device_profiles.get(tenant, DeviceProfileId(id)).await?;
                profile.is_some()
            }
            EntityType::Asset => stores.assets.get(tenant, AssetId(id)).await?.is_some(),
            EntityType::AssetProfile => {
                let profile = stores.asset_profiles.get(tenant, AssetProfileId(id)).await?;
                profile.is_some()
            }
            _ => false,
        };
        if exists {
            return Ok(());
        }
        Err(ServiceError::invalid(format!(
            "{} with id [{id}] does not exist.",
            title(&entity.entity_type)
        )))
    }

    async fn check_configuration(
        &self,
        tenant: TenantId,
        field: &CalculatedField,
        limits: &CalculatedFieldLimits,
    ) -> ServiceResult<()> {
        let configuration =
            CalculatedFieldConfiguration::parse(field.field_type, &field.configuration).map_err(refused)?;
        limits.check(&configuration).map_err(refused)?;
        if let CalculatedFieldConfiguration::EntityAggregation(aggregation) = &configuration {
            let zone = &aggregation.interval.tz;
            if zone.parse::<chrono_tz::Tz>().is_err() {
                return Err(refused(FieldConfigError::new(
                    "configuration.interval.tz",
                    format!("Invalid timezone in interval: '{zone}'"),
                )));
            }
        }
        for entity in configuration.referenced_entities() {
            self.check_exists(tenant, entity).await?;
        }
        let checked = self.0.rule_nodes.check_field(field, limits);
        checked.map_err(|error| ServiceError::invalid(format!("Validation error: {error}")))
    }

    /// Two creations at the same moment may both pass: the limit is a plan, not an invariant.
    async fn check_count(
        &self,
        tenant: TenantId,
        entity: EntityId,
        kind: CalculatedFieldType,
        limits: &CalculatedFieldLimits,
    ) -> ServiceResult<()> {
        let limit = limits.max_fields_per_entity;
        if kind == CalculatedFieldType::Alarm || limit == 0 {
            return Ok(());
        }
        if self
            .0
            .stores
            .calculated_fields
            .count_of_entity(tenant, entity)
            .await?
            < limit
        {
            return Ok(());
        }
        Err(ServiceError::new(
            ServiceErrorKind::Invalid,
            "Calculated fields per entity limit reached!",
        ))
    }

    /// A request to store all debug events ends when the tenant profile says.
    async fn limit_debugging(&self, tenant: TenantId, field: &mut CalculatedField) -> ServiceResult<()> {
        let Some(settings) = &mut field.debug_settings else {
            return Ok(());
        };
        *settings = settings.with_latest_end(debug::latest_end(&self.0, tenant).await?);
        Ok(())
    }

    fn publish_change(&self, tenant: TenantId, entity: EntityId, id: CalculatedFieldId) {
        self.0
            .publish_change(EntityChange::new(tenant, entity, ChangeKind::CalculatedField(id)));
    }
}

/// Refuses to delete what the arguments of other entities' fields name. `kind` is what it is called in messages.
pub(super) async fn refuse_referenced(
    context: &ServiceContext,
    tenant: TenantId,
    entity: EntityId,
    kind: &str,
) -> ServiceResult<()> {
    let stores = &context.stores.calculated_fields;
    if stores.is_referenced(tenant, entity).await? {
        return Err(ServiceError::invalid(format!(
            "Can't delete {kind} that is referenced in calculated fields!"
        )));
    }
    Ok(())
}

/// Deletes the fields of an entity that is gone.
pub(super) async fn delete_of_entity(
    context: &ServiceContext,
    tenant: TenantId,
    entity: EntityId,
) -> StoreResult<()> {
    let deleted = context
        .stores
        .calculated_fields
        .delete_of_entity(tenant, entity)
        .await?;
    for id in deleted {
        context.publish_change(EntityChange::new(tenant, entity, ChangeKind::CalculatedField(id)));
    }
    Ok(())
}

fn refused(error: FieldConfigError) -> ServiceError {
    ServiceError::invalid(format!("Validation error: {error}"))
}

fn check_names(field: &CalculatedField) -> ServiceResult<()> {
    validate::required("Calculated field name", &field.name)?;
    validate::lengths(&[("name", Some(&field.name))])?;
    validate::json_object("additionalInfo", field.additional_info.as_ref())
}

/// Fills in what clients may leave out.
fn complete(field: &mut CalculatedField, limits: &CalculatedFieldLimits) {
    let Value::Object(configuration) = &mut field.configuration else {
        return;
    };
    configuration
        .entry("type")
        .or_insert_with(|| field.field_type.name().into());
    if field.field_type == CalculatedFieldType::RelatedEntitiesAggregation {
        let interval = configuration
            .entry("scheduledUpdateInterval")
            .or_insert(Value::Null);
        if interval.is_null() {
            *interval = limits.min_scheduled_update_interval_sec.into();
        }
    }
}
