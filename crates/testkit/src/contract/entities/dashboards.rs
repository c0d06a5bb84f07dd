//! Dashboards.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{DashboardFilter, EntityStores, StoreErrorKind};
use fieldline_model::entity::{Dashboard, DashboardInfo};
use fieldline_model::page::{PageLink, SortOrder};
use fieldline_model::{CustomerId, DashboardId, TenantId};
use serde_json::json;

use super::fixture::{EntityFixture, NOW, expect_error, searched, sorted};

fn dashboard(tenant: TenantId, title: &str) -> Dashboard {
    Dashboard {
        info: DashboardInfo {
            id: DashboardId::new(),
            created_time: NOW,
            tenant_id: tenant,
            title: title.into(),
            name: title.into(),
            image: Some("data:image/png;base64,AA==".into()),
            ..DashboardInfo::default()
        },
        configuration: Some(json!({ "widgets": { "z": { "row": 1.5 }, "a": null }, "states": {} })),
        external_id: Some(DashboardId::new()),
        resources: Some(json!([{ "link": "/api/images/tenant/x.png", "data": "AA==" }])),
    }
}

/// A dashboard reads back whole, lists leave out what it shows, and its version guards updates.
pub async fn dashboards_read_back_whole(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let new = dashboard(world.tenant, "Büro");
    let saved = stores.dashboards.insert(new.clone()).await.unwrap();
    let mut expected = new;
    expected.info.version = Some(1);
    assert_eq!(saved, expected);
    let id = saved.info.id;
    assert_eq!(
        stores.dashboards.get(world.tenant, id).await.unwrap(),
        Some(saved.clone())
    );
    let text = serde_json::to_string(&saved.configuration).unwrap();
    assert_eq!(text, r#"{"widgets":{"z":{"row":1.5},"a":null},"states":{}}"#);
    let every = DashboardFilter::default();
    let page = stores
        .dashboards
        .list(world.tenant, &every, &searched("BÜRO"))
        .await
        .unwrap();
    assert_eq!(page.data, std::slice::from_ref(&saved.info));
    // Titles may repeat.
    stores
        .dashboards
        .insert(dashboard(world.tenant, "Büro"))
        .await
        .unwrap();
    assert_eq!(stores.dashboards.count(world.tenant).await.unwrap(), 2);

    let mut changed = saved.clone();
    changed.configuration = None;
    changed.info.title = "Office".into();
    let changed = stores.dashboards.update(changed).await.unwrap();
    assert_eq!((changed.info.version, changed.configuration), (Some(2), None));
    let stale = stores.dashboards.update(saved).await;
    expect_error(stale, StoreErrorKind::VersionConflict);
    assert!(stores.dashboards.delete(world.tenant, id).await.unwrap());
    assert!(!stores.dashboards.delete(world.tenant, id).await.unwrap());
    assert!(stores.dashboards.info(world.tenant, id).await.unwrap().is_none());
}

/// A dashboard may be assigned to several customers, and is listed for each; that ends with the customer.
pub async fn dashboards_are_assigned_to_customers(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let (first, second) = (world.customer("A").await, world.customer("B").await);
    let ids = [first.id, second.id];
    let saved = stores
        .dashboards
        .insert(dashboard(world.tenant, "d"))
        .await
        .unwrap();
    stores
        .dashboards
        .insert(dashboard(world.tenant, "other"))
        .await
        .unwrap();
    let id = saved.info.id;
    for customer in ids {
        assert!(
            stores
                .dashboards
                .assign(world.tenant, id, customer)
                .await
                .unwrap()
        );
        assert!(
            !stores
                .dashboards
                .assign(world.tenant, id, customer)
                .await
                .unwrap()
        );
    }
    let info = stores.dashboards.info(world.tenant, id).await.unwrap().unwrap();
    let titles: Vec<&str> = info
        .assigned_customers
        .iter()
        .flatten()
        .map(|one| one.title.as_str())
        .collect();
    assert_eq!(titles, ["A", "B"]);
    assert!(info.is_assigned_to(ids[1]) && !info.is_assigned_to(CustomerId::new()));
    assert_eq!(info.version, Some(3));
    // Saving keeps whom it is assigned to, whatever the request says.
    let kept = stores
        .dashboards
        .update(Dashboard { info, ..saved })
        .await
        .unwrap();
    assert_eq!(kept.info.assigned_customers.unwrap().len(), 2);
    let of = |customer| DashboardFilter {
        customer: Some(customer),
        mobile: false,
    };
    let all = PageLink::first(10);
    let listed = stores
        .dashboards
        .list(world.tenant, &of(ids[0]), &all)
        .await
        .unwrap();
    assert_eq!(listed.data.iter().map(|info| info.id).collect::<Vec<_>>(), [id]);

    assert!(
        stores
            .dashboards
            .unassign(world.tenant, id, ids[0])
            .await
            .unwrap()
    );
    assert!(
        !stores
            .dashboards
            .unassign(world.tenant, id, ids[0])
            .await
            .unwrap()
    );
    stores.customers.delete(world.tenant, ids[1]).await.unwrap();
    let info = stores.dashboards.info(world.tenant, id).await.unwrap().unwrap();
    assert_eq!(info.assigned_customers, None);
    expect_error(
        stores.dashboards.assign(world.tenant, id, ids[1]).await,
        StoreErrorKind::Invalid,
    );
}

/// Mobile applications see what is not hidden from them, in its order.
pub async fn dashboards_of_mobile_applications_have_an_order(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    for (title, hide, order) in [
        ("last", false, None),
        ("hidden", true, Some(0)),
        ("b", false, Some(2)),
        ("a", false, Some(1)),
    ] {
        let mut new = dashboard(world.tenant, title);
        new.info.mobile_hide = hide;
        new.info.mobile_order = order;
        stores.dashboards.insert(new).await.unwrap();
    }
    let filter = DashboardFilter {
        mobile: true,
        ..DashboardFilter::default()
    };
    let link = sorted("mobileOrder", SortOrder::Asc);
    let page = stores
        .dashboards
        .list(world.tenant, &filter, &link)
        .await
        .unwrap();
    let titles: Vec<&str> = page.data.iter().map(|info| info.title.as_str()).collect();
    assert_eq!(titles, ["a", "b", "last"]);
}

/// No tenant sees, changes or assigns a dashboard of another one; with a tenant go its dashboards.
pub async fn dashboards_stay_within_their_tenant(stores: &EntityStores) {
    let mine = EntityFixture::new(stores, "mine").await;
    let theirs = EntityFixture::new(stores, "theirs").await;
    let saved = stores
        .dashboards
        .insert(dashboard(mine.tenant, "d"))
        .await
        .unwrap();
    let id = saved.info.id;
    assert!(stores.dashboards.get(theirs.tenant, id).await.unwrap().is_none());
    assert!(
        stores
            .dashboards
            .infos(theirs.tenant, &[id])
            .await
            .unwrap()
            .is_empty()
    );
    assert!(!stores.dashboards.delete(theirs.tenant, id).await.unwrap());
    let mut planted = saved.clone();
    planted.info.tenant_id = theirs.tenant;
    expect_error(stores.dashboards.update(planted).await, StoreErrorKind::NotFound);
    let own = mine.customer("C").await.id;
    let foreign = theirs.customer("C").await.id;
    for (tenant, customer) in [
        (mine.tenant, foreign),
        (theirs.tenant, foreign),
        (theirs.tenant, own),
    ] {
        let assigned = stores.dashboards.assign(tenant, id, customer).await;
        expect_error(assigned, StoreErrorKind::Invalid);
    }
    stores.dashboards.assign(mine.tenant, id, own).await.unwrap();
    assert!(!stores.dashboards.unassign(theirs.tenant, id, own).await.unwrap());
    stores.tenants.delete(mine.tenant).await.unwrap();
    assert!(stores.dashboards.get(mine.tenant, id).await.unwrap().is_none());
}

/// The public customer is found by its id alone; no other customer is.
pub async fn only_public_customers_are_found_without_their_tenant(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let plain = world.customer("Plain").await;
    let mut public = super::fixture::customer(world.tenant, "Public");
    public.additional_info = Some(json!({ "isPublic": true }));
    let public = stores.customers.insert(public).await.unwrap();
    let found = stores.customers.public(public.id).await.unwrap();
    assert_eq!(found, Some(public));
    assert!(stores.customers.public(plain.id).await.unwrap().is_none());
}
