//! The administration of the publish/subscribe MQTT broker, in the shapes of TBMQ.

mod node;
mod queues;
mod retained;
mod session;
mod shared_subscription;
mod statistics;
mod subscription;

use fieldline_core::ports::{BrokerAdmin, BrokerClientType};
use fieldline_core::queue_stats::SERVICE_ID;

use crate::endpoint::ApiRoutes;
use crate::error::{ApiError, ApiResult};
use crate::extract::missing;
use crate::state::ApiState;

/// The one node of the broker.
const NODE: &str = SERVICE_ID;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .merge(session::routes())
        .merge(subscription::routes())
        .merge(retained::routes())
        .merge(statistics::routes())
        .merge(node::routes())
        .merge(queues::routes())
        .merge(shared_subscription::routes())
}

/// Returns the administration of the broker.
fn admin_of(api: &ApiState) -> ApiResult<&dyn BrokerAdmin> {
    let admin = api.broker_admin.get();
    admin.map(|admin| &**admin).ok_or_else(|| {
        ApiError::not_found(
            "The MQTT broker is off: none of broker.listen, broker.tls-listen, broker.websocket-listen and \
             broker.websocket-tls-listen is set",
        )
    })
}

const fn type_name(client_type: BrokerClientType) -> &'static str {
    match client_type {
        BrokerClientType::Device => "DEVICE",
        BrokerClientType::Application => "APPLICATION",
    }
}

fn present(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

fn required(name: &str, text: Option<String>) -> ApiResult<String> {
    text.filter(|text| !text.trim().is_empty())
        .ok_or_else(|| missing(name))
}

/// Returns a period; both its ends have to be there.
fn period(start_time: Option<i64>, end_time: Option<i64>) -> Option<(i64, i64)> {
    start_time.zip(end_time)
}

/// Parses a comma-joined list.
fn list_of<T>(name: &str, list: Option<&str>, parse: impl Fn(&str) -> Option<T>) -> ApiResult<Vec<T>> {
    let texts = list.unwrap_or_default().split(',').map(str::trim);
    texts
        .filter(|text| !text.is_empty())
        .map(|text| {
            let unknown = || ApiError::bad_request(format!("Parameter '{name}' must not have '{text}'"));
            parse(text).ok_or_else(unknown)
        })
        .collect()
}

/// Returns what a list permits: everything, unless it has one value.
fn only<T: Copy>(list: &[T]) -> Option<T> {
    match list {
        [one] => Some(*one),
        _ => None,
    }
}

fn flags(name: &str, list: Option<&str>) -> ApiResult<Option<bool>> {
    let flags = list_of(name, list, |text| match text.to_ascii_lowercase().as_str() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    })?;
    Ok(only(&flags))
}

/// Parses a list of numbers from 0 to 2.
fn small_numbers(name: &str, list: Option<&str>) -> ApiResult<Vec<u8>> {
    list_of(name, list, |text| text.parse().ok().filter(|number| *number <= 2))
}
