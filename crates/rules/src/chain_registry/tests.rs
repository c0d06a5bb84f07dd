//! Chains and fields that the process has died of.

use fieldline_core::in_flight::{CrashSuspects, InFlightWork};
use fieldline_core::ports::{InFlightNotes, PreviousRunNotes, SavedBy};
use fieldline_model::entity::{CalculatedField, CalculatedFieldType, RuleChainMetaData, RuleNode};
use fieldline_model::new_uuid;
use serde_json::json;

use super::*;
use crate::node_types::PREFIX;
use crate::nodes::tests::World;

/// In-flight notes of processes that have died twice while loading this, and nothing else.
#[derive(Default)]
struct Died {
    suspects: CrashSuspects,
    noted: Mutex<Vec<Option<InFlightWork>>>,
}

impl Died {
    fn of(loads: &[LoadInHand]) -> Arc<Self> {
        let mut suspects = CrashSuspects::default();
        for load in loads.iter().flat_map(|load| [load, load]) {
            suspects.count(&[InFlightWork::Load(*load)]);
        }
        Arc::new(Self {
            suspects,
            ..Self::default()
        })
    }
}

impl InFlightNotes for Died {
    fn previous_run(&self) -> PreviousRunNotes {
        PreviousRunNotes {
            in_flight: Vec::new(),
            suspects: self.suspects.clone(),
        }
    }

    fn save(&self, _: &CrashSuspects) -> StoreResult<()> {
        Ok(())
    }

    fn begin(&self) -> StoreResult<()> {
        Ok(())
    }

    fn note(&self, _: usize, hand: Option<InFlightWork>) -> StoreResult<()> {
        self.noted.lock().push(hand);
        Ok(())
    }
}

/// Saves a chain of one node; returns its id and version.
async fn saved(world: &World, name: &str) -> (RuleChainId, i64) {
    let stores = &world.services.stores.rule_chains;
    let chain = RuleChain {
        id: RuleChainId::new(),
        tenant_id: world.tenant,
        name: name.into(),
        ..RuleChain::default()
    };
    let id = stores.insert(chain).await.unwrap().id;
    (id, saved_anew(world, id).await)
}

/// Saves the nodes of a chain; returns its version.
async fn saved_anew(world: &World, chain: RuleChainId) -> i64 {
    let node = RuleNode {
        id: RuleNodeId(new_uuid()),
        node_type: format!("{PREFIX}filter.TbMsgTypeSwitchNode"),
        name: "switch".into(),
        configuration: json!({}),
        ..RuleNode::default()
    };
    let metadata = RuleChainMetaData {
        rule_chain_id: Some(chain),
        first_node_index: Some(0),
        nodes: vec![node],
        ..RuleChainMetaData::default()
    };
    let stores = &world.services.stores.rule_chains;
    let saved = stores
        .save_metadata(world.tenant, metadata, &SavedBy::default())
        .await
        .unwrap();
    saved.version.unwrap()
}

#[tokio::test]
async fn a_chain_that_the_process_died_of_is_inactive_until_it_is_saved_anew() {
    let world = World::new().await;
    let ((deadly, version), (other, _)) = (saved(&world, "deadly").await, saved(&world, "other").await);
    let load = LoadInHand {
        tenant: world.tenant,
        id: deadly.0,
        version,
    };
    let notes = Died::of(&[load]);
    let book = &world.common.chains;
    book.note_loads(&InFlightTracker::start(notes.clone()));

    let chains = book.tenant(world.tenant).await.unwrap();
    let node = |id| chains.chain(id).unwrap().nodes[0].node.as_ref().map(drop);
    let why = node(deadly).unwrap_err();
    assert!(why.contains("died 2 times"), "{why}");
    assert!(node(other).is_ok());
    let noted = notes.noted.lock().clone();
    assert!(
        noted
            .iter()
            .flatten()
            .all(|hand| *hand != InFlightWork::Load(load))
    );
    assert_ne!(
        noted.iter().flatten().count(),
        0,
        "what is compiled is noted: {noted:?}"
    );
    assert_eq!(noted.last(), Some(&None), "and then no more");

    saved_anew(&world, deadly).await;
    ChainRegistryListener(book.clone()).on_change(EntityChange::saved(world.tenant, deadly));
    let chains = book.tenant(world.tenant).await.unwrap();
    assert!(chains.chain(deadly).unwrap().nodes[0].node.is_ok());
}

#[tokio::test]
async fn a_field_that_the_process_died_of_is_left_out() {
    let world = World::new().await;
    let mut saved = Vec::new();
    for name in ["deadly", "other"] {
        let field = CalculatedField {
            entity_id: Some(world.profile.into()),
            field_type: CalculatedFieldType::Simple,
            name: name.into(),
            configuration: json!({
                "type": "SIMPLE",
                "arguments": {"a": {"refEntityKey": {"key": "a", "type": "TS_LATEST"}}},
                "expression": "a + 1",
                "output": {"type": "TIME_SERIES", "name": name},
            }),
            ..CalculatedField::default()
        };
        let fields = &world.services.rules.calculated_fields;
        saved.push(fields.save(world.tenant, field.into()).await.unwrap());
    }
    let load = LoadInHand {
        tenant: world.tenant,
        id: saved[0].id.0,
        version: saved[0].version.unwrap(),
    };
    let book = &world.common.chains;
    book.note_loads(&InFlightTracker::start(Died::of(&[load])));
    let fields = book.fields().tenant(world.tenant).await.unwrap();
    assert!(fields.get(saved[0].id).is_none());
    assert!(fields.get(saved[1].id).is_some());
}

#[tokio::test]
async fn alarm_rules_that_the_process_died_of_are_left_out_until_their_profile_is_saved_anew() {
    let world = World::new().await;
    let predicate = json!({"type": "NUMERIC", "operation": "GREATER", "value": {"defaultValue": 5}});
    let key = json!({"type": "TIME_SERIES", "key": "t"});
    let condition = json!({
        "condition": [{"key": key, "valueType": "NUMERIC", "predicate": predicate}],
        "spec": {"type": "SIMPLE"},
    });
    let alarm = json!({"id": "a", "alarmType": "Hot", "createRules": {"MAJOR": {"condition": condition}}});
    let profiles = &world.services.stores.device_profiles;
    let mut profile = profiles.get(world.tenant, world.profile).await.unwrap().unwrap();
    profile.profile_data = json!({"alarms": [alarm]});
    let saved = profiles.update(profile).await.unwrap();
    let load = LoadInHand {
        tenant: world.tenant,
        id: world.profile.0,
        version: saved.version.unwrap(),
    };
    world
        .common
        .chains
        .note_loads(&InFlightTracker::start(Died::of(&[load])));
    let device = world.device("d", json!({})).await;
    let subject = EntityKey {
        tenant: world.tenant,
        entity: device,
    };
    let originators = &world.common.services.originators;
    let has_rules = async || {
        let found = originators.get(subject).await.unwrap().unwrap();
        found.profile.as_ref().unwrap().alarm_rules().is_some()
    };
    assert!(!has_rules().await);
    profiles.update(saved).await.unwrap();
    originators.on_change(EntityChange::saved(world.tenant, world.profile));
    assert!(has_rules().await);
}
