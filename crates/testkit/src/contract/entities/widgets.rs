//! The widget library.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{EntityStores, StoreErrorKind, WidgetLibraryView, WidgetTypeFilter};
use fieldline_model::entity::{WidgetTypeBase, WidgetTypeDetails, WidgetTypeTexts, WidgetsBundle};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{TenantId, WidgetTypeId, WidgetsBundleId};
use serde_json::json;

use super::fixture::{EntityFixture, NOW, expect_error, searched};

fn widget_type(tenant: TenantId, fqn: &str, scada: bool) -> WidgetTypeDetails {
    WidgetTypeDetails {
        base: WidgetTypeBase {
            id: WidgetTypeId::new(),
            created_time: NOW,
            tenant_id: tenant,
            fqn: Some(fqn.to_owned()),
            name: format!("Name of {fqn}"),
            deprecated: scada,
            scada,
            version: None,
        },
        texts: WidgetTypeTexts {
            description: Some("Häuser".to_owned()),
            tags: Some(vec!["flow".to_owned()]),
            image: None,
        },
        descriptor: json!({"type": "latest", "z": 1, "a": ["ü"]}),
        external_id: None,
        resources: None,
    }
}

fn bundle(tenant: TenantId, alias: &str) -> WidgetsBundle {
    WidgetsBundle {
        id: WidgetsBundleId::new(),
        created_time: NOW,
        tenant_id: tenant,
        alias: Some(alias.to_owned()),
        title: alias.to_owned(),
        name: alias.to_owned(),
        ..WidgetsBundle::default()
    }
}

fn ids<T>(page: PageData<T>, id: impl Fn(&T) -> uuid::Uuid) -> Vec<uuid::Uuid> {
    page.data.iter().map(id).collect()
}

/// Types and bundles are the system's or a tenant's own; names are unique among each; bundles keep an order.
pub async fn the_widget_library_is_shared_or_of_a_tenant(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let (types, bundles) = (&stores.widget_types, &stores.widgets_bundles);
    let shared = types
        .insert(widget_type(TenantId::NULL, "meter", true))
        .await
        .unwrap();
    let own = types
        .insert(widget_type(world.tenant, "meter", false))
        .await
        .unwrap();
    assert_eq!(shared.base.version, Some(1));
    for tenant in [TenantId::NULL, world.tenant] {
        let taken = types.insert(widget_type(tenant, "meter", false)).await;
        let message = expect_error(taken, StoreErrorKind::Conflict);
        assert_eq!(message, "Widget type with such fqn already exists!");
    }
    let nobodys = widget_type(TenantId::new(), "meter", false);
    expect_error(types.insert(nobodys).await, StoreErrorKind::Invalid);
    let found = types.by_fqn(world.tenant, "meter").await.unwrap();
    assert_eq!(found, Some(own.clone()));
    let id = types.id_of(TenantId::NULL, "meter").await.unwrap();
    assert_eq!(id, Some(shared.base.id));
    assert_eq!(types.get(world.tenant, shared.base.id).await.unwrap(), None);
    let info = types.info(TenantId::NULL, shared.base.id).await.unwrap().unwrap();
    assert_eq!(
        (info.widget_type.as_str(), &info.texts),
        ("latest", &shared.texts)
    );
    let both = [shared.base.id, own.base.id];
    assert_eq!(types.visible(world.tenant, &both).await.unwrap().len(), 2);
    assert_eq!(
        types.visible(TenantId::NULL, &both).await.unwrap(),
        [shared.base.id]
    );

    let listed = async |filter: WidgetTypeFilter, link: PageLink| {
        ids(types.list(&filter, &link).await.unwrap(), |info| info.base.id.0)
    };
    let of = |tenant| WidgetLibraryView {
        tenant,
        ..WidgetLibraryView::default()
    };
    let all = WidgetTypeFilter {
        view: of(world.tenant),
        ..WidgetTypeFilter::default()
    };
    let mut by_name = PageLink::first(10);
    by_name.sort_property = Some("name".to_owned());
    assert_eq!(listed(all.clone(), by_name.clone()).await.len(), 2);
    let mut scada_first = all.clone();
    scada_first.view.scada_first = true;
    assert_eq!(listed(scada_first, by_name).await[0], shared.base.id.0);
    let mut searched_wide = all.clone();
    assert!(listed(searched_wide.clone(), searched("HÄUSER")).await.is_empty());
    searched_wide.view.full_search = true;
    assert_eq!(listed(searched_wide, searched("HÄUSER")).await.len(), 2);
    let actual = WidgetTypeFilter {
        deprecated: Some(false),
        data_types: vec!["latest".to_owned()],
        ..all
    };
    assert_eq!(listed(actual, PageLink::first(10)).await, [own.base.id.0]);

    let mine = bundles.insert(bundle(world.tenant, "water")).await.unwrap();
    let taken = bundles.insert(bundle(world.tenant, "water")).await;
    let message = expect_error(taken, StoreErrorKind::Conflict);
    assert_eq!(message, "Widget bundle with such alias already exists!");
    let order = [own.base.id, shared.base.id];
    bundles.set_types(mine.id, &order).await.unwrap();
    let broken = bundles.set_types(mine.id, &[WidgetTypeId::new()]).await;
    expect_error(broken, StoreErrorKind::Invalid);
    let held = types.of_bundle(mine.id).await.unwrap();
    assert_eq!(held, [own.clone(), shared.clone()]);
    let fqns = types.fqns_of_bundle(mine.id).await.unwrap();
    assert_eq!(fqns[1], (TenantId::NULL, "meter".to_owned()));
    let bundled = WidgetTypeFilter {
        view: of(world.tenant),
        bundle: Some(mine.id),
        ..WidgetTypeFilter::default()
    };
    let page = types.list(&bundled, &PageLink::first(10)).await.unwrap();
    assert_eq!(page.data[0].bundles[0].name, "water");

    assert!(types.delete(world.tenant, own.base.id).await.unwrap());
    let left = types.of_bundle(mine.id).await.unwrap();
    assert_eq!(left, std::slice::from_ref(&shared));
    assert!(bundles.delete(world.tenant, mine.id).await.unwrap());
    assert!(!types.delete(world.tenant, shared.base.id).await.unwrap());
    assert!(types.delete(TenantId::NULL, shared.base.id).await.unwrap());
}
