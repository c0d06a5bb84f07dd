//! The topics of the device API.

use fieldline_codec::{QoS, topic};
use fieldline_core::devices::DeviceSettings;

const V1_TELEMETRY: &str = "v1/devices/me/telemetry";
const V1_ATTRIBUTES: &str = "v1/devices/me/attributes";
const V1_ATTRIBUTES_REQUEST: &str = "v1/devices/me/attributes/request/";
const V1_ATTRIBUTES_RESPONSE: &str = "v1/devices/me/attributes/response/";
const V1_RPC_REQUEST: &str = "v1/devices/me/rpc/request/";
const V1_RPC_RESPONSE: &str = "v1/devices/me/rpc/response/";
const GATEWAY: &str = "v1/gateway";

/// What a device publishes on a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Uplink<'t> {
    Telemetry(Format),
    Attributes(Format),
    /// Asks for attributes; the answer goes to this topic prefix, followed by the id.
    AttributeRequest {
        format: Format,
        answer: &'static str,
        id: &'t str,
    },
    /// Calls a procedure of the platform.
    Rpc {
        id: &'t str,
    },
    /// Speaks for other devices, which is not served yet: the message is not acknowledged, so the gateway keeps it.
    Gateway,
    Unknown,
}

/// Format of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Protobuf,
}

/// What a device means by publishing on a topic.
pub(super) fn uplink<'t>(name: &'t str, settings: &DeviceSettings) -> Uplink<'t> {
    // A telemetry filter may be wide enough to match attributes too.
    if topic::matches(
        settings.attributes_topic.as_deref().unwrap_or(V1_ATTRIBUTES),
        name,
    ) {
        return Uplink::Attributes(Format::Json);
    }
    if let Some(filter) = &settings.telemetry_topic
        && topic::matches(filter, name)
    {
        return Uplink::Telemetry(Format::Json);
    }
    match name {
        V1_TELEMETRY if settings.telemetry_topic.is_none() => Uplink::Telemetry(Format::Json),
        "v2/t" | "v2/t/j" => Uplink::Telemetry(Format::Json),
        "v2/t/p" => Uplink::Telemetry(Format::Protobuf),
        "v2/a" | "v2/a/j" => Uplink::Attributes(Format::Json),
        "v2/a/p" => Uplink::Attributes(Format::Protobuf),
        other => prefixed(other),
    }
}

fn prefixed(name: &str) -> Uplink<'_> {
    // The longer prefix of a pair stands first.
    let requests = [
        (V1_ATTRIBUTES_REQUEST, Format::Json, V1_ATTRIBUTES_RESPONSE),
        ("v2/a/req/j/", Format::Json, "v2/a/res/j/"),
        ("v2/a/req/p/", Format::Protobuf, "v2/a/res/p/"),
        ("v2/a/req/", Format::Json, "v2/a/res/"),
    ];
    for (prefix, format, answer) in requests {
        if let Some(id) = name.strip_prefix(prefix) {
            return Uplink::AttributeRequest { format, answer, id };
        }
    }
    if let Some(id) = name.strip_prefix(V1_RPC_REQUEST) {
        return Uplink::Rpc { id };
    }
    if name.starts_with(GATEWAY) {
        Uplink::Gateway
    } else {
        Uplink::Unknown
    }
}

/// Prefix of the topic that a call of the platform is answered on.
pub(super) const RPC_ANSWER: &str = V1_RPC_RESPONSE;

/// The filters a device may subscribe to; they are compared as texts, and no other is granted.
const FILTERS: [&str; 23] = [
    V1_ATTRIBUTES,
    "v1/devices/me/attributes/response/+",
    "v1/devices/me/rpc/request/+",
    "v1/devices/me/rpc/response/+",
    "v1/gateway/attributes",
    "v1/gateway/attributes/response",
    "v1/gateway/rpc",
    "v2/a",
    "v2/a/j",
    "v2/a/p",
    "v2/a/res/+",
    "v2/a/res/j/+",
    "v2/a/res/p/+",
    "v2/r/req/+",
    "v2/r/req/j/+",
    "v2/r/req/p/+",
    "v2/r/res/+",
    "v2/r/res/j/+",
    "v2/r/res/p/+",
    "v2/fw/response/+/chunk/+",
    "v2/fw/error",
    "v2/sw/response/+/chunk/+",
    "v2/sw/error",
];

/// Number of a filter a device may subscribe to; a session keeps it in place of the text.
pub(super) fn filter_code(filter: &str) -> Option<u8> {
    FILTERS
        .iter()
        .position(|known| *known == filter)
        .and_then(|at| u8::try_from(at).ok())
}

/// The filters a device has subscribed to, one bit for each number, with the granted quality of service.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Granted {
    filters: u32,
    at_least_once: u32,
}

const _: () = assert!(FILTERS.len() <= u32::BITS as usize);

impl Granted {
    /// Grants the filter of that number, and returns the quality of service.
    pub(super) fn grant(&mut self, filter: u8, wanted: QoS) -> QoS {
        self.revoke(filter);
        self.filters |= 1 << filter;
        if wanted == QoS::AtMostOnce {
            return QoS::AtMostOnce;
        }
        self.at_least_once |= 1 << filter;
        QoS::AtLeastOnce
    }

    /// Takes a filter back. Returns whether it was granted.
    pub(super) fn revoke(&mut self, filter: u8) -> bool {
        let was_granted = self.filters & 1 << filter != 0;
        self.filters &= !(1 << filter);
        self.at_least_once &= !(1 << filter);
        was_granted
    }

    /// The quality of service that messages on a topic were granted, if a filter matches it.
    pub(super) fn qos_of(&self, name: &str) -> Option<QoS> {
        let mut matching = (0..)
            .zip(FILTERS)
            .filter(|(number, filter)| self.filters & 1 << number != 0 && topic::matches(filter, name));
        let (number, _): (u32, _) = matching.next()?;
        Some(match self.at_least_once & 1 << number {
            0 => QoS::AtMostOnce,
            _ => QoS::AtLeastOnce,
        })
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::{DeviceProfileId, TenantProfileId};

    use super::*;

    fn settings() -> DeviceSettings {
        DeviceSettings {
            queue: None,
            profile: DeviceProfileId::NULL,
            tenant_profile: TenantProfileId::NULL,
            ttl_seconds: 0,
            ack_on_validation_error: false,
            telemetry_topic: None,
            attributes_topic: None,
            message_limits: [None, None, None],
            rates: Default::default(),
            tenant_rates: Default::default(),
        }
    }

    #[test]
    fn an_answer_goes_to_the_family_of_the_request() {
        for (name, answer) in [
            (
                "v1/devices/me/attributes/request/7",
                "v1/devices/me/attributes/response/",
            ),
            ("v2/a/req/7", "v2/a/res/"),
            ("v2/a/req/j/7", "v2/a/res/j/"),
        ] {
            assert_eq!(
                uplink(name, &settings()),
                Uplink::AttributeRequest {
                    format: Format::Json,
                    answer,
                    id: "7"
                }
            );
        }
    }

    #[test]
    fn a_custom_topic_replaces_the_default_one_and_leaves_the_short_ones() {
        let custom = DeviceSettings {
            telemetry_topic: Some("meters/+/data".to_owned()),
            ..settings()
        };
        assert_eq!(uplink("meters/7/data", &custom), Uplink::Telemetry(Format::Json));
        assert_eq!(uplink(V1_TELEMETRY, &custom), Uplink::Unknown);
        assert_eq!(uplink("v2/t", &custom), Uplink::Telemetry(Format::Json));
    }

    #[test]
    fn a_wide_telemetry_filter_leaves_attributes_alone() {
        let wide = DeviceSettings {
            telemetry_topic: Some("#".to_owned()),
            ..settings()
        };
        assert_eq!(uplink(V1_ATTRIBUTES, &wide), Uplink::Attributes(Format::Json));
        assert_eq!(uplink("anything/else", &wide), Uplink::Telemetry(Format::Json));
    }

    #[test]
    fn a_filter_is_granted_with_its_latest_quality_of_service_until_it_is_taken_back() {
        let rpc = filter_code("v1/devices/me/rpc/request/+").expect("a known filter");
        let attributes = filter_code(V1_ATTRIBUTES).expect("a known filter");
        let mut granted = Granted::default();
        assert_eq!(granted.grant(attributes, QoS::AtMostOnce), QoS::AtMostOnce);
        assert_eq!(granted.grant(rpc, QoS::ExactlyOnce), QoS::AtLeastOnce);
        assert_eq!(
            granted.qos_of("v1/devices/me/rpc/request/7"),
            Some(QoS::AtLeastOnce)
        );
        assert_eq!(granted.grant(rpc, QoS::AtMostOnce), QoS::AtMostOnce);
        assert_eq!(
            granted.qos_of("v1/devices/me/rpc/request/7"),
            Some(QoS::AtMostOnce)
        );
        assert!(granted.revoke(rpc) && !granted.revoke(rpc));
        assert_eq!(granted.qos_of("v1/devices/me/rpc/request/7"), None);
        assert_eq!(granted.qos_of(V1_ATTRIBUTES), Some(QoS::AtMostOnce));
    }

    #[test]
    fn only_literal_filters_have_a_number() {
        assert!(filter_code("v1/devices/me/rpc/request/+").is_some());
        for other in [
            "#",
            "v1/devices/me/#",
            "v1/devices/me/rpc/request/5",
            "$share/g/v2/a",
        ] {
            assert_eq!(filter_code(other), None);
        }
    }
}
