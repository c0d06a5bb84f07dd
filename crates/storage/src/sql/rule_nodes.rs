//! The nodes of rule chains and the connections between them: read and replaced a chain at a time.

use std::collections::HashMap;

use fieldline_core::ports::{SavedBy, StoreError, StoreErrorKind, StoreResult};
use fieldline_model::entity::{NodeConnection, RuleChain, RuleChainMetaData, RuleChainVersion, RuleNode};
use fieldline_model::{RuleChainId, RuleNodeId, TenantId};
use serde_json::Value;
use uuid::Uuid;

use super::database::{EntityDatabase, SqlTransaction};
use super::query::{ColumnReader, RowOwner, SqlQuery, SqlRow, unreadable};
use super::record::{self, EntityRecord as _};
use super::versions::{self, Snapshot};

/// Connections in one statement.
const CONNECTIONS_A_STATEMENT: usize = 500;
/// How often a chain that is saved again and again meanwhile is read.
const MOST_READS: u32 = 10;

const SELECT: &str = "SELECT id, created_time, chain_id, doc FROM rule_node WHERE tenant_id = ";

/// Version, first node and notes of a chain.
struct ChainHead {
    version: i64,
    first_node: Option<RuleNodeId>,
    notes: Option<Vec<Value>>,
}

async fn head(
    database: &EntityDatabase,
    tenant: TenantId,
    id: RuleChainId,
) -> StoreResult<Option<ChainHead>> {
    let query = SqlQuery::new("SELECT version, first_node_id, notes FROM rule_chain WHERE id = ")
        .bind(id.0)
        .owned_by(RowOwner::Tenant(tenant.0));
    let rows = database.read(query).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let mut columns = row.columns();
    let version = columns.next()?;
    let first_node: Option<Uuid> = columns.next()?;
    let notes: Option<String> = columns.next()?;
    Ok(Some(ChainHead {
        version,
        first_node: first_node.map(RuleNodeId),
        notes: notes
            .map(|notes| serde_json::from_str(&notes).map_err(unreadable))
            .transpose()?,
    }))
}

/// See `RuleChainStore::metadata`.
pub(super) async fn metadata(
    database: &EntityDatabase,
    tenant: TenantId,
    id: RuleChainId,
) -> StoreResult<Option<RuleChainMetaData>> {
    // What is read in three statements is of one save only if the version is the same before and after.
    for _ in 0..MOST_READS {
        let Some(before) = head(database, tenant, id).await? else {
            return Ok(None);
        };
        let nodes = nodes(database, tenant, id).await?;
        let connections = connections(database, id, &nodes).await?;
        let Some(after) = head(database, tenant, id).await? else {
            return Ok(None);
        };
        if before.version != after.version {
            continue;
        }
        let first = nodes
            .iter()
            .position(|node| Some(node.id) == after.first_node)
            .and_then(|index| u32::try_from(index).ok());
        return Ok(Some(RuleChainMetaData {
            rule_chain_id: Some(id),
            version: Some(after.version),
            first_node_index: first,
            nodes,
            connections: (!connections.is_empty()).then_some(connections),
            rule_chain_connections: None,
            notes: after.notes,
        }));
    }
    Err(StoreError::new(
        StoreErrorKind::Unavailable,
        "The rule chain is being changed all the time",
    ))
}

fn read(columns: &mut ColumnReader<'_>) -> StoreResult<RuleNode> {
    let id = RuleNodeId(columns.next()?);
    let created_time = columns.next()?;
    let chain = RuleChainId(columns.next()?);
    let doc: String = columns.next()?;
    Ok(RuleNode {
        id,
        created_time,
        rule_chain_id: Some(chain),
        ..serde_json::from_str(&doc).map_err(unreadable)?
    })
}

fn every(rows: &[SqlRow]) -> StoreResult<Vec<RuleNode>> {
    rows.iter().map(|row| read(&mut row.columns())).collect()
}

async fn nodes(
    database: &EntityDatabase,
    tenant: TenantId,
    chain: RuleChainId,
) -> StoreResult<Vec<RuleNode>> {
    let query = SqlQuery::new(SELECT)
        .bind(tenant.0)
        .push(" AND chain_id = ")
        .bind(chain.0)
        .push(" ORDER BY place");
    every(&database.read(query).await?)
}

/// See `RuleChainStore::node`.
pub(super) async fn node(
    database: &EntityDatabase,
    tenant: TenantId,
    id: RuleNodeId,
) -> StoreResult<Option<RuleNode>> {
    let query = SqlQuery::new(SELECT).bind(tenant.0).push(" AND id = ").bind(id.0);
    let rows = database.read(query).await?;
    rows.first().map(|row| read(&mut row.columns())).transpose()
}

/// See `RuleChainStore::nodes_of_type`.
pub(super) async fn of_type(
    database: &EntityDatabase,
    tenant: TenantId,
    class: &str,
) -> StoreResult<Vec<RuleNode>> {
    let query = SqlQuery::new(SELECT)
        .bind(tenant.0)
        .push(" AND type = ")
        .bind(class)
        .push(" ORDER BY chain_id, place");
    every(&database.read(query).await?)
}

/// The connections of a chain, by the positions of its nodes.
async fn connections(
    database: &EntityDatabase,
    chain: RuleChainId,
    nodes: &[RuleNode],
) -> StoreResult<Vec<NodeConnection>> {
    let places: HashMap<Uuid, u32> = nodes
        .iter()
        .zip(0..)
        .map(|(node, place)| (node.id.0, place))
        .collect();
    let query = SqlQuery::new(
        "SELECT from_id, to_id, label FROM rule_connection \
         WHERE from_id IN (SELECT id FROM rule_node WHERE chain_id = ",
    )
    .bind(chain.0)
    .push(")");
    let mut found = Vec::new();
    for row in &database.read(query).await? {
        let mut columns = row.columns();
        let (from, to): (Uuid, Uuid) = (columns.next()?, columns.next()?);
        let label = columns.next()?;
        if let (Some(from), Some(to)) = (places.get(&from), places.get(&to)) {
            found.push(NodeConnection {
                from_index: *from,
                to_index: *to,
                label,
            });
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// See `RuleChainStore::save_metadata`.
pub(super) async fn save_metadata(
    database: &EntityDatabase,
    tenant: TenantId,
    metadata: RuleChainMetaData,
    by: &SavedBy,
) -> StoreResult<RuleChainMetaData> {
    let chain = metadata
        .rule_chain_id
        .ok_or_else(|| record::invalid("Rule chain id should be specified!"))?;
    let id_at = |index: u32| {
        let node = metadata.nodes.get(index as usize);
        node.map(|node| node.id)
            .ok_or_else(|| record::invalid(format!("There is no rule node at index {index}!")))
    };
    let first = metadata.first_node_index.map(id_at).transpose()?;
    let connections = metadata
        .connections()
        .iter()
        .map(|connection| {
            let label = connection.label.as_str();
            Ok((id_at(connection.from_index)?, id_at(connection.to_index)?, label))
        })
        .collect::<StoreResult<Vec<_>>>()?;

    let former = match versions::any(database, tenant, chain).await? {
        true => None,
        // It was saved before there were versions, or never.
        false => former(database, tenant, chain).await?,
    };
    let mut changes = database.begin().await?;
    if let Some(former) = former {
        let at_ms = former.rule_chain.created_time;
        snapshot(former)?
            .keep(&mut changes, &SavedBy { at_ms, user: None })
            .await?;
    }
    if !change_head(&mut changes, tenant, chain, &metadata, first).await? {
        drop(changes);
        return Err(match head(database, tenant, chain).await? {
            Some(_) => record::version_conflict(RuleChain::NAME),
            None => record::not_found(RuleChain::NAME),
        });
    }
    replace_nodes(&mut changes, tenant, chain, &metadata.nodes).await?;
    for some in connections.chunks(CONNECTIONS_A_STATEMENT) {
        changes.execute(insertion_of(some)).await?;
    }
    let query = record::select::<RuleChain>()
        .push("id = ")
        .bind(chain.0)
        .owned_by(RowOwner::Tenant(tenant.0));
    if let Some(rule_chain) = record::first(&changes.rows(query).await?)? {
        let saved = RuleChainVersion { rule_chain, metadata };
        snapshot(saved)?.keep(&mut changes, by).await?;
    }
    changes.commit().await?;
    self::metadata(database, tenant, chain)
        .await?
        .ok_or_else(|| record::not_found(RuleChain::NAME))
}

/// The chain as it is, where it has nodes.
async fn former(
    database: &EntityDatabase,
    tenant: TenantId,
    id: RuleChainId,
) -> StoreResult<Option<RuleChainVersion>> {
    let Some(metadata) = metadata(database, tenant, id).await? else {
        return Ok(None);
    };
    let rule_chain = record::get::<RuleChain>(database, RowOwner::of(tenant), id.0).await?;
    Ok(rule_chain
        .filter(|_| !metadata.nodes.is_empty())
        .map(|rule_chain| RuleChainVersion { rule_chain, metadata }))
}

/// What is kept of a saved chain: all but its version, with connections in the order in which they are read.
fn snapshot(saved: RuleChainVersion) -> StoreResult<Snapshot> {
    let RuleChainVersion {
        mut rule_chain,
        mut metadata,
    } = saved;
    let version = rule_chain.version.take();
    metadata.version = None;
    metadata.rule_chain_id = Some(rule_chain.id);
    for node in &mut metadata.nodes {
        node.rule_chain_id = Some(rule_chain.id);
    }
    if let Some(connections) = &mut metadata.connections {
        connections.sort_unstable();
        connections.dedup();
    }
    metadata.connections = metadata.connections.filter(|all| !all.is_empty());
    metadata.notes = metadata.notes.filter(|all| !all.is_empty());
    let (tenant, id, name) = (rule_chain.tenant_id, rule_chain.id, rule_chain.name.clone());
    let kept = RuleChainVersion { rule_chain, metadata };
    Snapshot::new(tenant, id, version, &name, &kept)
}

/// Counts the version up; returns whether the chain exists in the version that is expected.
async fn change_head(
    changes: &mut SqlTransaction,
    tenant: TenantId,
    chain: RuleChainId,
    metadata: &RuleChainMetaData,
    first: Option<RuleNodeId>,
) -> StoreResult<bool> {
    let notes = metadata
        .notes
        .as_ref()
        .filter(|notes| !notes.is_empty())
        .map(serde_json::to_string)
        .transpose()
        .map_err(|cause| record::invalid("The notes cannot be stored").caused_by(cause))?;
    let mut query = SqlQuery::new("UPDATE rule_chain SET version = version + 1, first_node_id = ")
        .bind(first.map(|id| id.0))
        .push(", notes = ")
        .bind(notes)
        .push(" WHERE id = ")
        .bind(chain.0)
        .owned_by(RowOwner::Tenant(tenant.0));
    if let Some(version) = metadata.version {
        query = query.push(" AND version = ").bind(version);
    }
    Ok(changes.execute(query).await? > 0)
}

/// Nodes that keep their ids keep their rows; the others go, and all connections with them.
async fn replace_nodes(
    changes: &mut SqlTransaction,
    tenant: TenantId,
    chain: RuleChainId,
    nodes: &[RuleNode],
) -> StoreResult<()> {
    let unconnected = SqlQuery::new(
        "DELETE FROM rule_connection WHERE from_id IN (SELECT id FROM rule_node WHERE chain_id = ",
    )
    .bind(chain.0)
    .push(")");
    changes.execute(unconnected).await?;
    let unplaced = SqlQuery::new("UPDATE rule_node SET place = -1 WHERE tenant_id = ")
        .bind(tenant.0)
        .push(" AND chain_id = ")
        .bind(chain.0);
    changes.execute(unplaced).await?;
    for (node, place) in nodes.iter().zip(0_i64..) {
        let query = SqlQuery::new(
            "INSERT INTO rule_node (id, created_time, tenant_id, chain_id, place, type, doc) VALUES (",
        )
        .bind(node.id.0)
        .push(", ")
        .bind(node.created_time)
        .push(", ")
        .bind(tenant.0)
        .push(", ")
        .bind(chain.0)
        .push(", ")
        .bind(place)
        .push(", ")
        .bind(node.node_type.as_str())
        .push(", ")
        .bind(document(node)?)
        .push(
            ") ON CONFLICT (id) DO UPDATE SET place = excluded.place, type = excluded.type, doc = excluded.doc \
             WHERE rule_node.tenant_id = excluded.tenant_id AND rule_node.chain_id = excluded.chain_id \
             AND rule_node.place = -1",
        );
        if changes.execute(query).await? == 0 {
            return Err(StoreError::new(
                StoreErrorKind::Conflict,
                format!(
                    "Rule node with id [{}] is part of another rule chain, or there twice!",
                    node.id
                ),
            ));
        }
    }
    let gone = SqlQuery::new("DELETE FROM rule_node WHERE place = -1 AND tenant_id = ")
        .bind(tenant.0)
        .push(" AND chain_id = ")
        .bind(chain.0);
    changes.execute(gone).await?;
    Ok(())
}

fn insertion_of(connections: &[(RuleNodeId, RuleNodeId, &str)]) -> SqlQuery {
    let mut query = SqlQuery::new("INSERT INTO rule_connection (from_id, to_id, label) VALUES ");
    for (index, (from, to, label)) in connections.iter().enumerate() {
        query = query
            .push(if index == 0 { "(" } else { ", (" })
            .bind(from.0)
            .push(", ")
            .bind(to.0)
            .push(", ")
            .bind(*label)
            .push(")");
    }
    query.push(" ON CONFLICT DO NOTHING")
}

/// The node as JSON without what columns hold.
fn document(node: &RuleNode) -> StoreResult<String> {
    let unwritable = |cause| record::invalid("Rule node cannot be stored").caused_by(cause);
    let mut value = serde_json::to_value(node).map_err(unwritable)?;
    if let Value::Object(fields) = &mut value {
        fields.retain(|key, value| {
            !value.is_null() && !["id", "createdTime", "ruleChainId"].contains(&key.as_str())
        });
    }
    serde_json::to_string(&value).map_err(unwritable)
}
