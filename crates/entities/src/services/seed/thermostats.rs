//! What the demo's thermostats come with: where they are, a day of readings, alarm rules and a dashboard.

use std::f64::consts::TAU;
use std::sync::Arc;

use fieldline_core::ports::{AttributeRow, DashboardFilter, TelemetryRow, TelemetrySaveStrategy};
use fieldline_model::entity::{CalculatedField, CalculatedFieldType, Dashboard};
use fieldline_model::kv::{self, KvValueRef};
use fieldline_model::page::PageLink;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{DeviceProfileId, EntityId, EntityKey, TenantId};
use serde_json::{Map, Value, json};

use super::super::{
    CalculatedFieldService, DashboardService, ServiceContext, ServiceError, ServiceErrorKind, ServiceResult,
};
use super::find_demo;

/// The dashboard, in the form in which it is exported.
const DASHBOARD: &str = include_str!("thermostats.json");
/// Readings of a day, one every ten minutes.
const READINGS: u32 = 144;
const READING_INTERVAL_MS: i64 = 600_000;

/// A thermostat of the demo, and how warm and humid it is about there.
struct DemoThermostat {
    name: &'static str,
    room: &'static str,
    serial_number: &'static str,
    latitude: f64,
    longitude: f64,
    alarm_above: f64,
    temperature: f64,
    humidity: f64,
}

const THERMOSTATS: [DemoThermostat; 2] = [
    DemoThermostat {
        name: "Thermostat T1",
        room: "Office",
        serial_number: "T-0001",
        latitude: 52.5206,
        longitude: 13.4098,
        alarm_above: 24.0,
        temperature: 20.0,
        humidity: 49.0,
    },
    DemoThermostat {
        name: "Thermostat T2",
        room: "Store room",
        serial_number: "T-0002",
        latitude: 52.5163,
        longitude: 13.3777,
        alarm_above: 22.0,
        temperature: 18.5,
        humidity: 53.0,
    },
];
/// Below this humidity, percent, both raise an alarm.
const DRY_BELOW: f64 = 30.0;

/// An alarm rule: the series that it watches, the attribute that has its limit, and how they are compared.
struct DemoAlarmRule {
    name: &'static str,
    series: &'static str,
    limit: &'static str,
    severity: &'static str,
    raises: &'static str,
    clears: &'static str,
}

const ALARM_RULES: [DemoAlarmRule; 2] = [
    DemoAlarmRule {
        name: "High temperature",
        series: "temperature",
        limit: "temperatureAlarmThreshold",
        severity: "MAJOR",
        raises: "GREATER",
        clears: "LESS_OR_EQUAL",
    },
    DemoAlarmRule {
        name: "Low humidity",
        series: "humidity",
        limit: "humidityAlarmThreshold",
        severity: "MINOR",
        raises: "LESS",
        clears: "GREATER_OR_EQUAL",
    },
];

/// Makes sure that the demo's thermostats have attributes, readings, alarm rules and a dashboard; what exists is left as
/// it is. The demo must be there, see [`super::seed_demo`].
///
/// # Errors
/// The store failed.
pub async fn seed_thermostats(context: &ServiceContext) -> ServiceResult<()> {
    let Some(tenant) = find_demo(context).await?.map(|tenant| tenant.id) else {
        return Ok(());
    };
    let context = Arc::new(context.clone());
    for thermostat in &THERMOSTATS {
        let device = context.stores.devices.by_name(tenant, thermostat.name).await?;
        let Some(device) = device else {
            continue;
        };
        let subject = EntityKey::device(tenant, device.id);
        save_attributes(&context, subject, thermostat).await?;
        save_readings(&context, subject, thermostat).await?;
        if let Some(profile) = device.device_profile_id {
            save_alarm_rules(&context, tenant, profile).await?;
        }
    }
    save_dashboard(&context, tenant).await
}

async fn save_attributes(
    context: &ServiceContext,
    subject: EntityKey,
    thermostat: &DemoThermostat,
) -> ServiceResult<()> {
    let known = ["latitude".to_owned()];
    let placed = context
        .attributes
        .get(subject, AttributeScope::Server, Some(&known))
        .await?;
    if !placed.is_empty() {
        return Ok(());
    }
    let mut values = Vec::new();
    for (key, value) in [
        ("room", KvValueRef::Text(thermostat.room)),
        ("serialNumber", KvValueRef::Text(thermostat.serial_number)),
        ("latitude", KvValueRef::Double(thermostat.latitude)),
        ("longitude", KvValueRef::Double(thermostat.longitude)),
        (
            "temperatureAlarmThreshold",
            KvValueRef::Double(thermostat.alarm_above),
        ),
        ("humidityAlarmThreshold", KvValueRef::Double(DRY_BELOW)),
    ] {
        kv::pack(key, value, &mut values);
    }
    let row = AttributeRow {
        subject,
        scope: AttributeScope::Server,
        ts: context.now(),
        values: &values,
    };
    Ok(context.attributes.save(&[row]).await?)
}

/// Temperature and humidity over a day, the way a room has them: no alarm is raised by them.
fn reading(thermostat: &DemoThermostat, step: u32) -> Vec<u8> {
    let turn = TAU * f64::from(step) / f64::from(READINGS);
    let temperature = thermostat.temperature + 2.5 * turn.sin() + 0.4 * (7.0 * turn).sin();
    let humidity = thermostat.humidity + 6.0 * turn.cos();
    let mut values = Vec::new();
    let tenths = KvValueRef::Double((10.0 * temperature).round() / 10.0);
    kv::pack("temperature", tenths, &mut values);
    kv::pack("humidity", KvValueRef::Double(humidity.round()), &mut values);
    values
}

async fn save_readings(
    context: &ServiceContext,
    subject: EntityKey,
    thermostat: &DemoThermostat,
) -> ServiceResult<()> {
    if !context.series.keys(subject).await?.is_empty() {
        return Ok(());
    }
    let now = context.now();
    let readings: Vec<_> = (0..READINGS).map(|step| reading(thermostat, step)).collect();
    let rows: Vec<_> = (1..=READINGS)
        .rev()
        .zip(&readings)
        .map(|(steps_ago, values)| TelemetryRow {
            subject,
            ts: now - i64::from(steps_ago) * READING_INTERVAL_MS,
            ttl_seconds: 0,
            strategy: TelemetrySaveStrategy::ALL,
            values,
        })
        .collect();
    Ok(context.series.save(&rows).await?)
}

async fn save_alarm_rules(
    context: &Arc<ServiceContext>,
    tenant: TenantId,
    profile: DeviceProfileId,
) -> ServiceResult<()> {
    let entity = EntityId::from(profile);
    let there = context.stores.calculated_fields.of_entity(tenant, entity).await?;
    for rule in &ALARM_RULES {
        if there.iter().any(|field| field.name == rule.name) {
            continue;
        }
        let field = CalculatedField {
            entity_id: Some(entity),
            field_type: CalculatedFieldType::Alarm,
            name: rule.name.to_owned(),
            configuration: alarm_rule(rule),
            ..CalculatedField::default()
        };
        CalculatedFieldService::new(context)
            .save(tenant, field.into())
            .await?;
    }
    Ok(())
}

fn alarm_rule(rule: &DemoAlarmRule) -> Value {
    let when = |operation: &str| {
        json!({ "condition": { "type": "SIMPLE", "expression": {
            "type": "SIMPLE", "operation": "AND", "filters": [{
                "argument": rule.series, "valueType": "NUMERIC", "operation": "AND", "predicates": [{
                    "type": "NUMERIC", "operation": operation, "value": { "dynamicValueArgument": rule.limit },
                }],
            }],
        } } })
    };
    let mut arguments = Map::new();
    let series = json!({ "refEntityKey": { "key": rule.series, "type": "TS_LATEST" } });
    arguments.insert(rule.series.to_owned(), series);
    let limit =
        json!({ "refEntityKey": { "key": rule.limit, "type": "ATTRIBUTE", "scope": "SERVER_SCOPE" } });
    arguments.insert(rule.limit.to_owned(), limit);
    let mut create_rules = Map::new();
    create_rules.insert(rule.severity.to_owned(), when(rule.raises));
    json!({
        "type": "ALARM",
        "arguments": arguments,
        "createRules": create_rules,
        "clearRule": when(rule.clears),
    })
}

async fn save_dashboard(context: &Arc<ServiceContext>, tenant: TenantId) -> ServiceResult<()> {
    let dashboard: Dashboard = serde_json::from_str(DASHBOARD).map_err(|error| {
        let message = format!("the demo's dashboard cannot be read: {error}");
        ServiceError::new(ServiceErrorKind::Internal, message)
    })?;
    let page = PageLink {
        text_search: Some(dashboard.info.title.clone()),
        ..PageLink::first(1_000)
    };
    let stores = &context.stores.dashboards;
    let there = stores.list(tenant, &DashboardFilter::default(), &page).await?;
    if there.data.iter().any(|info| info.title == dashboard.info.title) {
        return Ok(());
    }
    let by = context.saved_by_platform();
    DashboardService::new(context)
        .save(tenant, dashboard.into(), &by)
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_of_a_day_raise_no_alarm() {
        for thermostat in &THERMOSTATS {
            for step in 0..READINGS {
                let values: Vec<_> = kv::unpack(&reading(thermostat, step))
                    .map(|value| value.unwrap().1.as_number().unwrap())
                    .collect();
                let [temperature, humidity] = values[..] else {
                    panic!("{values:?}");
                };
                assert!(
                    temperature <= thermostat.alarm_above,
                    "{}: {temperature}",
                    thermostat.name
                );
                assert!(humidity >= DRY_BELOW, "{}: {humidity}", thermostat.name);
            }
        }
    }

    #[test]
    fn widgets_name_what_the_dashboard_has() {
        let dashboard: Dashboard = serde_json::from_str(DASHBOARD).unwrap();
        let configuration = dashboard.configuration.unwrap();
        let states = configuration["states"].as_object().unwrap();
        let widgets = configuration["widgets"].as_object().unwrap();
        let mut placed: Vec<_> = states
            .values()
            .flat_map(|state| state["layouts"]["main"]["widgets"].as_object().unwrap().keys())
            .collect();
        placed.sort();
        let mut known: Vec<_> = widgets.keys().collect();
        known.sort();
        assert_eq!(placed, known);
        let aliases = configuration["entityAliases"].as_object().unwrap();
        for widget in widgets.values() {
            for source in widget["config"]["datasources"].as_array().unwrap() {
                let alias = source["entityAliasId"].as_str().unwrap();
                assert!(aliases.contains_key(alias), "{alias}");
            }
        }
    }
}
