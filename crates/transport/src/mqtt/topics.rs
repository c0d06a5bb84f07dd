//! The topics of the device API.

use fieldline_codec::{QoS, topic};
use fieldline_devices::directory::DeviceSettings;
use fieldline_devices::downlink::Subscriptions;
use fieldline_model::entity::OtaKind;

use crate::payload::PayloadFormat;

const V1_TELEMETRY: &str = "v1/devices/me/telemetry";
const V1_ATTRIBUTES: &str = "v1/devices/me/attributes";
const V1_ATTRIBUTES_REQUEST: &str = "v1/devices/me/attributes/request/";
const V1_ATTRIBUTES_RESPONSE: &str = "v1/devices/me/attributes/response/";
const V1_RPC_REQUEST: &str = "v1/devices/me/rpc/request/";
const V1_RPC_RESPONSE: &str = "v1/devices/me/rpc/response/";
const GATEWAY: &str = "v1/gateway";

/// The kind of message that a topic stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeviceTopic<'t> {
    Telemetry(TopicFamily),
    Attributes(TopicFamily),
    /// An attribute request; the response is published in this family.
    AttributeRequest {
        family: TopicFamily,
        id: &'t str,
    },
    /// An RPC request to the platform; the response is published in this family.
    Call {
        family: TopicFamily,
        id: &'t str,
    },
    /// A response to an RPC.
    Answer {
        family: TopicFamily,
        id: &'t str,
    },
    /// A request for a chunk of firmware or software.
    Chunk {
        kind: OtaKind,
        id: &'t str,
        number: &'t str,
    },
    /// A request to open the device for claiming.
    Claim,
    /// A gateway message, with the part of the topic after `v1/gateway`.
    Gateway(&'t str),
    Unknown,
}

/// Returns the kind of message that a device publishes on a topic.
pub(super) fn parse_topic<'t>(name: &'t str, settings: &DeviceSettings) -> DeviceTopic<'t> {
    // Attributes go first: a telemetry filter may be wide enough to match their topic too.
    if topic::matches(
        settings.attributes_topic.as_deref().unwrap_or(V1_ATTRIBUTES),
        name,
    ) {
        return DeviceTopic::Attributes(TopicFamily::V1);
    }
    if let Some(filter) = &settings.telemetry_topic
        && topic::matches(filter, name)
    {
        return DeviceTopic::Telemetry(TopicFamily::V1);
    }
    match name {
        V1_TELEMETRY if settings.telemetry_topic.is_none() => DeviceTopic::Telemetry(TopicFamily::V1),
        "v2/t" => DeviceTopic::Telemetry(TopicFamily::V2),
        "v2/t/j" => DeviceTopic::Telemetry(TopicFamily::V2Json),
        "v2/t/p" => DeviceTopic::Telemetry(TopicFamily::V2Protobuf),
        "v2/a" => DeviceTopic::Attributes(TopicFamily::V2),
        "v2/a/j" => DeviceTopic::Attributes(TopicFamily::V2Json),
        "v2/a/p" => DeviceTopic::Attributes(TopicFamily::V2Protobuf),
        "v1/devices/me/claim" => DeviceTopic::Claim,
        other => prefixed(other),
    }
}

fn prefixed(name: &str) -> DeviceTopic<'_> {
    // Of two prefixes, one of which begins with the other, the longer goes first.
    for family in [
        TopicFamily::V1,
        TopicFamily::V2Json,
        TopicFamily::V2Protobuf,
        TopicFamily::V2,
    ] {
        if let Some(id) = name.strip_prefix(family.attribute_requests()) {
            return DeviceTopic::AttributeRequest { family, id };
        }
        if let Some(id) = name.strip_prefix(family.calls()) {
            return DeviceTopic::Call { family, id };
        }
        if let Some(id) = name.strip_prefix(family.answers()) {
            return DeviceTopic::Answer { family, id };
        }
    }
    for (kind, prefix) in [
        (OtaKind::Firmware, "v2/fw/request/"),
        (OtaKind::Software, "v2/sw/request/"),
    ] {
        let chunk = name
            .strip_prefix(prefix)
            .and_then(|rest| rest.split_once("/chunk/"));
        if let Some((id, number)) = chunk {
            return DeviceTopic::Chunk { kind, id, number };
        }
    }
    match name.strip_prefix(GATEWAY) {
        Some(rest) => DeviceTopic::Gateway(rest),
        None => DeviceTopic::Unknown,
    }
}

/// The filters a device may subscribe to. They are compared as text, and no other filter is granted.
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

/// Code of the profile's own filter for updates of shared attributes.
const CUSTOM_ATTRIBUTES: u8 = FILTERS.len() as u8;

/// Returns the code of a filter that a device may subscribe to; a session stores the code instead of the text.
pub(super) fn filter_code(filter: &str, settings: &DeviceSettings) -> Option<u8> {
    let known = FILTERS
        .iter()
        .position(|known| *known == filter)
        .and_then(|at| u8::try_from(at).ok());
    // The filter is matched against the profile's filter as if it were a topic, wildcards included.
    let custom = || {
        let own = settings.attributes_subscription.as_deref()?;
        topic::matches(own, filter).then_some(CUSTOM_ATTRIBUTES)
    };
    known.or_else(custom)
}

/// The families of topics, which differ in length and in the format of payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum TopicFamily {
    #[default]
    V1,
    V2,
    V2Json,
    V2Protobuf,
}

impl TopicFamily {
    /// Topic of updates of shared attributes.
    pub(super) const fn attributes(self) -> &'static str {
        match self {
            Self::V1 => V1_ATTRIBUTES,
            Self::V2 => "v2/a",
            Self::V2Json => "v2/a/j",
            Self::V2Protobuf => "v2/a/p",
        }
    }

    /// Topic of attribute requests, without the number.
    pub(super) const fn attribute_requests(self) -> &'static str {
        match self {
            Self::V1 => V1_ATTRIBUTES_REQUEST,
            Self::V2 => "v2/a/req/",
            Self::V2Json => "v2/a/req/j/",
            Self::V2Protobuf => "v2/a/req/p/",
        }
    }

    /// Topic of attribute responses, without the number.
    pub(super) const fn attribute_answers(self) -> &'static str {
        match self {
            Self::V1 => V1_ATTRIBUTES_RESPONSE,
            Self::V2 => "v2/a/res/",
            Self::V2Json => "v2/a/res/j/",
            Self::V2Protobuf => "v2/a/res/p/",
        }
    }

    /// Payload format of messages from the device in this family.
    pub(super) fn uplink_format(self, settings: &DeviceSettings) -> PayloadFormat<'_> {
        let payloads = settings.mqtt_payloads.as_deref();
        match self {
            Self::V1 | Self::V2 => PayloadFormat::uplink(payloads),
            Self::V2Json => PayloadFormat::Json,
            Self::V2Protobuf => PayloadFormat::Protobuf(payloads),
        }
    }

    /// Payload format of messages to the device in this family.
    pub(super) fn downlink_format(self, settings: &DeviceSettings) -> PayloadFormat<'_> {
        let payloads = settings.mqtt_payloads.as_deref();
        match self {
            Self::V1 if payloads.is_some_and(|payloads| payloads.json_downlinks) => PayloadFormat::Json,
            Self::V1 | Self::V2 => PayloadFormat::downlink(payloads),
            Self::V2Json => PayloadFormat::Json,
            Self::V2Protobuf => PayloadFormat::Protobuf(payloads),
        }
    }

    /// Topic of RPC requests to the device, without the number.
    pub(super) const fn calls(self) -> &'static str {
        match self {
            Self::V1 => V1_RPC_REQUEST,
            Self::V2 => "v2/r/req/",
            Self::V2Json => "v2/r/req/j/",
            Self::V2Protobuf => "v2/r/req/p/",
        }
    }

    /// Topic of responses to the device's RPC requests, without the number.
    pub(super) const fn answers(self) -> &'static str {
        match self {
            Self::V1 => V1_RPC_RESPONSE,
            Self::V2 => "v2/r/res/",
            Self::V2Json => "v2/r/res/j/",
            Self::V2Protobuf => "v2/r/res/p/",
        }
    }
}

/// The subscription that a filter stands for, and the family of its messages.
fn stream(filter: u8) -> Option<(Subscriptions, TopicFamily)> {
    Some(match FILTERS.get(usize::from(filter)).copied() {
        Some(V1_ATTRIBUTES) | None => (Subscriptions::ATTRIBUTES, TopicFamily::V1),
        Some("v2/a") => (Subscriptions::ATTRIBUTES, TopicFamily::V2),
        Some("v2/a/j") => (Subscriptions::ATTRIBUTES, TopicFamily::V2Json),
        Some("v2/a/p") => (Subscriptions::ATTRIBUTES, TopicFamily::V2Protobuf),
        Some("v1/devices/me/rpc/request/+") => (Subscriptions::RPC, TopicFamily::V1),
        Some("v2/r/req/+") => (Subscriptions::RPC, TopicFamily::V2),
        Some("v2/r/req/j/+") => (Subscriptions::RPC, TopicFamily::V2Json),
        Some("v2/r/req/p/+") => (Subscriptions::RPC, TopicFamily::V2Protobuf),
        Some(_) => return None,
    })
}

/// The filters a device has subscribed to, one bit per code, with the granted QoS.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct GrantedFilters {
    filters: u32,
    at_least_once: u32,
    /// Family of updates of shared attributes.
    pub(super) attributes: TopicFamily,
    /// Family of RPC requests to the device.
    pub(super) calls: TopicFamily,
    /// Family of the device's last RPC request.
    pub(super) answers: TopicFamily,
}

// Leaves one bit for the profile's own filter.
const _: () = assert!(FILTERS.len() < u32::BITS as usize);

impl GrantedFilters {
    /// Grants the filter with that code, and returns the granted QoS.
    pub(super) fn grant(&mut self, filter: u8, wanted: QoS) -> QoS {
        self.revoke(filter);
        self.filters |= 1 << filter;
        match stream(filter) {
            Some((Subscriptions::ATTRIBUTES, family)) => self.attributes = family,
            Some((_, family)) => self.calls = family,
            None => {}
        }
        if wanted == QoS::AtMostOnce {
            return QoS::AtMostOnce;
        }
        self.at_least_once |= 1 << filter;
        QoS::AtLeastOnce
    }

    /// Revokes a filter. Returns whether it was granted.
    pub(super) fn revoke(&mut self, filter: u8) -> bool {
        let was_granted = self.filters & 1 << filter != 0;
        self.filters &= !(1 << filter);
        self.at_least_once &= !(1 << filter);
        was_granted
    }

    /// Whether a filter for this subscription is granted.
    pub(super) fn wants(&self, wants: Subscriptions) -> bool {
        (0..=CUSTOM_ATTRIBUTES)
            .filter(|filter| self.filters & 1 << filter != 0)
            .any(|filter| stream(filter).is_some_and(|(wanted, _)| wanted == wants))
    }

    /// The QoS of updates of shared attributes.
    pub(super) fn attributes_qos(&self) -> QoS {
        // A device that subscribed by its profile's filter gets updates on the standard topic.
        let custom = self.filters & 1 << CUSTOM_ATTRIBUTES != 0;
        let at_most_once = custom && self.at_least_once & 1 << CUSTOM_ATTRIBUTES == 0;
        self.qos_of(self.attributes.attributes())
            .unwrap_or(match at_most_once {
                true => QoS::AtMostOnce,
                false => QoS::AtLeastOnce,
            })
    }

    /// The QoS granted for messages on a topic, if a filter matches it.
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
            attributes_subscription: None,
            of_device: Default::default(),
            of_gateway_itself: Default::default(),
            of_gateway: Default::default(),
            of_tenant: Default::default(),
            mqtt_payloads: None,
            coap_payloads: None,
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
            ("v2/a/req/p/7", "v2/a/res/p/"),
        ] {
            let settings = settings();
            let DeviceTopic::AttributeRequest { family, id: "7" } = parse_topic(name, &settings) else {
                panic!("{name} asks for attributes");
            };
            assert_eq!(family.attribute_answers(), answer);
        }
    }

    #[test]
    fn a_custom_topic_replaces_the_default_one_and_leaves_the_short_ones() {
        let custom = DeviceSettings {
            telemetry_topic: Some("meters/+/data".to_owned()),
            ..settings()
        };
        assert_eq!(
            parse_topic("meters/7/data", &custom),
            DeviceTopic::Telemetry(TopicFamily::V1)
        );
        assert_eq!(parse_topic(V1_TELEMETRY, &custom), DeviceTopic::Unknown);
        assert_eq!(
            parse_topic("v2/t", &custom),
            DeviceTopic::Telemetry(TopicFamily::V2)
        );
    }

    #[test]
    fn a_wide_telemetry_filter_leaves_attributes_alone() {
        let wide = DeviceSettings {
            telemetry_topic: Some("#".to_owned()),
            ..settings()
        };
        assert_eq!(
            parse_topic(V1_ATTRIBUTES, &wide),
            DeviceTopic::Attributes(TopicFamily::V1)
        );
        assert_eq!(
            parse_topic("anything/else", &wide),
            DeviceTopic::Telemetry(TopicFamily::V1)
        );
    }

    #[test]
    fn a_filter_is_granted_with_its_latest_quality_of_service_until_it_is_taken_back() {
        let rpc = filter_code("v1/devices/me/rpc/request/+", &settings()).expect("a known filter");
        let attributes = filter_code(V1_ATTRIBUTES, &settings()).expect("a known filter");
        let mut granted = GrantedFilters::default();
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
        assert!(filter_code("v1/devices/me/rpc/request/+", &settings()).is_some());
        for other in [
            "#",
            "v1/devices/me/#",
            "v1/devices/me/rpc/request/5",
            "$share/g/v2/a",
        ] {
            assert_eq!(filter_code(other, &settings()), None);
        }
    }

    #[test]
    fn what_a_session_wants_follows_its_filters_and_the_last_one_names_the_family() {
        let custom = DeviceSettings {
            attributes_subscription: Some("my/attributes/#".to_owned()),
            ..settings()
        };
        let code = |filter: &str| filter_code(filter, &custom).expect("a known filter");
        let mut granted = GrantedFilters::default();
        granted.grant(code("v2/a/j"), QoS::AtMostOnce);
        assert!(granted.wants(Subscriptions::ATTRIBUTES) && !granted.wants(Subscriptions::RPC));
        assert_eq!(
            (granted.attributes, granted.attributes_qos()),
            (TopicFamily::V2Json, QoS::AtMostOnce)
        );
        granted.grant(code("my/attributes/#"), QoS::AtLeastOnce);
        granted.grant(code("v2/r/req/+"), QoS::AtLeastOnce);
        assert_eq!(
            (granted.attributes, granted.calls),
            (TopicFamily::V1, TopicFamily::V2)
        );
        assert_eq!(granted.attributes_qos(), QoS::AtLeastOnce);
        granted.revoke(code("v2/a/j"));
        assert!(granted.wants(Subscriptions::ATTRIBUTES));
        granted.revoke(code("my/attributes/#"));
        assert!(!granted.wants(Subscriptions::ATTRIBUTES) && granted.wants(Subscriptions::RPC));
        assert_eq!(filter_code("my/attributes/#", &settings()), None);
        assert_eq!(
            filter_code("my/attributes/7", &custom),
            filter_code("my/attributes/+", &custom)
        );
        assert_eq!(filter_code("your/attributes/7", &custom), None);
    }

    #[test]
    fn calls_and_answers_are_told_from_each_other_in_every_family() {
        let at = |name| parse_topic(name, &settings());
        let (family, id) = (TopicFamily::V2, "7");
        assert_eq!(at("v2/r/req/7"), DeviceTopic::Call { family, id });
        let family = TopicFamily::V2Json;
        assert_eq!(at("v2/r/req/j/7"), DeviceTopic::Call { family, id });
        for (name, family) in [
            ("v1/devices/me/rpc/response/7", TopicFamily::V1),
            ("v2/r/res/7", TopicFamily::V2),
            ("v2/r/res/j/7", TopicFamily::V2Json),
            ("v2/r/res/p/7", TopicFamily::V2Protobuf),
        ] {
            assert_eq!(at(name), DeviceTopic::Answer { family, id });
        }
    }
}
