//! Rule chains; their nodes and connections are in `rule_nodes`.

use async_trait::async_trait;
use fieldline_core::ports::{RuleChainStore, SavedBy, StoreError, StoreErrorKind, StoreResult};
use fieldline_model::entity::{RuleChain, RuleChainMetaData, RuleChainType, RuleNode};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{EntityType, RuleChainId, RuleNodeId, TenantId};

use super::database::EntityDatabase;
use super::entities::{SqlEntities, TenantRecord};
use super::housekeeper;
use super::list::{self, ListDefinition};
use super::query::{ColumnReader, RowOwner, SqlArg, SqlQuery, unreadable};
use super::record::{self, EntityRecord, EntityRowKey};
use super::rule_nodes;
use super::statement_error::StatementError;

impl EntityRecord for RuleChain {
    const NAME: &'static str = "Rule chain";
    const TABLE: &'static str = "rule_chain";
    const COLUMNS: &'static [&'static str] =
        &["tenant_id", "name", "type", "is_root", "first_node_id", "search"];
    const SELECT: &'static str =
        "id, created_time, version, doc, tenant_id, name, type, is_root, first_node_id";
    const IN_COLUMNS: &'static [&'static str] = &["tenantId", "name", "type", "root", "firstRuleNodeId"];
    const ELECTED: Option<&'static str> = Some("is_root");
    const BROKEN_REFERENCE: &'static str = "Rule chain is referencing to non-existent tenant!";

    fn key(&self) -> EntityRowKey {
        EntityRowKey::of_tenant(self, self.tenant_id, self.version)
    }

    fn values(&self) -> StoreResult<Vec<SqlArg>> {
        Ok(vec![
            self.tenant_id.0.into(),
            record::bounded("name", &self.name)?,
            self.chain_type.name().into(),
            self.root.into(),
            self.first_rule_node_id.map(|id| id.0).into(),
            record::search_text(&[Some(&self.name)]),
        ])
    }

    fn fill(&mut self, version: i64, columns: &mut ColumnReader<'_>) -> StoreResult<()> {
        self.version = Some(version);
        self.tenant_id = columns.id()?;
        self.name = columns.next()?;
        let chain_type: String = columns.next()?;
        self.chain_type =
            RuleChainType::from_name(&chain_type).ok_or_else(|| unreadable("unknown type of rule chain"))?;
        self.root = columns.next()?;
        self.first_rule_node_id = columns.optional_id()?;
        Ok(())
    }

    fn conflict_message(&self, constraint: &str) -> Option<String> {
        (constraint == "rule_chain_tenant_id_type_key").then(|| {
            match self.chain_type {
                RuleChainType::Core => "Another root rule chain is present in scope of current tenant!",
                RuleChainType::Edge => {
                    "Another edge template root rule chain is present in scope of current tenant!"
                }
            }
            .into()
        })
    }
}

const LISTING: ListDefinition = ListDefinition {
    table: RuleChain::TABLE,
    select: RuleChain::SELECT,
    joins: "",
    sorts: &[
        ("createdTime", "created_time"),
        ("name", "search"),
        ("root", "is_root"),
    ],
};

impl TenantRecord for RuleChain {
    const IN_USE: &'static str = "The rule chain referenced by the profiles cannot be deleted!";

    async fn delete(database: &EntityDatabase, tenant: TenantId, id: RuleChainId) -> StoreResult<bool> {
        let owner = RowOwner::Tenant(tenant.0);
        let mut changes = database.begin().await?;
        let nodes = housekeeper::note_from(tenant, EntityType::RuleNode)
            .push("rule_node WHERE chain_id = ")
            .bind(id.0)
            .owned_by(owner);
        changes.execute(housekeeper::noted(nodes)).await?;
        match changes.execute(record::deletion::<RuleChain>(owner, id.0)).await {
            Ok(0) => {
                // Its connection may be the last one.
                drop(changes);
                return record::not_deleted::<RuleChain>(database, owner, id.0, Self::IN_USE).await;
            }
            Ok(_) => {}
            Err(StatementError::BrokenReference) => {
                return Err(StoreError::new(StoreErrorKind::Conflict, Self::IN_USE));
            }
            Err(failure) => return Err(failure.into_error()),
        }
        changes
            .execute(housekeeper::note(record::subject(tenant, id)))
            .await?;
        changes.commit().await?;
        Ok(true)
    }
}

#[async_trait]
impl RuleChainStore for SqlEntities<RuleChain> {
    async fn by_name(
        &self,
        tenant: TenantId,
        chain_type: RuleChainType,
        name: &str,
    ) -> StoreResult<Option<RuleChain>> {
        let query = record::select::<RuleChain>()
            .push("name = ")
            .bind(name)
            .push(" AND type = ")
            .bind(chain_type.name())
            .owned_by(RowOwner::Tenant(tenant.0))
            .push(" ORDER BY created_time, id LIMIT 1");
        record::first(&self.database.read(query).await?)
    }

    async fn root(&self, tenant: TenantId, chain_type: RuleChainType) -> StoreResult<Option<RuleChain>> {
        let query = record::select::<RuleChain>()
            .push("is_root AND type = ")
            .bind(chain_type.name())
            .owned_by(RowOwner::Tenant(tenant.0));
        record::first(&self.database.read(query).await?)
    }

    async fn set_root(&self, tenant: TenantId, id: RuleChainId) -> StoreResult<bool> {
        let owner = RowOwner::Tenant(tenant.0);
        let mut changes = self.database.begin().await?;
        record::take_turn(&mut changes, owner).await?;
        let unset = SqlQuery::new(
            "UPDATE rule_chain SET is_root = FALSE, version = version + 1 \
             WHERE is_root AND type = (SELECT type FROM rule_chain WHERE id = ",
        )
        .bind(id.0)
        .push(") AND id <> ")
        .bind(id.0)
        .owned_by(owner);
        changes.execute(unset).await?;
        let set = SqlQuery::new(
            "UPDATE rule_chain SET is_root = TRUE, version = version + CASE WHEN is_root THEN 0 ELSE 1 END \
             WHERE id = ",
        )
        .bind(id.0)
        .owned_by(owner);
        if changes.execute(set).await? == 0 {
            return Ok(false);
        }
        changes.commit().await?;
        Ok(true)
    }

    async fn list(
        &self,
        tenant: TenantId,
        chain_type: Option<RuleChainType>,
        page: &PageLink,
    ) -> StoreResult<PageData<RuleChain>> {
        let condition = |query: SqlQuery| {
            let query = query.owned_by(RowOwner::Tenant(tenant.0));
            match chain_type {
                Some(chain_type) => query.push(" AND type = ").bind(chain_type.name()),
                None => query,
            }
        };
        list::page(
            &self.database,
            &LISTING,
            page,
            condition,
            list::own_text,
            RuleChain::read,
        )
        .await
    }

    async fn metadata(&self, tenant: TenantId, id: RuleChainId) -> StoreResult<Option<RuleChainMetaData>> {
        rule_nodes::metadata(&self.database, tenant, id).await
    }

    async fn save_metadata(
        &self,
        tenant: TenantId,
        metadata: RuleChainMetaData,
        by: &SavedBy,
    ) -> StoreResult<RuleChainMetaData> {
        rule_nodes::save_metadata(&self.database, tenant, metadata, by).await
    }

    async fn node(&self, tenant: TenantId, id: RuleNodeId) -> StoreResult<Option<RuleNode>> {
        rule_nodes::node(&self.database, tenant, id).await
    }

    async fn nodes_of_type(&self, tenant: TenantId, class: &str) -> StoreResult<Vec<RuleNode>> {
        rule_nodes::of_type(&self.database, tenant, class).await
    }
}
