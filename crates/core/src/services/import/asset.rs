//! Assets.

use std::collections::HashMap;
use std::sync::Arc;

use fieldline_model::entity::{Asset, AssetProfile, ImportColumnType as Column};
use fieldline_model::{AssetId, CustomerId, EntityType, TenantId};

use super::{Draft, Drafted, Kind, Line, Stored, note, tenant_ttl};
use crate::access::Entity;
use crate::events::EntityChange;
use crate::ports::{AssetImportRow, StoreResult};
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

    async fn draft(&mut self, line: &Line, old: Option<Asset>) -> ServiceResult<AssetImportRow> {
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
        Ok(AssetImportRow { asset, create })
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

impl Kind for AssetImport {
    type Row = AssetImportRow;

    const TYPE: EntityType = EntityType::Asset;

    async fn drafts(&mut self, lines: Vec<Line>) -> ServiceResult<Vec<Drafted<AssetImportRow>>> {
        let names: Vec<&str> = lines.iter().filter_map(|line| line.field(Column::Name)).collect();
        let found = self
            .context
            .stores
            .imports
            .assets_named(self.tenant, &names)
            .await?;
        let mut known: HashMap<String, Asset> = found
            .into_iter()
            .map(|asset| (asset.name.clone(), asset))
            .collect();
        let mut drafts = Vec::with_capacity(lines.len());
        for line in lines {
            let old = line.field(Column::Name).and_then(|name| known.remove(name));
            drafts.push(match self.draft(&line, old).await {
                Ok(row) => Ok(Draft {
                    create: row.create,
                    line,
                    row,
                }),
                Err(error) => Err((line.number, error)),
            });
        }
        Ok(drafts)
    }

    async fn store(&self, rows: Vec<AssetImportRow>) -> ServiceResult<Vec<StoreResult<Entity>>> {
        let stored = self.context.stores.imports.assets(rows).await?;
        Ok(stored.into_iter().map(|one| one.map(Entity::Asset)).collect())
    }

    fn changes(&self, stored: &Stored) -> Vec<EntityChange> {
        match &stored.entity {
            Entity::Asset(asset) => vec![EntityChange::AssetSaved(
                self.tenant,
                asset.id.unwrap_or_default(),
            )],
            _ => Vec::new(),
        }
    }

    async fn ttl_seconds(&mut self, _: &Entity) -> ServiceResult<u32> {
        if let Some(seconds) = self.tenant_ttl {
            return Ok(seconds);
        }
        let seconds = tenant_ttl(&self.context, self.tenant).await?;
        self.tenant_ttl = Some(seconds);
        Ok(seconds)
    }
}
