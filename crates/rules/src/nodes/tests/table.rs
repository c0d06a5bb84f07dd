//! One table of all node types: what their default configuration lacks, which wrong values are refused by the name of their
//! field, and how messages leave them.

mod checker;
mod rows;
mod schemas;

use fieldline_core::ports::RuleNodeCatalog as _;
use fieldline_model::RuleNodeId;
use fieldline_model::entity::{
    ClusteringMode, ComponentDescriptor, ComponentType, NodeDefinition, RuleChain, RuleChainMetaData,
    RuleChainType, RuleNode,
};
use serde_json::{Value, json};

use self::rows::rows;
use super::World;
use crate::bounds::CompileAllowance;
use crate::catalog::NodeTypeCatalog;
use crate::chain::{self, CompiledChain};
use crate::node_types::{self, NodeType, PREFIX};

#[test]
fn every_type_has_a_row_and_the_outputs_it_says() {
    let rows = rows();
    for node_type in node_types::all() {
        let found: Vec<_> = rows.iter().filter(|row| row.class == node_type.class).collect();
        assert_eq!(found.len(), 1, "rows of {}", node_type.class);
        assert_eq!(node_type.relations, found[0].relations, "{}", node_type.class);
        assert!(
            !node_type.name.is_empty(),
            "{} has no name in the palette",
            node_type.class
        );
    }
    assert_eq!(rows.len(), node_types::all().count());
}

/// Which field of a configuration is named; `None` where a node is made of it.
fn blamed(world: &World, node_type: &NodeType, configuration: Value) -> Option<String> {
    let node = RuleNode {
        node_type: format!("{PREFIX}{}", node_type.class),
        configuration_version: node_type.version,
        configuration,
        ..RuleNode::default()
    };
    let error = chain::make(&world.services, world.tenant, &node, &CompileAllowance::default()).err()?;
    let (field, _) = error.split_once(": ").unwrap_or_else(|| panic!("{error}"));
    Some(field.to_owned())
}

/// A configuration with some fields replaced.
fn with(configuration: &Value, patch: &Value) -> Value {
    let mut configuration = configuration.clone();
    let fields = configuration.as_object_mut().unwrap();
    fields.extend(
        patch
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    configuration
}

/// A configuration of every type that a node can be made of in a world that has nothing yet.
pub(crate) fn valid_configurations() -> Vec<(&'static NodeType, Value)> {
    let rows = rows();
    let filled = rows.iter().map(|row| {
        let node_type = super::node_type(row.class);
        let default = (node_type.default_configuration)();
        let lacks = row.lacks.as_ref().filter(|(_, patch)| !patch.is_null());
        let filled = lacks.map_or(default.clone(), |(_, patch)| with(&default, patch));
        (node_type, filled)
    });
    filled.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_configurations_of_every_type_are_refused_by_the_fields_name() {
    let world = World::new().await;
    for row in rows() {
        let class = row.class;
        let node_type = super::node_type(class);
        let default = (node_type.default_configuration)();
        let fields: Vec<String> = default.as_object().unwrap().keys().cloned().collect();
        let is_named = |configuration: Value, field: &str| {
            let found = blamed(&world, node_type, configuration.clone());
            let fits = found
                .as_deref()
                .and_then(|found| found.strip_prefix(field))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
            assert!(
                fits,
                "{class}: {field} expected, {found:?} is blamed of {configuration}"
            );
        };
        let (lacking, filled) = match &row.lacks {
            Some((field, patch)) => (Some(*field), with(&default, patch)),
            None => (None, default.clone()),
        };
        match lacking {
            Some(field) => is_named(default.clone(), field),
            None => assert_eq!(blamed(&world, node_type, default.clone()), None, "{class}"),
        }
        is_named(json!("text"), "configuration");
        is_named(json!([]), "configuration");
        for (field, patch) in &row.wrong {
            is_named(with(&filled, patch), field);
        }
        assert!(
            !row.wrong.is_empty() || fields.is_empty(),
            "{class} has fields, but none with a wrong value"
        );
        if row.lacks.as_ref().is_some_and(|(_, patch)| patch.is_null()) {
            continue;
        }
        assert_eq!(blamed(&world, node_type, filled.clone()), None, "{class}");
        for field in &fields {
            // No field may be this.
            let odd = with(&filled, &json!({ field: {"odd": [{}]} }));
            if row.unread.contains(&field.as_str()) {
                assert_eq!(blamed(&world, node_type, odd), None, "{class}: {field} is read");
            } else {
                is_named(odd, field);
            }
            // Where something that is left out is needed, a field is named: this one, or one that is needed without it.
            let mut without = filled.clone();
            without.as_object_mut().unwrap().remove(field);
            if let Some(found) = blamed(&world, node_type, without) {
                let first = found.split(['.', '[']).next().unwrap().to_owned();
                assert!(
                    fields.contains(&first),
                    "{class}: {found} is blamed where {field} is missing"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn configurations_beyond_the_bounds_are_refused_and_what_is_stored_stays_inactive() {
    let world = World::new().await;
    let node = |template: String| RuleNode {
        id: RuleNodeId::new(),
        node_type: format!("{PREFIX}mail.TbMsgToEmailNode"),
        name: "Mail".to_owned(),
        configuration: json!({ "bodyTemplate": template }),
        ..RuleNode::default()
    };
    let chain = |nodes| RuleChainMetaData {
        nodes,
        ..RuleChainMetaData::default()
    };
    let compiled = |metadata: &RuleChainMetaData| {
        let chain = CompiledChain::compile(
            &world.services,
            world.tenant,
            &RuleChain::default(),
            metadata,
            None,
        );
        let errors = chain.nodes.iter().map(|node| node.node.as_ref().err().cloned());
        errors.collect::<Vec<_>>()
    };
    let many = chain(vec![node("${".repeat(400_000)), node("${deviceName}".to_owned())]);
    let refused = chain::check(&world.services, &many).unwrap_err();
    assert_eq!(
        refused,
        "Rule node 'Mail': bodyTemplate: has 800000 bytes, allowed are 262144"
    );
    let errors = compiled(&many);
    assert!(
        errors[0]
            .as_ref()
            .is_some_and(|error| refused.ends_with(&**error))
    );
    assert_eq!(errors[1], None, "the others are in force");
    let large = chain((0..20).map(|_| node("x".repeat(250_000))).collect());
    let refused = chain::check(&world.services, &large).unwrap_err();
    assert!(refused.contains("of the rule chain have"), "{refused}");
    let errors = compiled(&large);
    assert_eq!(errors.iter().filter(|error| error.is_none()).count(), 16);
}

#[test]
fn descriptors_say_what_editors_have_to_know() {
    let catalog = NodeTypeCatalog::new();
    let having = |fits: fn(&ComponentDescriptor) -> bool| -> Vec<&str> {
        let found = catalog.descriptors().iter().filter(|it| fits(it));
        let mut classes: Vec<_> = found.filter_map(|it| it.class.rsplit('.').next()).collect();
        classes.sort_unstable();
        classes
    };
    const fn node(it: &ComponentDescriptor) -> &NodeDefinition {
        &it.configuration_descriptor.node_definition
    }
    assert_eq!(
        having(|it| it.has_queue_name),
        ["TbCheckpointNode", "TbMsgDeduplicationNode", "TbMsgGeneratorNode"]
    );
    assert_eq!(
        having(|it| it.clustering_mode == ClusteringMode::Singleton),
        ["TbAzureIotHubNode"]
    );
    assert_eq!(
        having(|it| it.clustering_mode == ClusteringMode::UserPreference),
        ["TbMqttNode"]
    );
    assert_eq!(having(|it| !node(it).in_enabled), ["TbMsgGeneratorNode"]);
    assert_eq!(having(|it| !node(it).out_enabled), ["TbRuleChainOutputNode"]);
    assert_eq!(having(|it| node(it).rule_chain_node), ["TbRuleChainInputNode"]);
    assert_eq!(
        having(|it| node(it).custom_relations),
        [
            "TbAssetTypeSwitchNode",
            "TbDeviceProfileNode",
            "TbDeviceTypeSwitchNode",
            "TbJsSwitchNode",
            "TbRuleChainInputNode",
        ]
    );
    assert_eq!(
        having(|it| !it.rule_chain_types.contains(&RuleChainType::Edge)),
        ["TbMsgPushToEdgeNode", "TbSaveToCustomCassandraTableNode"]
    );
    assert_eq!(
        having(|it| !it.rule_chain_types.contains(&RuleChainType::Core)),
        ["TbMsgPushToCloudNode"]
    );
    let of_type = |component: ComponentType| {
        let all = catalog.descriptors().iter();
        all.filter(|it| it.component_type == component).count()
    };
    let counts = [
        (ComponentType::Filter, 12),
        (ComponentType::Enrichment, 11),
        (ComponentType::Transformation, 9),
        (ComponentType::Action, 27),
        (ComponentType::External, 14),
        (ComponentType::Flow, 4),
    ];
    for (component, count) in counts {
        assert_eq!(of_type(component), count, "{component:?}");
    }
}
