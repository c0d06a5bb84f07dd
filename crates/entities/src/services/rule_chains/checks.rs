//! What a chain and its connections must look like, whatever its nodes are.

use fieldline_model::entity::{RuleChain, RuleChainMetaData};

use super::super::{ServiceError, ServiceResult, validate};

/// Nodes a chain.
const MOST_NODES: usize = 2_000;
/// Connections a chain.
const MOST_CONNECTIONS: usize = 20_000;

/// The chain itself.
pub(super) fn check_chain(chain: &RuleChain) -> ServiceResult<()> {
    validate::required("Rule chain name", &chain.name)?;
    validate::lengths(&[("name", Some(&chain.name))])?;
    validate::json_object("additionalInfo", chain.additional_info.as_ref())
}

/// Its nodes and connections; the configurations of nodes are the business of the catalogue.
pub(super) fn check_metadata(metadata: &RuleChainMetaData) -> ServiceResult<()> {
    let (nodes, connections) = (metadata.nodes.len(), metadata.connections());
    for (what, count, most) in [
        ("nodes", nodes, MOST_NODES),
        ("connections", connections.len(), MOST_CONNECTIONS),
    ] {
        if count > most {
            return Err(ServiceError::invalid(format!(
                "A rule chain can't have more than {most} {what}!"
            )));
        }
    }
    for node in &metadata.nodes {
        let at_node = |error: ServiceError| {
            let message = format!(
                "'{}' node configuration is invalid: {}",
                node.name,
                error.message()
            );
            error.with_message(message)
        };
        validate::required("Rule node type", &node.node_type).map_err(at_node)?;
        validate::lengths(&[
            ("type", Some(&node.node_type)),
            ("name", Some(&node.name)),
            ("queueName", node.queue_name.as_deref()),
        ])
        .map_err(at_node)?;
        validate::json_object("additionalInfo", node.additional_info.as_ref()).map_err(at_node)?;
    }
    check_index("firstNodeIndex", metadata.first_node_index, nodes)?;
    for connection in connections {
        check_index("fromIndex of a connection", Some(connection.from_index), nodes)?;
        check_index("toIndex of a connection", Some(connection.to_index), nodes)?;
        validate::required("Type of a connection", &connection.label)?;
        validate::lengths(&[("type of a connection", Some(&connection.label))])?;
        if connection.from_index == connection.to_index {
            return Err(ServiceError::invalid("Can't create the relation to yourself."));
        }
    }
    if has_circle(metadata) {
        return Err(ServiceError::invalid(
            "Can't create circling relations in rule chain.",
        ));
    }
    Ok(())
}

fn check_index(what: &str, index: Option<u32>, nodes: usize) -> ServiceResult<()> {
    match index {
        Some(index) if index as usize >= nodes => Err(ServiceError::invalid(format!(
            "{what} is {index}, but the rule chain has {nodes} nodes!"
        ))),
        _ => Ok(()),
    }
}

/// Takes nodes away that nothing leads to, with their connections, until none is left or all are on circles.
fn has_circle(metadata: &RuleChainMetaData) -> bool {
    let count = metadata.nodes.len();
    let mut targets = vec![Vec::new(); count];
    let mut arriving = vec![0_usize; count];
    for connection in metadata.connections() {
        let (from, to) = (connection.from_index as usize, connection.to_index as usize);
        if let (Some(targets), Some(arriving)) = (targets.get_mut(from), arriving.get_mut(to)) {
            targets.push(to);
            *arriving += 1;
        }
    }
    let mut free: Vec<usize> = (0..count)
        .filter(|node| arriving.get(*node) == Some(&0))
        .collect();
    let mut taken = 0;
    while let Some(node) = free.pop() {
        taken += 1;
        for to in targets.get(node).into_iter().flatten() {
            if let Some(arriving) = arriving.get_mut(*to) {
                *arriving -= 1;
                if *arriving == 0 {
                    free.push(*to);
                }
            }
        }
    }
    taken < count
}

#[cfg(test)]
mod tests {
    use fieldline_model::entity::{NodeConnection, RuleNode};

    use super::*;

    fn chain(nodes: usize, connections: &[(u32, u32)]) -> RuleChainMetaData {
        let node = RuleNode {
            node_type: "a".to_owned(),
            ..RuleNode::default()
        };
        let connection = |(from_index, to_index): &(u32, u32)| NodeConnection {
            from_index: *from_index,
            to_index: *to_index,
            label: "Success".to_owned(),
        };
        RuleChainMetaData {
            nodes: vec![node; nodes],
            connections: Some(connections.iter().map(connection).collect()),
            ..RuleChainMetaData::default()
        }
    }

    #[test]
    fn a_chain_has_so_many_nodes_and_connections_and_no_more() {
        let pairs = |count: usize| -> Vec<(u32, u32)> {
            let nodes = 0..MOST_NODES as u32;
            let all = nodes
                .clone()
                .flat_map(|from| (from + 1..nodes.end).map(move |to| (from, to)));
            all.take(count).collect()
        };
        let full = chain(MOST_NODES, &pairs(MOST_CONNECTIONS));
        assert!(check_metadata(&full).is_ok());
        for (metadata, complaint) in [
            (
                chain(MOST_NODES + 1, &[]),
                "A rule chain can't have more than 2000 nodes!",
            ),
            (
                chain(MOST_NODES, &pairs(MOST_CONNECTIONS + 1)),
                "A rule chain can't have more than 20000 connections!",
            ),
        ] {
            let refused = check_metadata(&metadata).unwrap_err();
            assert_eq!(refused.message(), complaint);
        }
    }

    #[test]
    fn connections_lead_on_between_nodes_of_the_chain() {
        assert!(check_metadata(&chain(4, &[(0, 1), (0, 2), (1, 3), (2, 3)])).is_ok());
        for (connections, complaint) in [
            (&[(0, 0)][..], "Can't create the relation to yourself."),
            (
                &[(0, 1), (1, 2), (2, 1)],
                "Can't create circling relations in rule chain.",
            ),
            (
                &[(0, 3)],
                "toIndex of a connection is 3, but the rule chain has 3 nodes!",
            ),
        ] {
            let refused = check_metadata(&chain(3, connections)).unwrap_err();
            assert_eq!(refused.message(), complaint);
        }
        // Paths through a wide chain are many; looking for circles must not follow each.
        let wide: Vec<(u32, u32)> = (0..60)
            .flat_map(|step| {
                [
                    (step * 2, step * 2 + 2),
                    (step * 2, step * 2 + 3),
                    (step * 2 + 1, step * 2 + 2),
                    (step * 2 + 1, step * 2 + 3),
                ]
            })
            .collect();
        assert!(check_metadata(&chain(122, &wide)).is_ok());
    }
}
