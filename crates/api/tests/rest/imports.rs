//! Bulk imports from CSV.

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_api::Options;
use fieldline_core::ports::{AttributeRow, AttributeStore, StoreError, StoreErrorKind, StoreResult};
use fieldline_devices::downlink::NoDeviceLink;
use fieldline_entities::access::Principal;
use fieldline_entities::services::{ImportContext, ServiceContext, Services};
use fieldline_model::EntityKey;
use fieldline_model::timeseries::{Attribute, AttributeScope};
use serde_json::json;

use crate::fixture::{RestFixture, id};

#[tokio::test]
async fn lines_become_devices_with_all_that_they_have() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    world.rule_engine.take();
    let columns = json!([
        { "type": "NAME" }, { "type": "TYPE" }, { "type": "SERVER_ATTRIBUTE", "key": "sn" },
        { "type": "TIMESERIES", "key": "t" }, { "type": "ACCESS_TOKEN" },
    ]);
    let request = |file: &str, update: bool| json!({ "file": file, "mapping": { "columns": columns, "delimiter": ",", "update": update, "header": true } });
    let file = "n,t,s,v,a\nfirst,pump,12,1.5,secret\nsecond,pump,,,A1_TEST_TOKEN\nTest Device A1,,7,,\n";
    let result = admin.post("/api/device/bulk_import", &request(file, false)).await;
    assert_eq!(
        (&result["created"], &result["updated"], &result["errors"]),
        (&json!(1), &json!(1), &json!(1))
    );
    assert_eq!(
        result["errorsList"],
        json!(["Line 3: Specified credentials are already registered!"])
    );
    let mut heard = world.rule_engine.types();
    heard.sort();
    assert_eq!(
        heard,
        [
            "ATTRIBUTES_UPDATED",
            "ENTITY_CREATED",
            "ENTITY_UPDATED",
            "TIMESERIES_UPDATED"
        ]
    );
    let first = admin.get("/api/tenant/device?deviceName=first").await;
    let telemetry =
        |device: &serde_json::Value| format!("/api/plugins/telemetry/DEVICE/{}/values", id(device));
    let attributes = admin
        .get(&format!(
            "{}/attributes/SERVER_SCOPE?keys=sn,active",
            telemetry(&first)
        ))
        .await;
    let values: Vec<_> = attributes
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["key"], &one["value"]))
        .collect();
    assert_eq!(
        values,
        [(&json!("active"), &json!(false)), (&json!("sn"), &json!(12))]
    );
    let points = admin
        .get(&format!(
            "{}/timeseries?keys=t&useStrictDataTypes=true",
            telemetry(&first)
        ))
        .await;
    assert_eq!(points["t"][0]["value"], 1.5);
    let old = admin
        .get("/api/tenant/device?deviceName=Test%20Device%20A1")
        .await;
    let kept = format!("{}/attributes/SERVER_SCOPE?keys=sn", telemetry(&old));
    assert_eq!(
        admin.get(&kept).await,
        json!([]),
        "not updated where that is not asked for"
    );
    admin
        .post("/api/device/bulk_import", &request("n\nTest Device A1,,7", true))
        .await;
    assert_eq!(admin.get(&kept).await[0]["value"], 7);
    let user = world.customer_user().await;
    assert_eq!(
        user.refused("POST", "/api/device/bulk_import", &request(file, true))
            .await
            .0,
        403
    );
    for wrong in [
        json!({ "columns": [] }),
        json!({ "columns": [{ "type": "NAME" }], "delimiter": "\"" }),
    ] {
        let body = json!({ "file": "a", "mapping": wrong });
        assert_eq!(
            admin.refused("POST", "/api/device/bulk_import", &body).await.0,
            400
        );
    }
}

#[tokio::test]
async fn lines_become_assets() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let columns =
        json!([{ "type": "NAME" }, { "type": "TYPE" }, { "type": "LABEL" }, { "type": "DESCRIPTION" }]);
    let body = json!({ "file": "House;building;\"a;b\";old\nBarn\nHouse;tower", "mapping": { "columns": columns, "delimiter": ";" } });
    let result = admin.post("/api/asset/bulk_import", &body).await;
    assert_eq!(
        result,
        json!({ "created": 2, "updated": 1, "errors": 0, "errorsList": [] })
    );
    let house = admin.get("/api/tenant/asset?assetName=House").await;
    assert_eq!(
        (&house["type"], &house["label"]),
        (&json!("tower"), &json!("a;b"))
    );
    assert_eq!(house["additionalInfo"]["description"], "old");
    assert_eq!(
        admin.get("/api/tenant/asset?assetName=Barn").await["type"],
        "default"
    );
}

#[tokio::test]
async fn texts_stay_texts_where_that_is_set() {
    for (json_type_cast, expected) in [(true, json!(12)), (false, json!("12"))] {
        let world = RestFixture::with(Options {
            json_type_cast,
            ..Options::default()
        })
        .await;
        let admin = world.admin().await;
        let columns = json!([
            { "type": "NAME" }, { "type": "SERVER_ATTRIBUTE", "key": "a" }, { "type": "TIMESERIES", "key": "t" },
        ]);
        let body = json!({ "file": "typed,12,12", "mapping": { "columns": columns } });
        admin.post("/api/device/bulk_import", &body).await;
        let device = admin.get("/api/tenant/device?deviceName=typed").await;
        let telemetry = format!("/api/plugins/telemetry/DEVICE/{}", id(&device));
        admin
            .post(
                &format!("{telemetry}/attributes/SERVER_SCOPE"),
                &json!({ "b": "12" }),
            )
            .await;
        admin
            .post(&format!("{telemetry}/timeseries/ANY"), &json!({ "u": "12" }))
            .await;
        for key in ["a", "b"] {
            let path = format!("{telemetry}/values/attributes/SERVER_SCOPE?keys={key}");
            assert_eq!(admin.get(&path).await[0]["value"], expected, "{key}");
        }
        for key in ["t", "u"] {
            let path = format!("{telemetry}/values/timeseries?keys={key}&useStrictDataTypes=true");
            assert_eq!(admin.get(&path).await[key][0]["value"], expected, "{key}");
        }
    }
}

/// Fails if the text `poison` is saved.
struct FailingAttributeStore(Arc<dyn AttributeStore>);

#[async_trait]
impl AttributeStore for FailingAttributeStore {
    async fn save(&self, rows: &[AttributeRow<'_>]) -> StoreResult<()> {
        let is_poison = |row: &AttributeRow<'_>| row.values.windows(6).any(|text| text == b"poison");
        if rows.iter().any(is_poison) {
            return Err(StoreError::new(StoreErrorKind::Unavailable, "not now"));
        }
        self.0.save(rows).await
    }

    async fn save_relaxed(&self, rows: &[AttributeRow<'_>]) -> StoreResult<()> {
        self.0.save_relaxed(rows).await
    }

    async fn get(
        &self,
        subject: EntityKey,
        scope: AttributeScope,
        keys: Option<&[String]>,
    ) -> StoreResult<Vec<Attribute>> {
        self.0.get(subject, scope, keys).await
    }

    async fn delete(
        &self,
        subject: EntityKey,
        scope: AttributeScope,
        keys: &[String],
    ) -> StoreResult<Vec<String>> {
        self.0.delete(subject, scope, keys).await
    }
}

#[tokio::test]
async fn what_is_stored_before_a_failure_is_answered() {
    let world = RestFixture::demo().await;
    let services = Services::new(ServiceContext {
        attributes: Arc::new(FailingAttributeStore(world.context.attributes.clone())),
        ..world.context.clone()
    });
    let users = &world.context.stores.users;
    let user = users.by_email("tenant@thingsboard.org").await.unwrap().unwrap();
    let links = ImportContext {
        usage: &world.usage,
        devices: &NoDeviceLink,
        type_cast: true,
    };
    let import = async |file: &str| {
        let columns =
            json!([{ "type": "NAME" }, { "type": "LABEL" }, { "type": "SERVER_ATTRIBUTE", "key": "a" }]);
        let mapping = json!({ "columns": columns, "update": true });
        let request = serde_json::from_value(json!({ "file": file, "mapping": mapping })).unwrap();
        services
            .imports
            .devices(&Principal::of(&user), links, request)
            .await
    };
    // A repeated name is stored after the previous lines, together with other names.
    let result = import("one,x,1\none,y,poison\none,z,2\ntwo,x,poison\ntwo,y,2")
        .await
        .unwrap();
    assert_eq!((result.created, result.updated, result.errors), (1, 0, 4));
    assert_eq!(
        result.errors_list,
        [
            "Line 2: The values were not stored: not now",
            "Line 3: not now",
            "Line 4: not now",
            "Line 5: not now"
        ]
    );
    let admin = world.admin().await;
    let one = admin.get("/api/tenant/device?deviceName=one").await;
    assert_eq!(one["label"], "y");
    let values = format!(
        "/api/plugins/telemetry/DEVICE/{}/values/attributes?keys=a",
        id(&one)
    );
    assert_eq!(admin.get(&values).await[0]["value"], 1);
    let nothing = import("three,x,poison").await;
    assert!(nothing.is_err(), "nothing was stored");
}
