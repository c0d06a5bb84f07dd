//! Assets.

use std::collections::HashMap;
use std::sync::Arc;

use fieldline_core::events::EntityChange;
use fieldline_core::ports::ImportRow;
use fieldline_model::TenantId;
use fieldline_model::entity::{Asset, AssetProfile};

use super::{EntityImport, ImportFieldsMut, ImportLine, ImportedEntity};
use crate::services::{ServiceContext, ServiceResult, assets, profiles};

/// See the module.
pub(super) struct AssetImport {
    context: Arc<ServiceContext>,
    tenant: TenantId,
    profiles: HashMap<String, AssetProfile>,
}

impl AssetImport {
    pub(super) fn new(context: &Arc<ServiceContext>, tenant: TenantId) -> Self {
        Self {
            context: Arc::clone(context),
            tenant,
            profiles: HashMap::new(),
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

impl EntityImport for AssetImport {
    type ImportEntity = Asset;

    fn parts(asset: &mut Asset) -> ImportFieldsMut<'_> {
        ImportFieldsMut {
            label: &mut asset.label,
            info: &mut asset.additional_info,
            type_name: &mut asset.asset_type,
            version: &mut asset.version,
        }
    }

    async fn draft(
        &mut self,
        _: &ImportLine,
        mut asset: Asset,
        create: bool,
    ) -> ServiceResult<ImportRow<Asset>> {
        assets::check_fields(&asset)?;
        let profile = self.profile(&asset.asset_type).await?;
        asset.asset_profile_id = Some(profile.id);
        asset.asset_type = profile.name;
        Ok(ImportRow {
            entity: asset,
            create,
            along: (),
        })
    }

    fn changes(&self, stored: &ImportedEntity<Asset>) -> Vec<EntityChange> {
        let id = stored.entity.id;
        vec![EntityChange::saved(self.tenant, id)]
    }
}
