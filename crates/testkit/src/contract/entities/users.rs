//! Users and how they log in.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{EntityStores, StoreErrorKind, UserFilter};
use fieldline_model::entity::{Authority, User, UserCredentials};
use fieldline_model::page::SortOrder;
use fieldline_model::{CustomerId, TenantId, UserId};

use super::fixture::{EntityFixture, expect_error, sorted, user};

/// The login name is found however it is written, and kept as it was written first.
pub async fn users_are_found_by_email_regardless_of_case(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let created = world
        .user("Jürgen@Example.Org", Authority::TenantAdmin, CustomerId::NULL)
        .await;
    for email in ["Jürgen@Example.Org", "jürgen@example.org", "JÜRGEN@EXAMPLE.ORG"] {
        let found = stores.users.by_email(email).await.unwrap();
        assert_eq!(found.as_ref(), Some(&created), "{email}");
    }
    assert!(stores.users.by_email("jürgen@example").await.unwrap().is_none());
    assert!(stores.users.by_email("%").await.unwrap().is_none());
}

/// Lists hold administrators of a tenant, users of a customer, all of a tenant, or the system administrators.
pub async fn users_are_listed_by_what_they_are(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let customer = world.customer("customer").await.id;
    let other = world.customer("other").await.id;
    world
        .user("admin@x.org", Authority::TenantAdmin, CustomerId::NULL)
        .await;
    world.user("c1@x.org", Authority::CustomerUser, customer).await;
    world.user("c2@x.org", Authority::CustomerUser, other).await;
    let root = User {
        authority: Authority::SysAdmin,
        ..user(TenantId::NULL, "root@x.org")
    };
    let root = stores.users.insert(root).await.unwrap();
    assert!(root.tenant_id.is_null() && root.customer_id.is_null());
    assert_eq!(
        stores.users.get(TenantId::NULL, root.id).await.unwrap(),
        Some(root)
    );

    for (filter, expected) in [
        (UserFilter::TenantAdmins(world.tenant), vec!["admin@x.org"]),
        (
            UserFilter::CustomerUsers(world.tenant, customer),
            vec!["c1@x.org"],
        ),
        (UserFilter::CustomerUsers(world.tenant, CustomerId::new()), vec![]),
        (
            UserFilter::AdminsAndCustomerUsers(world.tenant, customer),
            vec!["admin@x.org", "c1@x.org"],
        ),
        (
            UserFilter::OfTenant(world.tenant),
            vec!["admin@x.org", "c1@x.org", "c2@x.org"],
        ),
        (UserFilter::SysAdmins, vec!["root@x.org"]),
    ] {
        let found = stores
            .users
            .list(filter, &sorted("email", SortOrder::Asc))
            .await
            .unwrap();
        assert_eq!(found.total_elements, expected.len() as u64);
        let emails: Vec<&str> = found.data.iter().map(|user| user.email.as_str()).collect();
        assert_eq!(emails, expected, "{filter:?}");
    }
    assert_eq!(stores.users.count(world.tenant).await.unwrap(), 3);
}

/// Credentials are inserted and replaced, found by user and by activation token, and deleted with their user.
pub async fn users_log_in_by_credentials(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let id = world
        .user("u@x.org", Authority::TenantAdmin, CustomerId::NULL)
        .await
        .id;
    let users = &stores.users;
    assert_eq!(users.credentials(id).await.unwrap(), None);
    let pending = UserCredentials {
        user_id: id,
        enabled: false,
        password_hash: None,
        activate_token: Some("activate".into()),
        tokens_valid_from: 0,
        ..UserCredentials::default()
    };
    users.save_credentials(pending.clone()).await.unwrap();
    // Saved without a version, they come back with one.
    let plain = |found: Option<UserCredentials>| {
        found.map(|found| UserCredentials {
            version: None,
            ..found
        })
    };
    let found = users.credentials(id).await.unwrap();
    assert_eq!(plain(found), Some(pending.clone()));
    let found = users.credentials_by_activate_token("activate").await.unwrap();
    assert_eq!(plain(found), Some(pending.clone()));

    let second = world
        .user("v@x.org", Authority::TenantAdmin, CustomerId::NULL)
        .await
        .id;
    let same_token = UserCredentials {
        user_id: second,
        ..pending.clone()
    };
    expect_error(users.save_credentials(same_token).await, StoreErrorKind::Conflict);

    let active = UserCredentials {
        enabled: true,
        password_hash: Some("$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA".into()),
        activate_token: None,
        tokens_valid_from: 1_700_000_000_123,
        ..pending
    };
    users.save_credentials(active.clone()).await.unwrap();
    let found = users.credentials(id).await.unwrap();
    assert_eq!(plain(found), Some(active.clone()));
    assert_eq!(
        users.credentials_by_activate_token("activate").await.unwrap(),
        None
    );

    assert!(users.delete(world.tenant, id).await.unwrap());
    assert_eq!(users.credentials(id).await.unwrap(), None);
    expect_error(
        users.save_credentials(active.clone()).await,
        StoreErrorKind::NotFound,
    );
    let of_nobody = UserCredentials {
        user_id: UserId::new(),
        ..active
    };
    expect_error(users.save_credentials(of_nobody).await, StoreErrorKind::NotFound);
}
