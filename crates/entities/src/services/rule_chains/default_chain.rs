//! The rule chain that every tenant starts with.

use fieldline_core::events::EntityChange;
use fieldline_core::ports::SavedBy;
use fieldline_model::entity::{NodeConnection, RuleChain, RuleChainMetaData, RuleChainType, RuleNode};
use fieldline_model::{RuleChainId, RuleNodeId, TenantId};
use serde_json::{Value, json};

use super::super::{ServiceContext, ServiceResult};

const NAME: &str = "Root Rule Chain";
const CLASSES: &str = "org.thingsboard.rule.engine.";
/// Position of the node that messages enter.
const SWITCH: u32 = 2;

/// Makes sure that the tenant has a root chain.
pub(in crate::services) async fn ensure_root(
    context: &ServiceContext,
    tenant: TenantId,
) -> ServiceResult<()> {
    let stores = &context.stores.rule_chains;
    if stores.root(tenant, RuleChainType::Core).await?.is_some() {
        return Ok(());
    }
    // It becomes the root chain only when its nodes are there: a root chain without them would swallow every message. One
    // that an earlier attempt has left without them is used.
    let left = stores.by_name(tenant, RuleChainType::Core, NAME).await?;
    let chain = match left.filter(|chain| chain.first_rule_node_id.is_none()) {
        Some(chain) => chain,
        None => {
            let chain = RuleChain {
                id: RuleChainId::new(),
                created_time: context.now(),
                tenant_id: tenant,
                name: NAME.to_owned(),
                ..RuleChain::default()
            };
            stores.insert(chain).await?
        }
    };
    let id = chain.id;
    fill(context, tenant, id, &context.saved_by_platform()).await?;
    stores.set_root(tenant, id).await?;
    context.publish_change(EntityChange::saved(tenant, id));
    Ok(())
}

/// Gives a chain the nodes of the default root chain.
pub(super) async fn fill(
    context: &ServiceContext,
    tenant: TenantId,
    chain: RuleChainId,
    by: &SavedBy,
) -> ServiceResult<()> {
    let metadata = RuleChainMetaData {
        rule_chain_id: Some(chain),
        first_node_index: Some(SWITCH),
        nodes: nodes(context.now()),
        connections: Some(connections()),
        ..RuleChainMetaData::default()
    };
    let stores = &context.stores.rule_chains;
    stores.save_metadata(tenant, metadata, by).await?;
    Ok(())
}

fn nodes(now: i64) -> Vec<RuleNode> {
    let node = |class: &str, version: i32, name: &str, (x, y): (i32, i32), configuration: Value| RuleNode {
        id: RuleNodeId::new(),
        created_time: now,
        node_type: format!("{CLASSES}{class}"),
        name: name.to_owned(),
        configuration_version: version,
        configuration,
        additional_info: Some(json!({ "layoutX": x, "layoutY": y })),
        ..RuleNode::default()
    };
    let every_message = json!({ "type": "ON_EVERY_MESSAGE" });
    let script = r"return '\nIncoming message:\n' + JSON.stringify(msg) + '\nIncoming metadata:\n' + JSON.stringify(metadata);";
    let log = json!({ "scriptLang": "TBEL", "jsScript": script, "tbelScript": script });
    vec![
        node(
            "telemetry.TbMsgTimeseriesNode",
            1,
            "Save Timeseries",
            (824, 156),
            json!({ "defaultTTL": 0, "useServerTs": false, "processingSettings": every_message }),
        ),
        node(
            "telemetry.TbMsgAttributesNode",
            3,
            "Save Client Attributes",
            (825, 52),
            json!({
                "processingSettings": every_message,
                "scope": "CLIENT_SCOPE",
                "notifyDevice": false,
                "sendAttributesUpdatedNotification": false,
                "updateAttributesOnlyOnValueChange": true,
            }),
        ),
        node(
            "filter.TbMsgTypeSwitchNode",
            0,
            "Message Type Switch",
            (347, 149),
            json!({ "version": 0 }),
        ),
        node(
            "action.TbLogNode",
            0,
            "Log RPC from Device",
            (825, 266),
            log.clone(),
        ),
        node("action.TbLogNode", 0, "Log Other", (825, 379), log),
        node(
            "rpc.TbSendRPCRequestNode",
            0,
            "RPC Call Request",
            (825, 468),
            json!({ "timeoutInSeconds": 60 }),
        ),
    ]
}

fn connections() -> Vec<NodeConnection> {
    [
        (0, "Post telemetry"),
        (1, "Post attributes"),
        (3, "RPC Request from Device"),
        (4, "Other"),
        (5, "RPC Request to Device"),
    ]
    .into_iter()
    .map(|(to_index, label)| NodeConnection {
        from_index: SWITCH,
        to_index,
        label: label.to_owned(),
    })
    .collect()
}
