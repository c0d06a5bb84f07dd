//! What two programs that share a database do at the same moment. Each promise is tried often, since which of them comes first is
//! left to the database; [`two_writer_contract!`] makes a test of each.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use std::future::Future;

use fieldline_core::ports::{EntityStores, SavedBy, SignInOrigin, StoreErrorKind, StoreResult, TokenFamily};
use fieldline_model::entity::{AdminSettings, Authority, Device, OtaPackageInfo, RuleChainMetaData, User};
use fieldline_model::page::PageLink;
use fieldline_model::{AdminSettingsId, CustomerId, OtaPackageId, RuleChainId, TenantId, new_uuid};
use serde_json::json;

use super::entities::alarms::{draft, raise};
use super::entities::fixture::{
    EntityFixture, NOW, customer, device, device_profile, tenant, tenant_profile, token, user,
};
use super::entities::ota::uploaded;
use super::entities::rule_chains::{metadata, node, saved_chain};
use super::entities::set_aside::{record, room};
use super::entities::versions::dashboard;

/// How often each promise is tried.
const ROUNDS: usize = 20;

/// Makes a `#[tokio::test]` of every promise. `$open` is an async function that returns a fixture with the field `stores` and the
/// async methods `beside(&self)`, the stores of another program on the same database, and `close(self)`; further arguments are
/// attributes of the tests.
#[macro_export]
macro_rules! two_writer_contract {
    ($open:path $(, $attribute:meta)*) => {
        $crate::two_writer_contract! { @ $open, [$($attribute),*],
            a_name_goes_to_one_of_two_writers
            of_two_updates_of_a_version_one_succeeds
            one_profile_stays_the_default_and_one_chain_the_root
            a_profile_is_deleted_or_used
            nothing_stays_with_a_customer_or_tenant_that_is_deleted
            an_alarm_begins_and_ends_once
            settings_and_tokens_are_replaced_by_one_of_two_writers
            a_device_goes_to_one_of_two_tenants
            packages_of_two_writers_stay_within_what_their_tenant_may_have
            records_set_aside_by_two_writers_stay_within_their_room
        }
    };
    (@ $open:path, $attributes:tt, $($promise:ident)*) => {
        $($crate::two_writer_contract! { @one $open, $attributes, $promise })*
    };
    (@one $open:path, [$($attribute:meta),*], $promise:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        $(#[$attribute])*
        async fn $promise() {
            let fixture = $open().await;
            let beside = fixture.beside().await;
            $crate::contract::two_writers::$promise(&fixture.stores, &beside).await;
            drop(beside);
            fixture.close().await;
        }
    };
}

/// Does two things at once.
async fn both<A: Send + 'static, B: Send + 'static>(
    first: impl Future<Output = A> + Send + 'static,
    second: impl Future<Output = B> + Send + 'static,
) -> (A, B) {
    let (first, second) = (tokio::spawn(first), tokio::spawn(second));
    (first.await.unwrap(), second.await.unwrap())
}

/// Checks that one of two succeeded and the other was refused in this way; returns what the winner was given.
#[track_caller]
fn one_wins<T: std::fmt::Debug>(results: (StoreResult<T>, StoreResult<T>), refused: StoreErrorKind) -> T {
    match results {
        (Ok(won), Err(error)) | (Err(error), Ok(won)) => {
            assert_eq!(error.kind(), refused, "{error}");
            won
        }
        other => panic!("one of the two must succeed: {other:?}"),
    }
}

/// Calls a method of a store on both programs at once, with an argument of each.
macro_rules! on_both {
    ($first:ident, $second:ident, $store:ident.$method:ident($a:expr), ($b:expr)) => {{
        let (a, b) = ($first.$store.clone(), $second.$store.clone());
        let (given_a, given_b) = ($a, $b);
        both(async move { a.$method(given_a).await }, async move {
            b.$method(given_b).await
        })
        .await
    }};
}

/// Names, titles, addresses and tokens are taken by one of two who want them.
pub async fn a_name_goes_to_one_of_two_writers(first: &EntityStores, second: &EntityStores) {
    let world = EntityFixture::new(first, "T").await;
    let (owner, profile) = (world.tenant, &world.profile);
    let refused = StoreErrorKind::Conflict;
    for round in 0..ROUNDS {
        let name = format!("name {round}");
        one_wins(
            on_both!(first, second, tenants.insert(tenant(&name)), (tenant(&name))),
            refused,
        );
        let made = on_both!(
            first,
            second,
            tenant_profiles.insert(tenant_profile(&name)),
            (tenant_profile(&name))
        );
        one_wins(made, refused);
        let made = on_both!(
            first,
            second,
            customers.insert(customer(owner, &name)),
            (customer(owner, &name))
        );
        one_wins(made, refused);
        let (mine, yours) = (device_profile(owner, &name), device_profile(owner, &name));
        one_wins(
            on_both!(first, second, device_profiles.insert(mine), (yours)),
            refused,
        );
        let (mine, yours) = (device(owner, profile, &name), device(owner, profile, &name));
        one_wins(on_both!(first, second, devices.insert(mine), (yours)), refused);
        // In whatever letters.
        let (mine, yours) = (format!("u{round}@x.org"), format!("U{round}@X.org"));
        one_wins(
            on_both!(
                first,
                second,
                users.insert(user(owner, &mine)),
                (user(owner, &yours))
            ),
            refused,
        );
        let (one, other) = (
            world.device(&format!("one {round}")).await,
            world.device(&format!("other {round}")).await,
        );
        let (a, b) = (
            first.device_credentials.clone(),
            second.device_credentials.clone(),
        );
        let (mine, yours) = (token(&one, &name), token(&other, &name));
        let saved = both(async move { a.save(owner, mine).await }, async move {
            b.save(owner, yours).await
        });
        one_wins(saved.await, refused);
    }
}

/// Of two who save what both have read, one is told that it has changed; each version of a dashboard and of a chain is kept once.
pub async fn of_two_updates_of_a_version_one_succeeds(first: &EntityStores, second: &EntityStores) {
    let world = EntityFixture::new(first, "T").await;
    let owner = world.tenant;
    let by = SavedBy::default();
    let mut known = world.device("d").await;
    let mut board = first
        .dashboards
        .insert_by(dashboard(owner, "b"), &by)
        .await
        .unwrap();
    let of_nodes = saved_chain(&world, "c").await;
    let mut nodes = first
        .rule_chains
        .metadata(owner, of_nodes.id)
        .await
        .unwrap()
        .unwrap();
    let refused = StoreErrorKind::VersionConflict;
    for round in 0..ROUNDS {
        let labelled = |label: &str| Device {
            label: Some(format!("{label} {round}")),
            ..known.clone()
        };
        let saved = on_both!(
            first,
            second,
            devices.update(labelled("first")),
            (labelled("second"))
        );
        known = one_wins(saved, refused);

        let titled = |title: &str| {
            let mut board = board.clone();
            board.info.title = format!("{title} {round}");
            board
        };
        let (a, b) = (first.dashboards.clone(), second.dashboards.clone());
        let (mine, yours) = (titled("first"), titled("second"));
        let saved = both(
            async move { a.update_by(mine, &SavedBy::default()).await },
            async move { b.update_by(yours, &SavedBy::default()).await },
        );
        board = one_wins(saved.await, refused);

        let named = |name: &str| RuleChainMetaData {
            version: nodes.version,
            ..metadata(&of_nodes, &[node(&format!("{name} {round}"))], &[])
        };
        let (a, b) = (first.rule_chains.clone(), second.rule_chains.clone());
        let (mine, yours) = (named("first"), named("second"));
        let saved = both(
            async move { a.save_metadata(owner, mine, &SavedBy::default()).await },
            async move { b.save_metadata(owner, yours, &SavedBy::default()).await },
        );
        nodes = one_wins(saved.await, refused);
        assert_eq!(
            first
                .rule_chains
                .metadata(owner, of_nodes.id)
                .await
                .unwrap()
                .as_ref(),
            Some(&nodes)
        );
    }
    let kept = first
        .versions
        .list(owner, board.info.id.into(), &PageLink::first(100))
        .await
        .unwrap();
    let mut numbers: Vec<i64> = kept.data.iter().map(|version| version.version).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), kept.data.len(), "a version is kept once");
}

/// Whichever of two is named the default, or the root, at once: it is one of them.
pub async fn one_profile_stays_the_default_and_one_chain_the_root(
    first: &EntityStores,
    second: &EntityStores,
) {
    let world = EntityFixture::new(first, "T").await;
    let owner = world.tenant;
    let profiles = [world.profile.id, world.profile("second").await.id];
    let chains: [RuleChainId; 2] = [
        saved_chain(&world, "a").await.id,
        saved_chain(&world, "b").await.id,
    ];
    let mut of_tenants = Vec::new();
    for name in ["a", "b"] {
        of_tenants.push(
            first
                .tenant_profiles
                .insert(tenant_profile(name))
                .await
                .unwrap()
                .id,
        );
    }
    for _ in 0..ROUNDS {
        let (a, b) = (first.device_profiles.clone(), second.device_profiles.clone());
        let chosen = both(
            async move { a.set_default(owner, profiles[0]).await.unwrap() },
            async move { b.set_default(owner, profiles[1]).await.unwrap() },
        );
        assert_eq!(chosen.await, (true, true));
        let page = first
            .device_profiles
            .list(owner, &PageLink::first(10))
            .await
            .unwrap();
        assert_eq!(page.data.iter().filter(|profile| profile.is_default).count(), 1);

        let (a, b) = (first.rule_chains.clone(), second.rule_chains.clone());
        let chosen = both(
            async move { a.set_root(owner, chains[0]).await.unwrap() },
            async move { b.set_root(owner, chains[1]).await.unwrap() },
        );
        assert_eq!(chosen.await, (true, true));
        let page = first
            .rule_chains
            .list(owner, None, &PageLink::first(10))
            .await
            .unwrap();
        assert_eq!(page.data.iter().filter(|chain| chain.root).count(), 1);

        let (one, other) = (of_tenants[0], of_tenants[1]);
        let chosen = on_both!(first, second, tenant_profiles.set_default(one), (other));
        assert!(chosen.0.unwrap() && chosen.1.unwrap());
        let page = first.tenant_profiles.list(&PageLink::first(10)).await.unwrap();
        assert_eq!(page.data.iter().filter(|profile| profile.is_default).count(), 1);
    }
}

/// A profile that one deletes while another makes a device of it is gone without the device, or there with it; one that becomes the
/// default meanwhile is there.
pub async fn a_profile_is_deleted_or_used(first: &EntityStores, second: &EntityStores) {
    let world = EntityFixture::new(first, "T").await;
    let owner = world.tenant;
    for round in 0..ROUNDS {
        let profile = world.profile(&format!("p{round}")).await;
        let id = profile.id;
        let made = device(owner, &profile, &format!("d{round}"));
        let (a, b) = (first.device_profiles.clone(), second.devices.clone());
        let (deleted, made) = both(async move { a.delete(owner, id).await }, async move {
            b.insert(made).await
        })
        .await;
        let is_there = first.device_profiles.get(owner, id).await.unwrap().is_some();
        match (deleted, made) {
            (Ok(true), Err(_)) => assert!(!is_there),
            (Err(error), Ok(_)) => {
                assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error}");
                assert!(is_there);
            }
            other => panic!("deleted or used: {other:?}"),
        }

        let id = world.profile(&format!("q{round}")).await.id;
        let (a, b) = (first.device_profiles.clone(), second.device_profiles.clone());
        let (deleted, chosen) = both(async move { a.delete(owner, id).await }, async move {
            b.set_default(owner, id).await
        })
        .await;
        assert_ne!(
            matches!(deleted, Ok(true)),
            matches!(chosen, Ok(true)),
            "deleted or the default"
        );
    }
}

/// What is given to a customer, or made in a tenant, while another program deletes that is refused, or goes with it.
pub async fn nothing_stays_with_a_customer_or_tenant_that_is_deleted(
    first: &EntityStores,
    second: &EntityStores,
) {
    let world = EntityFixture::new(first, "T").await;
    let owner = world.tenant;
    for round in 0..ROUNDS {
        let id = world.customer(&format!("c{round}")).await.id;
        let held = world.device(&format!("d{round}")).await;
        let given = Device {
            customer_id: id,
            ..held.clone()
        };
        let (a, b) = (first.customers.clone(), second.devices.clone());
        let (deleted, _) = both(async move { a.delete(owner, id).await }, async move {
            b.update(given).await
        })
        .await;
        assert!(deleted.unwrap());
        let left = first.devices.get(owner, held.id).await.unwrap().unwrap();
        assert_eq!(left.customer_id, CustomerId::NULL);

        let customer = world.customer(&format!("e{round}")).await;
        let member = User {
            customer_id: customer.id,
            authority: Authority::CustomerUser,
            ..user(owner, &format!("m{round}@x.org"))
        };
        let member_id = member.id;
        let (a, b) = (first.customers.clone(), second.users.clone());
        let (deleted, _) = both(async move { a.delete(owner, customer.id).await }, async move {
            b.insert(member).await
        })
        .await;
        assert!(deleted.unwrap());
        assert_eq!(first.users.by_id(member_id).await.unwrap(), None);

        let doomed = EntityFixture::new(first, &format!("doomed {round}")).await;
        let made = doomed.new_device("late");
        let (gone, made_id) = (doomed.tenant, made.id);
        let (a, b) = (first.tenants.clone(), second.devices.clone());
        let (deleted, _) = both(async move { a.delete(gone).await }, async move {
            b.insert(made).await
        })
        .await;
        assert!(deleted.unwrap());
        assert_eq!(first.devices.get(gone, made_id).await.unwrap(), None);
    }
}

/// Two who raise an alarm make one, and of two who acknowledge or clear it one does.
pub async fn an_alarm_begins_and_ends_once(first: &EntityStores, second: &EntityStores) {
    let world = EntityFixture::new(first, "T").await;
    let owner = world.tenant;
    for round in 0..ROUNDS {
        let originator = world.device(&format!("d{round}")).await.id;
        let (mine, yours) = (draft(owner, originator, "Hot"), draft(owner, originator, "Hot"));
        let raised = on_both!(first, second, alarms.create_or_update_active(mine), (yours));
        let raised = [raised.0.unwrap().unwrap(), raised.1.unwrap().unwrap()];
        assert_eq!(raised.iter().filter(|raised| raised.created).count(), 1);
        assert_eq!(raised[0].alarm.id, raised[1].alarm.id);

        let id = raised[0].alarm.id;
        let (a, b) = (first.alarms.clone(), second.alarms.clone());
        let acknowledged = both(
            async move { a.acknowledge(owner, id, NOW + 1).await.unwrap().unwrap().modified },
            async move { b.acknowledge(owner, id, NOW + 2).await.unwrap().unwrap().modified },
        )
        .await;
        assert_ne!(acknowledged.0, acknowledged.1, "acknowledged once");
        let (a, b) = (first.alarms.clone(), second.alarms.clone());
        let cleared = both(
            async move { a.clear(owner, id, NOW + 3, None).await.unwrap().unwrap().cleared },
            async move { b.clear(owner, id, NOW + 4, None).await.unwrap().unwrap().cleared },
        )
        .await;
        assert_ne!(cleared.0, cleared.1, "cleared once");

        // Raised anew while it is cleared: it goes on, or there is another one.
        let old = raise(first, draft(owner, originator, "Hot")).await.id;
        let (a, b) = (first.alarms.clone(), second.alarms.clone());
        let again = draft(owner, originator, "Hot");
        let (cleared, raised) = both(
            async move { a.clear(owner, old, NOW + 5, None).await.unwrap().unwrap().cleared },
            async move { b.create_or_update_active(again).await.unwrap().unwrap() },
        )
        .await;
        assert!(cleared);
        let active = first.alarms.active_of(owner, originator.into()).await.unwrap();
        assert_eq!(active.len(), usize::from(raised.created));
    }
}

/// Settings of the installation, and refresh tokens, that both have read are replaced by one of them.
pub async fn settings_and_tokens_are_replaced_by_one_of_two_writers(
    first: &EntityStores,
    second: &EntityStores,
) {
    let world = EntityFixture::new(first, "T").await;
    let owner = world
        .user("u@x.org", Authority::TenantAdmin, CustomerId::NULL)
        .await;
    let settings = |value| AdminSettings {
        id: AdminSettingsId(new_uuid()),
        created_time: NOW,
        tenant_id: TenantId::NULL,
        key: "mail".into(),
        json_value: value,
    };
    let mut read = first
        .settings
        .save_admin(settings(json!({})))
        .await
        .unwrap()
        .json_value;
    let mut family = TokenFamily {
        session: new_uuid(),
        user: owner.id,
        opened_at: None,
        origin: SignInOrigin::default(),
        current: new_uuid(),
        replaced: Vec::new(),
        used_at: NOW,
        access_until: NOW + 90,
        until: NOW + 100,
        ended_at: None,
    };
    first.sign_ins.open(&family, 9).await.unwrap();
    for round in 0..ROUNDS {
        let (a, b) = (first.settings.clone(), second.settings.clone());
        let (mine, yours) = (
            settings(json!({ "first": round })),
            settings(json!({ "second": round })),
        );
        let (known, seen) = (read.clone(), read.clone());
        let (mine, yours) = both(
            async move { a.replace_admin(mine, &known).await.unwrap() },
            async move { b.replace_admin(yours, &seen).await.unwrap() },
        )
        .await;
        assert_ne!(mine.is_some(), yours.is_some());
        read = mine.or(yours).unwrap().json_value;
        assert_eq!(
            first.settings.admin("mail").await.unwrap().unwrap().json_value,
            read
        );

        let next = || TokenFamily {
            current: new_uuid(),
            ..family.clone()
        };
        let (mine, yours, current) = (next(), next(), family.current);
        let (a, b) = (first.sign_ins.clone(), second.sign_ins.clone());
        let (given, wanted) = (mine.clone(), yours.clone());
        let rotated = both(
            async move { a.rotate(&given, current).await.unwrap() },
            async move { b.rotate(&wanted, current).await.unwrap() },
        )
        .await;
        assert_ne!(rotated.0, rotated.1);
        family = if rotated.0 { mine } else { yours };
        assert_eq!(
            first.sign_ins.family(family.session).await.unwrap().as_ref(),
            Some(&family)
        );
    }
}

/// A device that two give away goes to one.
pub async fn a_device_goes_to_one_of_two_tenants(first: &EntityStores, second: &EntityStores) {
    let here = EntityFixture::new(first, "here").await;
    let there = [
        EntityFixture::new(first, "a").await,
        EntityFixture::new(first, "b").await,
    ];
    for round in 0..ROUNDS {
        let given = here.device(&format!("d{round}")).await;
        let to = |world: &EntityFixture<'_>| Device {
            tenant_id: world.tenant,
            device_profile_id: Some(world.profile.id),
            ..given.clone()
        };
        let (mine, yours, from) = (to(&there[0]), to(&there[1]), here.tenant);
        let (a, b) = (first.device_transfers.clone(), second.device_transfers.clone());
        let moved = both(async move { a.transfer(from, mine, NOW).await }, async move {
            b.transfer(from, yours, NOW).await
        });
        let moved = one_wins(moved.await, StoreErrorKind::NotFound);
        for world in [&here, &there[0], &there[1]] {
            let found = first.devices.get(world.tenant, given.id).await.unwrap();
            assert_eq!(found.is_some(), world.tenant == moved.tenant_id);
        }
    }
}

/// Data that two attach at once stays within what their tenant may have.
pub async fn packages_of_two_writers_stay_within_what_their_tenant_may_have(
    first: &EntityStores,
    second: &EntityStores,
) {
    for round in 0..ROUNDS {
        let world = EntityFixture::new(first, &format!("T{round}")).await;
        let (mine, my_upload) = uploaded(&world, "1").await;
        let (yours, your_upload) = uploaded(&world, "2").await;
        let (a, b) = (first.ota_packages.clone(), second.ota_packages.clone());
        let attached: (Option<OtaPackageInfo>, Option<OtaPackageInfo>) = both(
            async move { a.attach(mine, my_upload, Some(7)).await.unwrap() },
            async move { b.attach(yours, your_upload, Some(7)).await.unwrap() },
        )
        .await;
        assert_ne!(attached.0.is_some(), attached.1.is_some());
        let won: OtaPackageId = attached.0.or(attached.1).unwrap().id;
        assert!(
            first
                .ota_packages
                .get(world.tenant, won)
                .await
                .unwrap()
                .unwrap()
                .has_data
        );
    }
}

/// Two who set records aside at once, for which older ones of the other's tenant make room, don't wait for one another without end,
/// and the records stay within their room.
pub async fn records_set_aside_by_two_writers_stay_within_their_room(
    first: &EntityStores,
    second: &EntityStores,
) {
    let tenants = [
        EntityFixture::new(first, "a").await.tenant,
        EntityFixture::new(first, "b").await.tenant,
    ];
    let keep_all = |stores: &EntityStores, tenant| {
        let aside = stores.set_aside.clone();
        async move {
            for at in 0..2 * ROUNDS as i64 {
                aside.keep(&record(tenant, at), room(4, 5)).await.unwrap();
            }
        }
    };
    both(keep_all(first, tenants[0]), keep_all(second, tenants[1])).await;
    let left = first.set_aside.list(None, &PageLink::first(100)).await.unwrap();
    assert_eq!(left.total_elements, 5);
}
