//! How far searches go, and how much one query names.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{
    AlarmQuery, AlarmScope, EntityStores, MAX_ALARM_ENTITIES, MAX_RELATION_LEVELS, StoreErrorKind,
};
use fieldline_model::entity::{
    EntityRelation, RelationTypeGroup, RelationsQuery, RelationsSearchParameters, SearchDirection,
};
use fieldline_model::page::PageLink;
use fieldline_model::{AssetId, DeviceId, EntityId};

use super::fixture::{EntityFixture, expect_error};

/// A search goes as many levels as it asks for, and where it asks for all, as far as any may.
pub async fn searches_along_relations_end_at_their_bound(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let line: Vec<EntityId> = (0..MAX_RELATION_LEVELS + 3)
        .map(|_| AssetId::new().into())
        .collect();
    for pair in line.windows(2) {
        let relation = EntityRelation::new(pair[0], pair[1], "Contains");
        stores.relations.save(world.tenant, relation).await.unwrap();
    }
    let found = async |max_level: i32, last_only: bool| {
        let query = RelationsQuery {
            parameters: RelationsSearchParameters {
                root_id: line[0].id,
                root_type: line[0].entity_type,
                direction: SearchDirection::From,
                relation_type_group: RelationTypeGroup::Common,
                max_level,
                fetch_last_level_only: last_only,
            },
            filters: Vec::new(),
        };
        let met = stores.relations.search(world.tenant, &query).await.unwrap();
        (met.len(), met.last().map(|relation| relation.to))
    };
    let most = MAX_RELATION_LEVELS;
    assert_eq!(found(3, false).await, (3, Some(line[3])));
    for beyond in [0, -1, most as i32 + 1, i32::MAX] {
        assert_eq!(found(beyond, false).await, (most, Some(line[most])));
        assert_eq!(found(beyond, true).await, (1, Some(line[most])));
    }
}

/// A query of alarms names entities and types up to a limit that both databases can take, and no more.
pub async fn queries_of_alarms_name_so_many_entities_and_no_more(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let entities = |count: usize| -> Vec<EntityId> { (0..count).map(|_| DeviceId::new().into()).collect() };
    let types = |count: usize| -> Vec<String> { (0..count).map(|index| index.to_string()).collect() };
    let query = |scope, types| AlarmQuery {
        scope,
        types,
        ..AlarmQuery::default()
    };
    let (most, page) = (MAX_ALARM_ENTITIES, PageLink::first(1));
    let alarms = &stores.alarms;
    for full in [
        query(AlarmScope::AffectingAny(entities(most)), types(most)),
        query(AlarmScope::Originators(entities(most)), types(most)),
    ] {
        let found = alarms.list(world.tenant, &full, &page).await.unwrap();
        assert_eq!(found.total_elements, 0);
        assert_eq!(alarms.count(world.tenant, &full).await.unwrap(), 0);
        assert_eq!(alarms.highest_severity(world.tenant, &full).await.unwrap(), None);
    }
    for beyond in [
        query(AlarmScope::AffectingAny(entities(most + 1)), types(0)),
        query(AlarmScope::Originators(entities(most + 1)), types(0)),
        query(AlarmScope::All, types(most + 1)),
    ] {
        let invalid = StoreErrorKind::Invalid;
        expect_error(alarms.list(world.tenant, &beyond, &page).await, invalid);
        expect_error(alarms.count(world.tenant, &beyond).await, invalid);
        expect_error(alarms.highest_severity(world.tenant, &beyond).await, invalid);
    }
}
