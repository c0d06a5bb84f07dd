//! Settings of the installation and of people.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{EntityStores, LoginAttemptResult, StoreErrorKind};
use fieldline_model::entity::{AdminSettings, Authority, PastPassword, UserCredentials, UserSettingsType};
use fieldline_model::{AdminSettingsId, CustomerId, TenantId, UserId, new_uuid};
use serde_json::json;

use super::fixture::{EntityFixture, NOW, expect_error};

/// Settings of the installation are replaced whole; id and creation time stay.
pub async fn settings_of_the_installation_are_kept_by_key(stores: &EntityStores) {
    let settings = &stores.settings;
    assert_eq!(settings.admin("mail").await.unwrap(), None);
    let new = |created_time, value| AdminSettings {
        id: AdminSettingsId(new_uuid()),
        created_time,
        tenant_id: TenantId::NULL,
        key: "mail".into(),
        json_value: value,
    };
    let first = new(NOW, json!({ "z": 1.5, "a": { "password": "ß" } }));
    assert_eq!(settings.save_admin(first.clone()).await.unwrap(), first);
    let second = settings
        .save_admin(new(NOW + 1, json!({ "b": [null] })))
        .await
        .unwrap();
    assert_eq!((second.id, second.created_time), (first.id, NOW));
    assert_eq!(settings.admin("mail").await.unwrap(), Some(second.clone()));
    // What was read may be out of date.
    let third = new(NOW + 2, json!({ "c": { "é": 0.1 } }));
    let late = settings.replace_admin(third.clone(), &first.json_value).await;
    assert_eq!(late.unwrap(), None);
    let replaced = settings.replace_admin(third.clone(), &second.json_value).await;
    let replaced = replaced.unwrap().unwrap();
    assert_eq!((replaced.id, &replaced.json_value), (first.id, &third.json_value));
    assert_eq!(settings.admin("mail").await.unwrap(), Some(replaced));
    // What was read is what is compared, though it may be written otherwise than it was.
    let numbers = json!([31.245270191439438, 121.48791951161945, 100.78399658203125, 1e300]);
    settings
        .save_admin(new(NOW, json!({ "numbers": numbers })))
        .await
        .unwrap();
    let read = settings.admin("mail").await.unwrap().unwrap();
    let again = settings.replace_admin(read.clone(), &read.json_value).await;
    assert_eq!(again.unwrap(), Some(read));
    assert_eq!(settings.admin("general").await.unwrap(), None);
}

/// Settings of a user are kept by type, and go with the user.
pub async fn settings_of_users_go_with_them(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let user = world
        .user("u@x.org", Authority::TenantAdmin, CustomerId::NULL)
        .await
        .id;
    let other = world
        .user("v@x.org", Authority::TenantAdmin, CustomerId::NULL)
        .await
        .id;
    let (settings, general) = (&stores.settings, UserSettingsType::General);
    assert_eq!(settings.of_user(user, general).await.unwrap(), None);
    for value in [json!({ "a": 1 }), json!({ "b": { "c": null } })] {
        settings.save_of_user(user, general, &value).await.unwrap();
        assert_eq!(settings.of_user(user, general).await.unwrap(), Some(value));
    }
    assert_eq!(
        settings
            .of_user(user, UserSettingsType::QuickLinks)
            .await
            .unwrap(),
        None
    );
    assert_eq!(settings.of_user(other, general).await.unwrap(), None);
    let nobody = settings.save_of_user(UserId::new(), general, &json!({})).await;
    expect_error(nobody, StoreErrorKind::NotFound);
    stores.users.delete(world.tenant, user).await.unwrap();
    assert_eq!(settings.of_user(user, general).await.unwrap(), None);
}

/// Wrong passwords are counted one by one; tokens to reset a password are found and unique; earlier passwords are kept.
pub async fn wrong_and_earlier_passwords_are_remembered(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let mut ids = Vec::new();
    for email in ["u@x.org", "v@x.org"] {
        ids.push(
            world
                .user(email, Authority::TenantAdmin, CustomerId::NULL)
                .await
                .id,
        );
    }
    let users = &stores.users;
    let kept = UserCredentials {
        user_id: ids[0],
        enabled: true,
        reset_token: Some("reset".into()),
        password_time: NOW,
        past_passwords: vec![PastPassword {
            time: 1,
            hash: "$argon2id$".into(),
        }],
        ..UserCredentials::default()
    };
    users.save_credentials(kept.clone()).await.unwrap();
    let found = users.credentials_by_reset_token("reset").await.unwrap();
    let found = found.unwrap();
    let expected = UserCredentials {
        version: found.version,
        ..kept.clone()
    };
    assert_eq!(found, expected);
    assert_eq!(users.credentials_by_reset_token("other").await.unwrap(), None);
    let same = UserCredentials {
        user_id: ids[1],
        ..kept.clone()
    };
    expect_error(users.save_credentials(same).await, StoreErrorKind::Conflict);

    for count in 1..4 {
        assert_eq!(
            users.note_login(ids[0], LoginAttemptResult::Wrong).await.unwrap(),
            count
        );
    }
    users.save_credentials(found.clone()).await.unwrap();
    assert_eq!(
        users.note_login(ids[0], LoginAttemptResult::Wrong).await.unwrap(),
        4,
        "saving does not forget them"
    );
    assert_eq!(
        users
            .note_login(ids[0], LoginAttemptResult::Right(7))
            .await
            .unwrap(),
        0
    );
    assert_eq!(
        users.note_login(ids[0], LoginAttemptResult::Wrong).await.unwrap(),
        1
    );
    assert_eq!(
        users
            .note_login(UserId::new(), LoginAttemptResult::Wrong)
            .await
            .unwrap(),
        0
    );
    let last = users.credentials(ids[0]).await.unwrap().unwrap();
    assert_eq!((last.last_login, last.failed_logins), (7, 1));
    assert_eq!(
        users
            .note_login(ids[0], LoginAttemptResult::Forgiven)
            .await
            .unwrap(),
        0
    );

    // What was read before somebody else's change undoes nothing of it.
    let outdated = UserCredentials {
        reset_token: None,
        ..found
    };
    expect_error(
        users.save_credentials(outdated).await,
        StoreErrorKind::VersionConflict,
    );
    let kept = users.credentials(ids[0]).await.unwrap().unwrap();
    assert_eq!((kept.reset_token.as_deref(), kept.last_login), (Some("reset"), 7));
}
