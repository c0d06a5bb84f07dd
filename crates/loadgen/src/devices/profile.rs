//! Device profiles, with the alarm rules that a load triggers.

use serde_json::{Value, json};

use super::{id_of, no_id};
use crate::error::{LoadError, LoadResult};
use crate::rest::RestClient;

/// The definition of a device profile.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileSpec {
    /// The name, which becomes the type of its devices.
    pub name: String,
    /// Threshold of `batteryLevel`: a critical alarm is raised at or below it, and cleared above it.
    pub low_battery: Option<f64>,
}

impl ProfileSpec {
    /// Returns the profile with a name: devices of `SMART_METER` and `SMART_TRACKER` run on batteries, and raise an
    /// alarm at 10 %.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            low_battery: matches!(name, "SMART_METER" | "SMART_TRACKER").then_some(10.0),
        }
    }

    fn to_json(&self) -> Value {
        let alarms: Vec<_> = self.low_battery.map(low_battery_alarm).into_iter().collect();
        json!({
            "name": self.name,
            "description": "Made by the load generator.",
            "type": "DEFAULT",
            "transportType": "DEFAULT",
            "provisionType": "DISABLED",
            "default": false,
            "profileData": {
                "configuration": {"type": "DEFAULT"},
                "transportConfiguration": {"type": "DEFAULT"},
                "provisionConfiguration": {"type": "DISABLED", "provisionDeviceSecret": null},
                "alarms": alarms,
            },
        })
    }
}

/// The alarm rule for a low battery.
fn low_battery_alarm(threshold: f64) -> Value {
    let rule = |operation: &str| {
        json!({
            "condition": {
                "condition": [{
                    "key": {"type": "TIME_SERIES", "key": "batteryLevel"},
                    "valueType": "NUMERIC",
                    "value": null,
                    "predicate": {
                        "type": "NUMERIC",
                        "operation": operation,
                        "value": {"defaultValue": threshold, "userValue": null, "dynamicValue": null},
                    },
                }],
                "spec": {"type": "SIMPLE"},
            },
            "schedule": null,
            "alarmDetails": "The battery is at ${batteryLevel} %.",
            "dashboardId": null,
        })
    };
    json!({
        "id": "low-battery",
        "alarmType": "Low battery",
        "createRules": {"CRITICAL": rule("LESS_OR_EQUAL")},
        "clearRule": rule("GREATER"),
        "propagate": false,
        "propagateToOwner": false,
        "propagateToTenant": false,
        "propagateRelationTypes": null,
    })
}

/// Returns the id of the device profile with that name; creates it if it does not exist. An existing profile stays
/// unchanged.
///
/// # Errors
/// The server is out of reach or refuses the request.
pub fn ensure_profile(client: &RestClient, spec: &ProfileSpec) -> LoadResult<String> {
    if let Some(id) = find_profile(client, &spec.name)? {
        return Ok(id);
    }
    match client.post("/api/deviceProfile", &[], &spec.to_json()) {
        Ok(saved) => id_of(&saved).ok_or_else(|| no_id("POST", "/api/deviceProfile")),
        // Another client may have created it in the meantime.
        Err(error @ LoadError::Refused { status: 400, .. }) => find_profile(client, &spec.name)?.ok_or(error),
        Err(error) => Err(error),
    }
}

fn find_profile(client: &RestClient, name: &str) -> LoadResult<Option<String>> {
    let mut found = None;
    client.read_pages("/api/deviceProfileInfos", name, |page, _| {
        found = page
            .iter()
            .find(|profile| profile["name"] == name)
            .and_then(id_of);
        found.is_none()
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_of_battery_devices_raise_and_clear_an_alarm() {
        for name in ["SMART_METER", "SMART_TRACKER"] {
            let profile = ProfileSpec::named(name).to_json();
            let alarm = &profile["profileData"]["alarms"][0];
            let predicate = |rule: &Value| {
                let predicate = &rule["condition"]["condition"][0]["predicate"];
                (
                    predicate["operation"].clone(),
                    predicate["value"]["defaultValue"].clone(),
                )
            };
            assert_eq!(profile["name"], name);
            assert_eq!(
                predicate(&alarm["createRules"]["CRITICAL"]),
                (json!("LESS_OR_EQUAL"), json!(10.0))
            );
            assert_eq!(predicate(&alarm["clearRule"]), (json!("GREATER"), json!(10.0)));
        }
        for name in ["INDUSTRIAL_PLC", "anything"] {
            assert_eq!(
                ProfileSpec::named(name).to_json()["profileData"]["alarms"],
                json!([])
            );
        }
    }
}
