//! When a device that saves power can be reached: profiles of CoAP devices say how they do that, and a device may say it of
//! itself.

use std::time::Duration;

use fieldline_core::ports::StoreResult;
use fieldline_model::DeviceId;
use serde_json::Value;

use super::{DeviceDirectory, DeviceHandle};

/// How long a device is reached after it was heard that does not say.
const USUAL: Duration = Duration::from_secs(10);

/// For how long a device listens after it was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenWindow {
    /// How long.
    pub window: Duration,
    /// Whether its network pages it now and then as well (eDRX): one message may be sent beyond the window. Otherwise it sleeps
    /// until it sends something (PSM).
    pub is_paged: bool,
}

impl DeviceDirectory {
    /// For how long a device listens after it was heard; `None` for one that always does.
    ///
    /// # Errors
    /// The store failed.
    pub async fn listening(&self, device: &DeviceHandle) -> StoreResult<Option<ListenWindow>> {
        let (tenant, id) = (device.subject.tenant, DeviceId(device.subject.entity.id));
        let Some(own) = self.stores.devices.get(tenant, id).await? else {
            return Ok(None);
        };
        let profile = self
            .stores
            .device_profiles
            .get(tenant, device.settings().profile)
            .await?;
        let profile = profile.as_ref();
        let of_profile = profile.and_then(|profile| profile.transport_setting("clientSettings"));
        Ok(listening(
            own.device_data.get("transportConfiguration"),
            of_profile,
        ))
    }
}

/// What a device says itself goes before what its profile says, setting by setting.
fn listening(of_device: Option<&Value>, of_profile: Option<&Value>) -> Option<ListenWindow> {
    let setting = |name: &str| {
        [of_device, of_profile]
            .into_iter()
            .flatten()
            .find_map(|settings| settings.get(name).filter(|value| !value.is_null()))
    };
    let (timer, is_paged) = match setting("powerMode")?.as_str()? {
        "PSM" => ("psmActivityTimer", false),
        "E_DRX" => ("pagingTransmissionWindow", true),
        _ => return None,
    };
    let window = setting(timer).and_then(Value::as_u64).filter(|ms| *ms > 0);
    Some(ListenWindow {
        window: window.map_or(USUAL, Duration::from_millis),
        is_paged,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_device_goes_before_its_profile() {
        let profile = json!({"powerMode": "PSM", "psmActivityTimer": 2000, "pagingTransmissionWindow": null});
        let of = |device: Value| listening(Some(&device), Some(&profile));
        let window = |ms, is_paged| {
            Some(ListenWindow {
                window: Duration::from_millis(ms),
                is_paged,
            })
        };
        assert_eq!(of(json!({"type": "DEFAULT"})), window(2_000, false));
        assert_eq!(
            of(json!({"powerMode": null, "psmActivityTimer": 5})),
            window(5, false)
        );
        assert_eq!(of(json!({"powerMode": "E_DRX"})), window(10_000, true));
        assert_eq!(of(json!({"powerMode": "DRX"})), None);
        assert_eq!(listening(None, None), None);
    }
}
