//! Taking rule chains from one tenant to another.

use std::collections::HashMap;

use fieldline_core::ports::SavedBy;
use fieldline_model::entity::{RuleChain, RuleChainData, RuleChainImportResult, RuleChainMetaData};
use fieldline_model::page::{PageLink, SortOrder};
use fieldline_model::{EntityType, RuleChainId, RuleNodeId, TenantId};
use serde_json::Value;

use super::super::{ServiceError, ServiceResult, quota};
use super::{INPUT_NODE, RuleChainService, checks, metadata};

/// Chains that are imported at once.
const MOST_CHAINS: usize = 1_000;

impl RuleChainService {
    /// The first `limit` chains of a tenant with their nodes, the oldest first. Ids of chains are made up, so that they
    /// fit each other and nothing else; nodes have none.
    ///
    /// # Errors
    /// The store failed.
    pub async fn export(&self, tenant: TenantId, limit: u32) -> ServiceResult<RuleChainData> {
        let stores = &self.0.stores.rule_chains;
        let link = PageLink {
            sort_property: Some("createdTime".to_owned()),
            sort_order: Some(SortOrder::Asc),
            ..PageLink::first(limit)
        };
        let mut data = RuleChainData::default();
        for chain in stores.list(tenant, None, &link).await?.data {
            let id = chain.id;
            if let Some(metadata) = stores.metadata(tenant, id).await? {
                data.rule_chains.push(chain);
                data.metadata.push(metadata);
            }
        }
        renew_ids(&mut data, &HashMap::new());
        for chain in &mut data.rule_chains {
            chain.tenant_id = TenantId::NULL;
        }
        Ok(data)
    }

    /// Creates chains with their nodes. With `overwrite`, a chain replaces the oldest one of its type and name. Chains
    /// that cannot be imported say why; the others are imported.
    ///
    /// # Errors
    /// There are too many chains, or the store failed.
    pub async fn import(
        &self,
        tenant: TenantId,
        mut data: RuleChainData,
        overwrite: bool,
        by: &SavedBy,
    ) -> ServiceResult<Vec<RuleChainImportResult>> {
        if data.rule_chains.len().max(data.metadata.len()) > MOST_CHAINS {
            return Err(ServiceError::invalid(format!(
                "Can't import more than {MOST_CHAINS} rule chains at once!"
            )));
        }
        let mut replaced = HashMap::new();
        for chain in &data.rule_chains {
            let stores = &self.0.stores.rule_chains;
            let namesake = match overwrite {
                true => stores.by_name(tenant, chain.chain_type, &chain.name).await?,
                false => None,
            };
            if let (false, Some(namesake)) = (chain.id.is_null(), namesake) {
                replaced.insert(chain.id, namesake);
            }
        }
        let kept = replaced.iter().map(|(id, chain)| (*id, chain.id)).collect();
        renew_ids(&mut data, &kept);
        let mut replaced: HashMap<RuleChainId, RuleChain> =
            replaced.into_values().map(|chain| (chain.id, chain)).collect();

        // All chains first, so that the nodes of one find the others.
        let mut results = Vec::with_capacity(data.rule_chains.len());
        for chain in data.rule_chains {
            let former = replaced.remove(&chain.id);
            results.push(self.import_chain(tenant, chain, former).await?);
        }
        for metadata in data.metadata {
            for result in results
                .iter_mut()
                .filter(|result| result.rule_chain_id == metadata.rule_chain_id && result.error.is_none())
            {
                if let Err(error) = self.import_metadata(tenant, metadata.clone(), by).await {
                    result.error = Some(error.message().to_owned());
                }
            }
        }
        Ok(results)
    }

    async fn import_chain(
        &self,
        tenant: TenantId,
        mut chain: RuleChain,
        former: Option<RuleChain>,
    ) -> ServiceResult<RuleChainImportResult> {
        let updated = former.is_some();
        chain.tenant_id = tenant;
        chain.version = None;
        chain.first_rule_node_id = former.as_ref().and_then(|former| former.first_rule_node_id);
        chain.root = former.as_ref().is_some_and(|former| former.root);
        chain.created_time = former.map_or_else(|| self.0.now(), |former| former.created_time);
        let mut result = RuleChainImportResult {
            rule_chain_id: Some(chain.id),
            rule_chain_name: chain.name.clone(),
            updated,
            error: None,
        };
        let mut checked = checks::check_chain(&chain);
        if checked.is_ok() && !updated {
            checked = quota::check(&self.0, tenant, EntityType::RuleChain).await;
        }
        if checked.is_ok() {
            let stores = &self.0.stores.rule_chains;
            let saved = match updated {
                true => stores.update(chain),
                false => stores.insert(chain),
            };
            checked = match saved.await {
                Err(error) if error.kind().is_retryable() => return Err(error.into()),
                Err(error) => Err(error.into()),
                Ok(saved) => {
                    self.tell_saved(tenant, saved.id);
                    Ok(())
                }
            };
        }
        result.error = checked.err().map(|error| error.message().to_owned());
        Ok(result)
    }

    async fn import_metadata(
        &self,
        tenant: TenantId,
        mut metadata: RuleChainMetaData,
        by: &SavedBy,
    ) -> ServiceResult<()> {
        metadata.version = None;
        for node in &mut metadata.nodes {
            point_to_tenant(&mut node.configuration, tenant);
        }
        let id = metadata.rule_chain_id.unwrap_or_default();
        let old = self.metadata(tenant, id).await?;
        let metadata = metadata::prepare(&self.0, tenant, metadata, &old).await?;
        let stores = &self.0.stores.rule_chains;
        stores.save_metadata(tenant, metadata, by).await?;
        for gone in &old.nodes {
            self.forget_node(tenant, gone).await?;
        }
        self.tell_saved(tenant, id);
        Ok(())
    }
}

/// Gives every chain a new id, or the one it has in `kept`, everywhere the old one is used; nodes lose theirs.
fn renew_ids(data: &mut RuleChainData, kept: &HashMap<RuleChainId, RuleChainId>) {
    let mut renewed = HashMap::new();
    for chain in &mut data.rule_chains {
        let old = chain.id;
        chain.id = match old.is_null() {
            false => *renewed
                .entry(old)
                .or_insert_with(|| kept.get(&old).copied().unwrap_or_else(RuleChainId::new)),
            true => RuleChainId::new(),
        };
    }
    for metadata in &mut data.metadata {
        metadata.rule_chain_id = metadata.rule_chain_id.and_then(|old| renewed.get(&old).copied());
        for connection in metadata.rule_chain_connections.iter_mut().flatten() {
            if let Some(id) = renewed.get(&connection.target_rule_chain_id) {
                connection.target_rule_chain_id = *id;
            }
        }
        for node in &mut metadata.nodes {
            node.id = RuleNodeId::NULL;
            node.rule_chain_id = None;
            if node.node_type == INPUT_NODE
                && let Some(Value::String(target)) = node.configuration.get_mut("ruleChainId")
                && let Some(id) = target.parse().ok().and_then(|old: RuleChainId| renewed.get(&old))
            {
                *target = id.to_string();
            }
        }
    }
}

/// References to the tenant that a configuration comes from become references to the tenant it is for. The depth is
/// bounded by what the JSON reader takes.
fn point_to_tenant(configuration: &mut Value, tenant: TenantId) {
    match configuration {
        Value::Object(fields) => {
            if fields.get("entityType").and_then(Value::as_str) == Some(EntityType::Tenant.name()) {
                if let Some(id) = fields.get_mut("id") {
                    *id = tenant.to_string().into();
                }
            } else {
                for value in fields.values_mut() {
                    point_to_tenant(value, tenant);
                }
            }
        }
        Value::Array(values) => {
            for value in values {
                point_to_tenant(value, tenant);
            }
        }
        _ => {}
    }
}
