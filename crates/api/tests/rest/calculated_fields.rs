//! Calculated fields.

use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use fieldline_entities::ports::FieldReprocess;
use fieldline_entities::services::{ServiceError, ServiceResult};
use fieldline_model::entity::CalculatedField;
use fieldline_model::reprocess::{ReprocessReport, ReprocessRequest, ReprocessStatus};
use fieldline_model::{CalculatedFieldId, TenantId};
use serde_json::{Value, json};

use crate::fixture::{FixtureClient, NOW, RestFixture, id, no};

/// Starts every reprocessing, and never ends one by itself.
#[derive(Default)]
pub(crate) struct FakeReprocessing(Mutex<HashMap<(TenantId, CalculatedFieldId), ReprocessReport>>);

#[async_trait]
impl FieldReprocess for FakeReprocessing {
    async fn begin(
        &self,
        field: &CalculatedField,
        request: ReprocessRequest,
    ) -> ServiceResult<ReprocessReport> {
        let start = request.start_ts;
        let begun = ReprocessReport {
            calculated_field_id: field.id,
            status: ReprocessStatus::Running,
            start_ts: start.ok_or_else(|| ServiceError::invalid("startTs is missing!"))?,
            end_ts: request.end_ts.unwrap(),
            entities: 0,
            processed_entities: 0,
            values: 0,
            results: 0,
            without_result: 0,
            last_problem: None,
            error: None,
            started_at: NOW,
            finished_at: None,
        };
        let key = (field.tenant_id, begun.calculated_field_id);
        self.0.lock().unwrap().insert(key, begun.clone());
        Ok(begun)
    }

    fn progress(&self, tenant: TenantId, field: CalculatedFieldId) -> Option<ReprocessReport> {
        self.0.lock().unwrap().get(&(tenant, field)).cloned()
    }

    fn cancel(&self, tenant: TenantId, field: CalculatedFieldId) -> Option<ReprocessReport> {
        let mut all = self.0.lock().unwrap();
        let found = all.get_mut(&(tenant, field))?;
        found.status = ReprocessStatus::Cancelled;
        Some(found.clone())
    }
}

/// A field that doubles the temperature of a device or profile.
pub(crate) fn doubling(entity: &Value, name: &str) -> Value {
    json!({
        "entityId": entity,
        "type": "SIMPLE",
        "name": name,
        "configuration": {
            "type": "SIMPLE",
            "arguments": { "t": { "refEntityKey": { "key": "temperature", "type": "TS_LATEST" } } },
            "expression": "t * 2",
            "output": { "type": "TIME_SERIES", "name": "double", "decimalsByDefault": 1 },
        },
    })
}

async fn device(admin: &FixtureClient<'_>, name: &str) -> Value {
    let body = json!({ "name": name });
    admin.post("/api/device", &body).await["id"].clone()
}

const FIELD: &str = "/api/calculatedField";

#[tokio::test]
async fn a_field_is_saved_read_listed_and_deleted() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let pump = device(&admin, "Pump").await;
    let saved = admin.post(FIELD, &doubling(&pump, "Double")).await;
    assert_eq!((&saved["version"], &saved["entityId"]), (&json!(1), &pump));
    assert_eq!(saved["configuration"]["expression"], "t * 2");
    let path = format!("{FIELD}/{}", id(&saved));
    assert_eq!(admin.get(&path).await, saved);

    let mut changed = saved.clone();
    changed["configuration"]["expression"] = json!("t * 2 + 0");
    changed["debugSettings"] = json!({ "failuresEnabled": true, "allEnabled": true });
    let changed = admin.post(FIELD, &changed).await;
    assert_eq!(changed["version"], 2);
    // Debugging of everything is enabled for a quarter of an hour.
    assert_eq!(
        changed["debugSettings"],
        json!({ "failuresEnabled": true, "allEnabled": false, "allEnabledUntil": NOW + 900_000 })
    );
    let stale = admin.refused("POST", FIELD, &saved).await;
    assert_eq!((stale.0, stale.1), (409, 35));

    let pump_id = pump["id"].as_str().unwrap();
    for list in [
        format!("{FIELD}/DEVICE/{pump_id}?pageSize=10&page=0"),
        format!("/api/DEVICE/{pump_id}/calculatedFields?pageSize=10&page=0&type=SIMPLE"),
        format!("/api/calculatedFields?pageSize=10&page=0&entities={pump_id}"),
        "/api/calculatedFields?pageSize=10&page=0&types=SIMPLE,SCRIPT&name=x&name=Double".to_owned(),
        "/api/calculatedFields?pageSize=10&page=0&entityType=DEVICE&textSearch=oub".to_owned(),
    ] {
        let page = admin.get(&list).await;
        assert_eq!(page["totalElements"], 1, "{list}");
        assert_eq!(page["data"][0]["id"], saved["id"], "{list}");
    }
    let page = admin.get("/api/calculatedFields?pageSize=10&page=0").await;
    assert_eq!(page["data"][0]["entityName"], "Pump");
    for list in [
        format!("/api/DEVICE/{pump_id}/calculatedFields?pageSize=10&page=0&type=SCRIPT"),
        "/api/calculatedFields?pageSize=10&page=0&types=ALARM".to_owned(),
        "/api/calculatedFields?pageSize=10&page=0&entityType=ASSET".to_owned(),
    ] {
        assert_eq!(admin.get(&list).await["totalElements"], 0, "{list}");
    }
    let names = admin
        .get("/api/calculatedFields/names?type=SIMPLE&pageSize=10&page=0")
        .await;
    assert_eq!(names["data"], json!(["Double"]));
    assert_eq!(admin.text(&format!("{path}/debug")).await, "");

    admin.delete(&path).await;
    let gone = admin.refused("GET", &path, &Value::Null).await;
    assert_eq!((gone.0, gone.1), (404, 32));
}

#[tokio::test]
async fn a_wrong_field_is_refused_by_the_name_of_the_setting() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let pump = device(&admin, "Pump").await;
    let stranger = world.stranger().await;
    let foreign = device(&stranger, "Foreign").await;
    let chains = admin.get("/api/ruleChains?pageSize=1&page=0").await;
    let chain = chains["data"][0]["id"].clone();
    let customers = admin.get("/api/customers?pageSize=1&page=0").await;
    let customer = customers["data"][0]["id"].clone();

    let argument = "/configuration/arguments/t";
    for (place, value, status, message) in [
        (
            "/name",
            json!(" "),
            400,
            "Calculated field name should be specified!",
        ),
        (
            "/configuration",
            json!(null),
            400,
            "Validation error: configuration: must be a JSON object",
        ),
        (
            "/configuration/expression",
            json!("t * u"),
            400,
            "Validation error: configuration.expression: Unknown function or variable 'u' at position 4",
        ),
        (
            "/configuration/output/name",
            json!(""),
            400,
            "Validation error: configuration.output.name: must not be empty",
        ),
        (
            &format!("{argument}/refEntityKey/key"),
            json!(""),
            400,
            "Validation error: configuration.arguments.t.refEntityKey.key: must not be empty",
        ),
        (
            "/entityId",
            chain,
            400,
            "Entity type 'RULE_CHAIN' does not support calculated fields",
        ),
        (
            "/entityId",
            customer,
            400,
            "Entity type 'CUSTOMER' does not support 'SIMPLE' calculated fields",
        ),
    ] {
        let mut field = doubling(&pump, "Double");
        *field.pointer_mut(place).unwrap() = value;
        let (got, _, text) = admin.refused("POST", FIELD, &field).await;
        assert_eq!((got, text.as_str()), (status, message), "{place}");
    }
    // Entities of another tenant are refused, both as the field's entity and in an argument.
    assert_eq!(
        admin.refused("POST", FIELD, &doubling(&foreign, "x")).await.0,
        404
    );
    let mut field = doubling(&pump, "Double");
    field["configuration"]["arguments"]["t"]["refEntityId"] = foreign;
    assert_eq!(admin.refused("POST", FIELD, &field).await.0, 404);

    let saved = admin.post(FIELD, &doubling(&pump, "Double")).await;
    assert_eq!(
        admin.refused("POST", FIELD, &doubling(&pump, "Double")).await,
        no(400, 31, "Calculated field with such name and type already exists")
    );
    let mut moved = saved;
    moved["entityId"] = device(&admin, "Other pump").await;
    let (status, _, text) = admin.refused("POST", FIELD, &moved).await;
    assert_eq!(status, 400);
    assert!(
        text.starts_with("Changing the calculated field target entity"),
        "{text}"
    );
}

#[tokio::test]
async fn an_entity_has_five_fields_beside_its_alarm_rules() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let pump = device(&admin, "Pump").await;
    for number in 0..5 {
        admin
            .post(FIELD, &doubling(&pump, &format!("Field {number}")))
            .await;
    }
    assert_eq!(
        admin.refused("POST", FIELD, &doubling(&pump, "Sixth")).await,
        no(400, 31, "Calculated fields per entity limit reached!")
    );
    let alarm = json!({
        "entityId": pump, "type": "ALARM", "name": "Hot",
        "configuration": {
            "type": "ALARM",
            "arguments": { "t": { "refEntityKey": { "key": "temperature", "type": "TS_LATEST" } } },
            "createRules": { "MAJOR": { "condition": { "type": "SIMPLE",
                "expression": { "type": "TBEL", "expression": "return t > 50;" } } } },
        },
    });
    let alarm = admin.post(FIELD, &alarm).await;
    // The same under the paths of alarm rules.
    let rule = admin.get(&format!("/api/alarm/rule/{}", id(&alarm))).await;
    assert_eq!((&rule["name"], &rule["type"]), (&json!("Hot"), &Value::Null));
    let mut renamed = rule;
    renamed["name"] = json!("Very hot");
    admin.post("/api/alarm/rule", &renamed).await;
    let entity = format!("/api/alarm/rules/DEVICE/{}", pump["id"].as_str().unwrap());
    for path in [entity.as_str(), "/api/alarm/rules"] {
        let page = admin.get(&format!("{path}?pageSize=10&page=0")).await;
        assert_eq!(page["data"][0]["name"], "Very hot", "{path}");
    }
    let names = admin.get("/api/alarm/rules/names?pageSize=10&page=0").await;
    assert_eq!(names["data"], json!(["Very hot"]));
    let fields = admin.get("/api/calculatedFields?pageSize=1&page=0").await;
    let other = format!("/api/alarm/rule/{}", id(&fields["data"][0]));
    assert_eq!(admin.refused("GET", &other, &Value::Null).await.0, 404);
    // An entity that a field references cannot be deleted.
    let valve = device(&admin, "Valve").await;
    let mut naming = doubling(&valve, "Naming");
    naming["configuration"]["arguments"]["t"]["refEntityId"] = pump.clone();
    let naming = admin.post(FIELD, &naming).await;
    let pump_path = format!("/api/device/{}", pump["id"].as_str().unwrap());
    assert_eq!(
        admin.refused("DELETE", &pump_path, &Value::Null).await,
        no(
            400,
            31,
            "Can't delete device that is referenced in calculated fields!"
        )
    );
    admin.delete(&format!("{FIELD}/{}", id(&naming))).await;
    // Deleting the device deletes its fields.
    admin.delete(&pump_path).await;
    for types in ["", "&types=ALARM"] {
        let list = format!("/api/calculatedFields?pageSize=10&page=0{types}");
        assert_eq!(admin.get(&list).await["totalElements"], 0);
    }
}

#[tokio::test]
async fn scripts_are_tried_on_their_arguments_and_the_newest_time_of_these() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let test = json!({
        "expression": "return {\"x\": t};",
        "arguments": {
            "t": { "type": "SINGLE_VALUE", "ts": 5, "value": 2 },
            "r": { "type": "TS_ROLLING", "values": [{ "ts": 7, "value": 1 }, { "ts": 6, "value": 1 }] },
        },
    });
    let result = admin.post(&format!("{FIELD}/testScript"), &test).await;
    // The script tester of these tests echoes its request.
    let asked = result["output"].as_str().unwrap();
    assert!(
        asked.contains("latest_ts: 7") && asked.contains("TS_ROLLING"),
        "{asked}"
    );
    assert_eq!(result["error"], "");
    let (status, code, _) = admin
        .refused("POST", &format!("{FIELD}/testScript"), &json!({}))
        .await;
    assert_eq!((status, code), (400, 31));
}

#[tokio::test]
async fn a_reprocessing_is_begun_followed_and_cancelled_by_those_who_may_change_the_field() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let pump = device(&admin, "Pump").await;
    let field = admin.post(FIELD, &doubling(&pump, "Double")).await;
    let path = format!("{FIELD}/{}/reprocess", id(&field));
    let none = admin.refused("GET", &path, &Value::Null).await;
    assert_eq!((none.0, none.1), (404, 32));
    assert_eq!(admin.refused("DELETE", &path, &Value::Null).await.0, 404);

    let time = json!({ "startTs": 1000, "endTs": 5000 });
    for (who, status) in [
        (world.nobody(), 401),
        (world.customer_user().await, 403),
        (world.sysadmin().await, 403),
        (world.stranger().await, 404),
    ] {
        assert_eq!(who.refused("POST", &path, &time).await.0, status);
        assert_eq!(who.refused("GET", &path, &Value::Null).await.0, status);
        assert_eq!(who.refused("DELETE", &path, &Value::Null).await.0, status);
    }
    assert_eq!(
        admin.refused("GET", &path, &Value::Null).await.0,
        404,
        "somebody has begun it"
    );
    let wrong = admin.refused("POST", &path, &json!({ "start": 1000 })).await;
    assert!(
        wrong.0 == 400 && wrong.2.contains("unknown field `start`"),
        "{wrong:?}"
    );
    let wrong = admin.refused("POST", &path, &json!({})).await;
    assert_eq!((wrong.0, wrong.2.as_str()), (400, "startTs is missing!"));

    let begun = admin.post(&path, &time).await;
    assert_eq!(
        begun,
        json!({
            "calculatedFieldId": field["id"], "status": "RUNNING", "startTs": 1000, "endTs": 5000,
            "entities": 0, "processedEntities": 0, "values": 0, "results": 0, "withoutResult": 0, "startedAt": NOW,
        })
    );
    assert_eq!(admin.get(&path).await, begun);
    admin.delete(&path).await;
    assert_eq!(admin.get(&path).await["status"], "CANCELLED");
}
