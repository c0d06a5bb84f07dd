//! Devices behind gateways: known by their names, created when a gateway first speaks for one.

use std::sync::Arc;

use fieldline_core::any_entity::AnyEntity;
use fieldline_core::events::{ChangeKind, EntityChange};
use fieldline_core::ports::StoreResult;
use fieldline_model::entity::{Device, EntityRelation};
use fieldline_model::{EntityKey, TenantId};
use serde_json::{Map, Value};

use super::super::{DeviceService, EntityActionService, NameConflict, ServiceContext, ServiceResult};

/// Type of the relation from a gateway to what it has created.
const CREATED: &str = "Created";
/// Where a device says through which gateway it came last.
pub(in super::super) const LAST_GATEWAY: &str = "lastConnectedGateway";

/// See the module.
pub struct GatewayDeviceService {
    context: Arc<ServiceContext>,
    devices: DeviceService,
    actions: EntityActionService,
}

impl GatewayDeviceService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self {
            context: Arc::clone(context),
            devices: DeviceService::new(context),
            actions: EntityActionService::new(context),
        }
    }

    /// The device of a session, if it is a gateway.
    ///
    /// # Errors
    /// The store failed.
    pub async fn gateway(&self, subject: EntityKey) -> StoreResult<Option<Device>> {
        let id = fieldline_model::DeviceId(subject.entity.id);
        let device = self.context.stores.devices.get(subject.tenant, id).await?;
        Ok(device.filter(Device::is_gateway))
    }

    /// The device of that name in the gateway's tenant; a new one of that type, assigned to the gateway's customer, where
    /// there is none.
    ///
    /// # Errors
    /// The name makes no sense, or the tenant has as many devices as it may have.
    pub async fn device(&self, gateway: &Device, name: &str, device_type: &str) -> ServiceResult<Device> {
        let tenant = gateway.tenant_id;
        if let Some(known) = self.context.stores.devices.by_name(tenant, name).await? {
            return self.update_last_gateway(gateway, known).await;
        }
        match self.create(gateway, name, device_type).await {
            Ok(device) => Ok(device),
            // Another gateway was quicker.
            Err(error) => match self.context.stores.devices.by_name(tenant, name).await? {
                Some(known) => Ok(known),
                None => Err(error),
            },
        }
    }

    async fn create(&self, gateway: &Device, name: &str, device_type: &str) -> ServiceResult<Device> {
        let tenant = gateway.tenant_id;
        let mut device = Device {
            tenant_id: tenant,
            customer_id: gateway.customer_id,
            name: name.to_owned(),
            device_type: device_type.to_owned(),
            ..Device::default()
        };
        note_gateway(&mut device, gateway);
        let device = self.save(tenant, device).await?;
        let (from, to) = (gateway.id, device.id);
        let relation = EntityRelation::new(from, to, CREATED);
        self.context.stores.relations.save(tenant, relation).await?;
        self.context
            .publish_change(EntityChange::new(tenant, from, ChangeKind::Relations(to.into())));
        let entity = AnyEntity::Device(device.clone());
        self.actions.push_created_by_platform(&entity).await;
        Ok(device)
    }

    /// A device that is there already keeps in mind which gateway it came through.
    async fn update_last_gateway(&self, gateway: &Device, mut device: Device) -> ServiceResult<Device> {
        if !note_gateway(&mut device, gateway) {
            return Ok(device);
        }
        self.save(gateway.tenant_id, device).await
    }

    async fn save(&self, tenant: TenantId, device: Device) -> ServiceResult<Device> {
        self.devices
            .save(tenant, device.into(), &NameConflict::Fail)
            .await
    }
}

/// Returns whether that is new.
fn note_gateway(device: &mut Device, gateway: &Device) -> bool {
    let id = Value::from(gateway.id.0.to_string());
    let info = device.additional_info.get_or_insert_with(|| Map::new().into());
    let Some(info) = info.as_object_mut() else {
        return false;
    };
    info.insert(LAST_GATEWAY.to_owned(), id.clone()) != Some(id)
}
