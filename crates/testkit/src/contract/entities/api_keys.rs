//! API keys.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{ApiKeyChange, EntityStores, StoreErrorKind};
use fieldline_model::entity::{ApiKeyInfo, Authority};
use fieldline_model::page::PageLink;
use fieldline_model::{ApiKeyId, CustomerId, UserId, new_uuid};

use super::fixture::{EntityFixture, NOW, expect_error};

/// Keys are found by the hash of their value, listed for their user, and go with it.
pub async fn keys_are_found_by_their_hash_and_go_with_their_user(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let user = world
        .user("u@x.org", Authority::TenantAdmin, CustomerId::NULL)
        .await
        .id;
    let keys = &stores.api_keys;
    let new = |user, description: &str| ApiKeyInfo {
        id: ApiKeyId(new_uuid()),
        created_time: NOW,
        tenant_id: world.tenant,
        user_id: user,
        expiration_time: NOW + 5,
        description: description.into(),
        enabled: true,
        expired: false,
    };
    let saved = keys.create(new(user, "Büro"), "hash").await.unwrap();
    let id = saved.id;
    assert_eq!(keys.by_hash("hash").await.unwrap(), Some(saved.clone()));
    assert_eq!(keys.get(id).await.unwrap(), Some(saved.clone()));
    assert_eq!(keys.by_hash("other").await.unwrap(), None);
    expect_error(
        keys.create(new(user, "twice"), "hash").await,
        StoreErrorKind::Conflict,
    );
    expect_error(
        keys.create(new(UserId::new(), "nobody"), "h2").await,
        StoreErrorKind::NotFound,
    );
    let disabled = ApiKeyChange {
        enabled: Some(false),
        ..ApiKeyChange::default()
    };
    let described = ApiKeyChange {
        description: Some("Office"),
        ..ApiKeyChange::default()
    };
    let expected = ApiKeyInfo {
        enabled: false,
        description: "Office".into(),
        ..saved.clone()
    };
    // Who describes a key does not enable it again.
    keys.update(id, disabled).await.unwrap();
    assert_eq!(keys.update(id, described).await.unwrap(), Some(expected.clone()));
    let page = keys.list(user, &PageLink::first(9)).await.unwrap();
    assert_eq!(page.data, [expected]);
    assert_eq!(
        keys.list(UserId::new(), &PageLink::first(9))
            .await
            .unwrap()
            .total_elements,
        0
    );
    assert_eq!(keys.update(ApiKeyId(new_uuid()), described).await.unwrap(), None);
    let second = keys.create(new(user, "second"), "second").await.unwrap();
    assert!(keys.delete(second.id).await.unwrap());
    assert!(!keys.delete(second.id).await.unwrap());
    stores.users.delete(world.tenant, user).await.unwrap();
    assert_eq!(keys.by_hash("hash").await.unwrap(), None);
}
