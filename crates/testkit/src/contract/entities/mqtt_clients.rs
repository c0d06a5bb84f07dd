//! Clients of the publish/subscribe broker.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{EntityStores, MqttCredentialsCount, MqttCredentialsFilter, StoreErrorKind};
use fieldline_model::entity::{
    ApplicationSharedSubscription, BlockedClient, BlockedClientType, MqttClientCredentials, MqttClientType,
    MqttCredentialsType, RegexMatchTarget,
};
use fieldline_model::new_uuid;
use fieldline_model::page::{PageLink, SortOrder};
use serde_json::json;

use super::fixture::{NOW, expect_error};

fn basic(name: &str, client_id: &str, username: &str) -> MqttClientCredentials {
    MqttClientCredentials {
        id: new_uuid(),
        created_time: NOW,
        name: name.to_owned(),
        client_type: MqttClientType::Device,
        credentials_type: MqttCredentialsType::MqttBasic,
        credentials_id: format!("mixed|{username}|{client_id}"),
        credentials_value: json!({ "clientId": client_id, "userName": username }).to_string(),
        additional_info: json!({ "description": "büro" }),
    }
}

fn certified(name: &str, common_name: &str) -> MqttClientCredentials {
    MqttClientCredentials {
        created_time: NOW + 1,
        client_type: MqttClientType::Application,
        credentials_type: MqttCredentialsType::X509,
        credentials_id: format!("ssl|{common_name}"),
        credentials_value: json!({ "certCnPattern": common_name }).to_string(),
        ..basic(name, "", "")
    }
}

/// Credentials are kept whole, found by all that names them, and each name and credentials id is there once.
pub async fn credentials_of_mqtt_clients_are_found_by_what_names_them(stores: &EntityStores) {
    let clients = &stores.mqtt_clients;
    let (one, other) = (basic("one", "C1", "Ann"), certified("other", "Zürich"));
    for credentials in [&one, &other] {
        clients.insert(credentials).await.unwrap();
    }
    assert_eq!(clients.get(one.id).await.unwrap(), Some(one.clone()));
    assert_eq!(clients.by_name("other").await.unwrap(), Some(other.clone()));
    assert_eq!(clients.by_name("One").await.unwrap(), None);
    assert_eq!(clients.get(new_uuid()).await.unwrap(), None);
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let found = clients
        .by_credentials_ids(&ids(&["mixed|Ann|C1", "username|Ann", "a\0b"]))
        .await
        .unwrap();
    assert_eq!(found, std::slice::from_ref(&one));
    assert!(clients.by_credentials_ids(&[]).await.unwrap().is_empty());
    assert!(clients.certificate_patterns(9).await.unwrap().is_empty());
    assert_eq!(
        clients.count().await.unwrap(),
        MqttCredentialsCount {
            devices: 1,
            applications: 1
        }
    );

    expect_error(
        clients.insert(&basic("one", "C2", "Bob")).await,
        StoreErrorKind::Conflict,
    );
    expect_error(
        clients.insert(&basic("two", "C1", "Ann")).await,
        StoreErrorKind::Conflict,
    );
    let taken = MqttClientCredentials {
        name: "other".to_owned(),
        ..one.clone()
    };
    let read = one.credentials_value.as_str();
    expect_error(clients.update(&taken, read).await, StoreErrorKind::Conflict);
    let changed = MqttClientCredentials {
        created_time: NOW + 9,
        name: "renamed".to_owned(),
        credentials_id: "username|Ann".to_owned(),
        credentials_value: json!({ "userName": "Ann" }).to_string(),
        ..one.clone()
    };
    assert!(clients.update(&changed, read).await.unwrap());
    assert!(
        !clients.update(&one, read).await.unwrap(),
        "somebody else has changed the value"
    );
    let expected = MqttClientCredentials {
        created_time: NOW,
        ..changed.clone()
    };
    assert_eq!(clients.get(one.id).await.unwrap(), Some(expected));
    assert!(
        clients
            .by_credentials_ids(&ids(&["mixed|Ann|C1"]))
            .await
            .unwrap()
            .is_empty()
    );
    let nobody = basic("nobody", "C3", "Cy");
    assert!(!clients.update(&nobody, &nobody.credentials_value).await.unwrap());

    let pattern = MqttClientCredentials {
        credentials_value: json!({ "certCnPattern": "Z.*", "certCnIsRegex": true }).to_string(),
        ..other.clone()
    };
    assert!(clients.update(&pattern, &other.credentials_value).await.unwrap());
    assert_eq!(clients.certificate_patterns(9).await.unwrap(), [pattern]);
    assert!(clients.certificate_patterns(0).await.unwrap().is_empty());

    assert!(clients.delete(one.id).await.unwrap());
    assert!(!clients.delete(one.id).await.unwrap());
    assert_eq!(clients.get(one.id).await.unwrap(), None);
}

/// Lists of credentials are filtered by what the credentials say.
pub async fn credentials_of_mqtt_clients_are_listed_by_what_they_say(stores: &EntityStores) {
    let clients = &stores.mqtt_clients;
    let all = [
        basic("a", "C1", "Ann"),
        basic("B", "c2", "bob_1"),
        certified("c", "Device-.*"),
    ];
    for credentials in &all {
        clients.insert(credentials).await.unwrap();
    }
    let listed = |filter: MqttCredentialsFilter, text: Option<&str>| {
        let page = PageLink {
            text_search: text.map(str::to_owned),
            sort_property: Some("name".to_owned()),
            sort_order: Some(SortOrder::Asc),
            ..PageLink::first(9)
        };
        async move {
            let page = clients.list(&filter, &page).await.unwrap();
            let names = page.data.into_iter().map(|found| found.name);
            names.collect::<Vec<_>>()
        }
    };
    let any = MqttCredentialsFilter::default;
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(listed(any(), None).await, ["a", "B", "c"]);
    assert_eq!(listed(any(), Some("b")).await, ["B"]);
    let devices = MqttCredentialsFilter {
        client_types: vec![MqttClientType::Device],
        ..any()
    };
    assert_eq!(listed(devices, None).await, ["a", "B"]);
    let types = MqttCredentialsFilter {
        credentials_types: vec![MqttCredentialsType::X509, MqttCredentialsType::Scram],
        ..any()
    };
    assert_eq!(listed(types, None).await, ["c"]);
    let user = MqttCredentialsFilter {
        username: text("B_"),
        ..any()
    };
    assert_eq!(listed(user, None).await, ["B"], "wildcards are plain characters");
    let both = MqttCredentialsFilter {
        username: text("n"),
        client_id: text("C"),
        ..any()
    };
    assert_eq!(listed(both, None).await, ["a"]);
    let certificate = MqttCredentialsFilter {
        common_name: text("device"),
        ..any()
    };
    assert_eq!(listed(certificate, None).await, ["c"]);
    let none = MqttCredentialsFilter {
        common_name: text("device"),
        username: text("ann"),
        ..any()
    };
    assert!(listed(none, None).await.is_empty());
    let wrong = PageLink {
        sort_property: Some("password".to_owned()),
        ..PageLink::first(9)
    };
    expect_error(clients.list(&any(), &wrong).await, StoreErrorKind::Invalid);
}

/// Clients are blocked once, until somebody ends that, or it has expired and is forgotten.
pub async fn blocked_mqtt_clients_are_kept_until_they_are_forgotten(stores: &EntityStores) {
    let clients = &stores.mqtt_clients;
    let block = |kind, value: &str, target, expiration_time| BlockedClient {
        kind,
        value: value.to_owned(),
        target,
        expiration_time,
        description: (expiration_time > 0).then(|| "why".to_owned()),
    };
    let (client, regex) = (BlockedClientType::ClientId, BlockedClientType::Regex);
    let all = [
        block(client, "a", None, 0),
        block(client, "b", None, NOW),
        block(regex, ".*", Some(RegexMatchTarget::ByClientId), NOW + 5),
        block(regex, ".*", Some(RegexMatchTarget::ByUsername), 0),
    ];
    for blocked in all.iter().rev() {
        clients.block(blocked).await.unwrap();
    }
    expect_error(
        clients.block(&block(client, "a", None, 7)).await,
        StoreErrorKind::Conflict,
    );
    assert_eq!(clients.blocked(9).await.unwrap(), all);
    assert_eq!(clients.blocked(2).await.unwrap(), all[..2]);
    assert_eq!(clients.forget_blocked(NOW + 1).await.unwrap(), 1);
    assert!(!clients.unblock(client, "b", None).await.unwrap());
    assert!(clients.unblock(client, "a", None).await.unwrap());
    let target = Some(RegexMatchTarget::ByUsername);
    assert!(clients.unblock(regex, ".*", target).await.unwrap());
    assert!(!clients.unblock(regex, ".*", None).await.unwrap());
    assert_eq!(clients.blocked(9).await.unwrap(), all[2..3]);
}

/// Announced subscriptions are kept whole, are there once for each topic filter, and change their name only.
pub async fn shared_subscriptions_are_kept_by_their_filter(stores: &EntityStores) {
    let subscriptions = &stores.shared_subscriptions;
    let subscription = |name: &str, filter: &str, partitions| ApplicationSharedSubscription {
        id: new_uuid(),
        created_time: NOW + i64::from(partitions),
        name: name.to_owned(),
        topic_filter: filter.to_owned(),
        partitions,
    };
    let (one, other) = (
        subscription("One", "a/+", 1),
        subscription("Other", "b/#", i32::MAX),
    );
    for stored in [&one, &other] {
        subscriptions.insert(stored).await.unwrap();
    }
    assert_eq!(subscriptions.get(one.id).await.unwrap(), Some(one.clone()));
    assert_eq!(subscriptions.by_filter("b/#").await.unwrap(), Some(other.clone()));
    for filter in ["B/#", "a", "a\0b"] {
        assert_eq!(subscriptions.by_filter(filter).await.unwrap(), None);
    }
    assert_eq!(subscriptions.get(new_uuid()).await.unwrap(), None);
    let taken = subscription("Third", "a/+", 3);
    expect_error(subscriptions.insert(&taken).await, StoreErrorKind::Conflict);
    // Names are not unique.
    let same_name = subscription("Other", "c", 3);
    subscriptions.insert(&same_name).await.unwrap();

    let sorted = |property: &str| PageLink {
        sort_property: Some(property.to_owned()),
        sort_order: Some(SortOrder::Desc),
        ..PageLink::first(9)
    };
    for (property, expected) in [
        ("topicFilter", [&same_name, &other, &one]),
        ("partitions", [&other, &same_name, &one]),
        ("createdTime", [&other, &same_name, &one]),
    ] {
        let page = subscriptions.list(&sorted(property)).await.unwrap();
        let found: Vec<_> = page.data.iter().collect();
        assert_eq!(found, expected, "{property}");
    }
    expect_error(
        subscriptions.list(&sorted("search")).await,
        StoreErrorKind::Invalid,
    );
    assert!(subscriptions.rename(one.id, "Büro").await.unwrap());
    let renamed = ApplicationSharedSubscription {
        name: "Büro".to_owned(),
        ..one.clone()
    };
    let link = PageLink {
        text_search: Some("BÜ".to_owned()),
        ..PageLink::first(9)
    };
    assert_eq!(subscriptions.list(&link).await.unwrap().data, [renamed]);
    assert!(subscriptions.delete(one.id).await.unwrap());
    assert!(!subscriptions.delete(one.id).await.unwrap());
    assert!(!subscriptions.rename(one.id, "gone").await.unwrap());
}
