//! Sign-ins of people.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{EntityStores, SignInOrigin, StoreErrorKind, TokenFamily};
use fieldline_model::entity::Authority;
use fieldline_model::{CustomerId, UserId, new_uuid};

use super::fixture::{EntityFixture, NOW, expect_error};

/// A family that was used at a time and counts for so long.
fn family(user: UserId, used_at: i64, until: i64) -> TokenFamily {
    TokenFamily {
        session: new_uuid(),
        user,
        opened_at: Some(NOW - 1),
        origin: SignInOrigin {
            address: Some("2001:db8::7".to_owned()),
            browser: Some("Firefox 128.0".to_owned()),
            os: Some("Linux".to_owned()),
        },
        current: new_uuid(),
        replaced: vec![(new_uuid(), NOW - 1)],
        used_at,
        access_until: until - 10,
        until,
        ended_at: None,
    }
}

async fn user(world: &EntityFixture<'_>, name: &str) -> UserId {
    let authority = Authority::TenantAdmin;
    let user = world.user(name, authority, CustomerId::NULL).await;
    user.id
}

/// A token is replaced once, by whoever comes first, until the session has ended.
pub async fn a_refresh_token_is_replaced_once(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let first = family(user(&world, "u@x.org").await, NOW, NOW + 100);
    let sign_ins = &stores.sign_ins;
    assert_eq!(sign_ins.family(first.session).await.unwrap(), None);
    sign_ins.open(&first, 9).await.unwrap();
    assert_eq!(sign_ins.family(first.session).await.unwrap(), Some(first.clone()));
    let next = TokenFamily {
        current: new_uuid(),
        replaced: vec![(first.current, NOW + 1), (new_uuid(), NOW + 2)],
        used_at: NOW + 1,
        until: NOW + 200,
        access_until: NOW + 150,
        ..first.clone()
    };
    assert!(sign_ins.rotate(&next, first.current).await.unwrap());
    assert_eq!(sign_ins.family(first.session).await.unwrap(), Some(next.clone()));
    assert!(!sign_ins.rotate(&next, first.current).await.unwrap(), "twice");

    assert!(sign_ins.end(first.session, NOW + 3, NOW + 300).await.unwrap());
    assert!(
        !sign_ins.end(first.session, NOW + 4, NOW).await.unwrap(),
        "it has ended"
    );
    assert!(
        !sign_ins.end(new_uuid(), NOW + 4, NOW).await.unwrap(),
        "there is none"
    );
    assert!(
        !sign_ins.rotate(&first, next.current).await.unwrap(),
        "it has ended"
    );
    let ended = sign_ins.family(first.session).await.unwrap().unwrap();
    assert_eq!(ended.ended_at, Some(NOW + 3));
    assert_eq!((ended.access_until, ended.until), (NOW + 300, NOW + 300));
    sign_ins.open(&first, 9).await.unwrap();
    let stays = TokenFamily {
        ended_at: ended.ended_at,
        ..first.clone()
    };
    assert_eq!(sign_ins.family(first.session).await.unwrap(), Some(stays));
    expect_error(
        sign_ins.open(&family(UserId::new(), NOW, NOW), 9).await,
        StoreErrorKind::NotFound,
    );
}

/// Sessions that have ended are told of as long as one of their tokens may come; what has expired is forgotten, and of each
/// user all but the latest.
pub async fn sessions_that_have_ended_are_remembered_while_they_matter(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let (ann, bob) = (user(&world, "ann@x.org").await, user(&world, "bob@x.org").await);
    let sign_ins = &stores.sign_ins;
    let families = [1, 2, 3].map(|at| family(ann, NOW + at, NOW + 100 * at));
    for family in &families {
        sign_ins.open(family, 9).await.unwrap();
    }
    for (family, at) in families.iter().zip([30, 20, 10]) {
        sign_ins
            .end(family.session, NOW + at, family.access_until)
            .await
            .unwrap();
    }
    let ended = |now, limit| async move { sign_ins.ended(now, limit).await.unwrap() };
    let all =
        [(0, 30), (1, 20), (2, 10)].map(|(index, at): (usize, i64)| (families[index].session, NOW + at));
    assert_eq!(ended(NOW, 9).await, all);
    assert_eq!(ended(NOW, 2).await, all[..2], "those that ended last");
    assert_eq!(
        ended(NOW + 90, 9).await,
        all[1..],
        "its access tokens have expired"
    );

    // However often somebody signs in, as many sessions stay, and those that have ended while it matters.
    let others = [11, 12, 13].map(|at| family(ann, NOW + at, NOW + 300));
    let of_bob = family(bob, NOW, NOW + 300);
    sign_ins.open(&of_bob, 2).await.unwrap();
    for family in &others {
        sign_ins.open(family, 2).await.unwrap();
    }
    assert_eq!(sign_ins.family(others[0].session).await.unwrap(), None);
    assert_eq!(ended(NOW, 9).await, all);
    for family in [&others[1], &others[2], &of_bob] {
        assert!(sign_ins.family(family.session).await.unwrap().is_some());
    }
    assert_eq!(sign_ins.purge(NOW + 200, 0).await.unwrap(), 2);
    assert_eq!(ended(NOW, 9).await, all[2..]);
    stores.users.delete(world.tenant, bob).await.unwrap();
    assert_eq!(sign_ins.family(of_bob.session).await.unwrap(), None);
}

/// Users have their own open sessions, last used first, and end one or all others of them.
pub async fn sessions_of_a_user_are_listed_and_ended(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let (ann, bob) = (user(&world, "ann@x.org").await, user(&world, "bob@x.org").await);
    let sign_ins = &stores.sign_ins;
    let mut families = [1, 2, 3, 4].map(|at| family(ann, NOW + at, NOW + 100 * at));
    families[1].opened_at = None;
    families[1].origin = SignInOrigin::default();
    let of_bob = family(bob, NOW, NOW + 300);
    for family in families.iter().chain([&of_bob]) {
        sign_ins.open(family, 9).await.unwrap();
    }
    let [first, second, third, fourth] = &families;
    let listed = |now, limit| async move { sign_ins.of_user(ann, now, limit).await.unwrap() };
    let own = |all: &[&TokenFamily]| all.iter().map(|family| (*family).clone()).collect::<Vec<_>>();
    assert_eq!(listed(NOW, 9).await, own(&[fourth, third, second, first]));
    assert_eq!(listed(NOW, 2).await, own(&[fourth, third]), "used last");
    assert_eq!(
        listed(NOW + 200, 9).await,
        own(&[fourth, third]),
        "the others have expired"
    );
    assert!(sign_ins.of_user(UserId::new(), NOW, 9).await.unwrap().is_empty());

    assert!(sign_ins.end(third.session, NOW + 5, NOW + 500).await.unwrap());
    assert_eq!(listed(NOW, 9).await, own(&[fourth, second, first]));
    let end_others = |user, kept| async move {
        let mut ended = sign_ins.end_others(user, kept, NOW + 6, NOW + 600).await.unwrap();
        ended.sort();
        ended
    };
    let mut others = vec![first.session, fourth.session];
    others.sort();
    assert_eq!(end_others(ann, second.session).await, others);
    assert!(
        end_others(ann, second.session).await.is_empty(),
        "they have ended"
    );
    assert_eq!(listed(NOW, 9).await, own(&[second]));
    let ended = sign_ins.family(fourth.session).await.unwrap().unwrap();
    assert_eq!(
        (ended.ended_at, ended.access_until, ended.until),
        (Some(NOW + 6), NOW + 600, NOW + 600)
    );
    let ended = sign_ins.family(first.session).await.unwrap().unwrap();
    assert_eq!((ended.access_until, ended.until), (NOW + 600, NOW + 600));
    assert!(!sign_ins.rotate(fourth, fourth.current).await.unwrap());
    let ended = sign_ins.family(third.session).await.unwrap().unwrap();
    assert_eq!(ended.ended_at, Some(NOW + 5), "it had ended before");
    assert_eq!(sign_ins.ended(NOW, 9).await.unwrap().len(), 3);
    assert_eq!(sign_ins.of_user(bob, NOW, 9).await.unwrap(), own(&[&of_bob]));
    // Access tokens that count longer than those of now are not forgotten sooner.
    for (access, until) in [(700, 800), (800, 700)] {
        let mut long = family(bob, NOW, NOW + until);
        long.access_until = NOW + access;
        sign_ins.open(&long, 9).await.unwrap();
        assert!(sign_ins.end(long.session, NOW + 6, NOW + 600).await.unwrap());
        let ended = sign_ins.family(long.session).await.unwrap().unwrap();
        assert_eq!((ended.access_until, ended.until), (NOW + access, NOW + 800));
    }
    // A session that is none of the user's keeps nothing.
    assert_eq!(end_others(ann, of_bob.session).await, [second.session]);
    assert_eq!(sign_ins.of_user(bob, NOW, 9).await.unwrap(), own(&[&of_bob]));
}

/// The latest places that a user has signed in from are remembered, in their order.
pub async fn places_of_sign_ins_are_remembered(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let (ann, bob) = (user(&world, "ann@x.org").await, user(&world, "bob@x.org").await);
    let sign_ins = &stores.sign_ins;
    for (at, source) in ["a", "b", "a", "c", "d"].iter().enumerate() {
        let at = NOW + at as i64;
        sign_ins.note_source(ann, source, at, 3).await.unwrap();
    }
    sign_ins.note_source(bob, "b", NOW, 3).await.unwrap();
    assert_eq!(sign_ins.sources(ann).await.unwrap(), ["a", "c", "d"]);
    assert_eq!(sign_ins.purge(NOW, NOW + 3).await.unwrap(), 2);
    assert_eq!(sign_ins.sources(ann).await.unwrap(), ["c", "d"]);
    assert!(sign_ins.sources(bob).await.unwrap().is_empty());
    sign_ins.forget_sources(ann).await.unwrap();
    assert!(sign_ins.sources(ann).await.unwrap().is_empty());
    expect_error(
        sign_ins.note_source(UserId::new(), "a", NOW, 3).await,
        StoreErrorKind::NotFound,
    );
}
