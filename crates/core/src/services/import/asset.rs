//! Assets.

use std::collections::HashMap;
use std::sync::Arc;

use fieldline_model::entity::{Asset, AssetProfile, ImportColumnType as Column};
use fieldline_model::{AssetId, CustomerId, TenantId};

use super::{Import, Line, Stored, note};
use crate::events::EntityChange;
use crate::ports::ImportRow;
use crate::services::{Context, ServiceResult, assets, profiles};

/// See the module.
pub(super) struct AssetImport {
    context: Arc<Context>,
    tenant: TenantId,
    profiles: HashMap<String, AssetProfile>,
    tenant_ttl: Option<u32>,
}

impl AssetImport {
    pub(super) fn new(context: &Arc<Context>, tenant: TenantId) -> Self {
        Self {
            context: Arc::clone(context),
            tenant,
            profiles: HashMap::new(),
            tenant_ttl: None,
        }
    }

    async fn profile(&mut self, name: &str) -> ServiceResult<AssetProfile> {
        if let Some(known) = self.profiles.get(name) {
            return Ok(known.clone());
        }
        let profile: AssetProfile = profiles::of_entity(&self.context, self.tenant, None, name).await?;
        self.profiles.insert(name.to_owned(), profile.clone());
        Ok(profile)
    }
}

impl Import for AssetImport {
    type Entity = Asset;

    async fn draft(&mut self, line: &Line, old: Option<Asset>) -> ServiceResult<ImportRow<Asset>> {
        let create = old.is_none();
        let mut asset = old.unwrap_or_else(|| Asset {
            id: Some(AssetId::new()),
            created_time: self.context.now(),
            tenant_id: self.tenant,
            customer_id: CustomerId::NULL,
            ..Asset::default()
        });
        // Whoever has changed it meanwhile is overwritten.
        asset.version = None;
        if let Some(name) = line.field(Column::Name) {
            asset.name = name.to_owned();
        }
        if let Some(label) = line.field(Column::Label) {
            asset.label = Some(label.to_owned());
        }
        if let Some(text) = line.field(Column::Description) {
            note(&mut asset.additional_info, "description", text.into());
        }
        if let Some(name) = line.field(Column::Type) {
            asset.asset_type = name.to_owned();
        }
        assets::check_fields(&asset)?;
        let profile = self.profile(&asset.asset_type).await?;
        asset.asset_profile_id = profile.id;
        asset.asset_type = profile.name;
        Ok(ImportRow {
            entity: asset,
            create,
            along: (),
        })
    }

    fn changes(&self, stored: &Stored<Asset>) -> Vec<EntityChange> {
        let id = stored.entity.id.unwrap_or_default();
        vec![EntityChange::AssetSaved(self.tenant, id)]
    }

    async fn ttl_seconds(&mut self, _: &Asset) -> ServiceResult<u32> {
        if let Some(seconds) = self.tenant_ttl {
            return Ok(seconds);
        }
        let seconds = crate::services::tenant_ttl(&self.context.stores, self.tenant).await?;
        self.tenant_ttl = Some(seconds);
        Ok(seconds)
    }
}
