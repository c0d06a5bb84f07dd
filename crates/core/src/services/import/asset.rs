//! Assets.

use std::collections::HashMap;
use std::sync::Arc;

use fieldline_model::TenantId;
use fieldline_model::entity::{Asset, AssetProfile};

use super::{Import, Line, Parts, Stored};
use crate::events::EntityChange;
use crate::ports::ImportRow;
use crate::services::{Context, ServiceResult, assets, profiles};

/// See the module.
pub(super) struct AssetImport {
    context: Arc<Context>,
    tenant: TenantId,
    profiles: HashMap<String, AssetProfile>,
}

impl AssetImport {
    pub(super) fn new(context: &Arc<Context>, tenant: TenantId) -> Self {
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

impl Import for AssetImport {
    type Entity = Asset;

    fn parts(asset: &mut Asset) -> Parts<'_> {
        Parts {
            label: &mut asset.label,
            info: &mut asset.additional_info,
            type_name: &mut asset.asset_type,
            version: &mut asset.version,
        }
    }

    async fn draft(&mut self, _: &Line, mut asset: Asset, create: bool) -> ServiceResult<ImportRow<Asset>> {
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
}
