//! Devices that go from one tenant to another.

use async_trait::async_trait;
use fieldline_core::ports::{DeviceTransfer, DeviceTransferStore, StoreResult};
use fieldline_model::entity::Device;
use fieldline_model::{DeviceId, TenantId};
use uuid::Uuid;

use super::database::EntityDatabase;
use super::query::{RowOwner, SqlQuery};
use super::record::{self, EntityRecord};

/// Moves of devices in a database.
pub(super) struct SqlDeviceTransfers(pub(super) EntityDatabase);

#[async_trait]
impl DeviceTransferStore for SqlDeviceTransfers {
    async fn transfer(&self, from: TenantId, device: Device, now_ms: i64) -> StoreResult<Device> {
        let id = record::bare(device.id);
        let mut changes = self.0.begin().await?;
        let given = record::transfer_within(&mut changes, &device, RowOwner::Tenant(from.0)).await?;
        let given = given.ok_or_else(|| record::not_found(Device::NAME))?;
        let steps = [
            SqlQuery::new("DELETE FROM rpc WHERE device_id = ").bind(id),
            SqlQuery::new("UPDATE ota_update SET tenant_id = ")
                .bind(device.tenant_id.0)
                .push(" WHERE device_id = ")
                .bind(id),
            // What has come back is at home where it was before.
            SqlQuery::new("DELETE FROM device_move WHERE device_id = ")
                .bind(id)
                .push(" AND from_tenant_id = ")
                .bind(device.tenant_id.0),
            SqlQuery::new("INSERT INTO device_move (device_id, from_tenant_id, ts) VALUES (")
                .bind(id)
                .push(", ")
                .bind(from.0)
                .push(", ")
                .bind(now_ms)
                .push(") ON CONFLICT (device_id, from_tenant_id) DO UPDATE SET ts = excluded.ts"),
        ];
        for step in steps {
            changes.execute(step).await?;
        }
        changes.commit().await?;
        Ok(given)
    }

    async fn list(&self, after: Option<&DeviceTransfer>, limit: u32) -> StoreResult<Vec<DeviceTransfer>> {
        let mut query = SqlQuery::new(
            "SELECT device_move.device_id, device_move.from_tenant_id, device.tenant_id, device_move.ts \
             FROM device_move LEFT JOIN device ON device.id = device_move.device_id WHERE TRUE",
        );
        if let Some(after) = after {
            query = query
                .push(" AND (device_move.ts, device_move.device_id, device_move.from_tenant_id) > (")
                .bind(after.at_ms)
                .push(", ")
                .bind(after.device.0)
                .push(", ")
                .bind(after.from.0)
                .push(")");
        }
        let query = query
            .push(" ORDER BY device_move.ts, device_move.device_id, device_move.from_tenant_id LIMIT ")
            .bind(i64::from(limit));
        let rows = self.0.read(query).await?;
        let moves = rows.iter().map(|row| {
            let mut columns = row.columns();
            let device = DeviceId(columns.next()?);
            let from = TenantId(columns.next()?);
            let to: Option<Uuid> = columns.next()?;
            Ok(DeviceTransfer {
                device,
                from,
                to: to.map(TenantId),
                at_ms: columns.next()?,
            })
        });
        moves.collect()
    }

    async fn forget(&self, done: &DeviceTransfer) -> StoreResult<()> {
        let query = SqlQuery::new("DELETE FROM device_move WHERE device_id = ")
            .bind(done.device.0)
            .push(" AND from_tenant_id = ")
            .bind(done.from.0)
            .push(" AND ts = ")
            .bind(done.at_ms);
        self.0.execute(query).await?;
        Ok(())
    }
}
