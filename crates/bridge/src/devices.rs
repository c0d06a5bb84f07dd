//! Bridges to devices: topics become telemetry or attributes of devices, through the gateway API of the platform.

use fieldline_codec::{QoS, RetainHandling, SubscriptionOptions, topic};
use indexmap::IndexSet;
use serde_json::{Map, Value, json};

use crate::carrier::{Side, Translation};
use crate::leg::OutgoingMessage;
use crate::options::{DeviceBridge, TOPIC_PLACEHOLDER};
use crate::retries::RefusalCause;

const CONNECT: &str = "v1/gateway/connect";
const TELEMETRY: &str = "v1/gateway/telemetry";
const ATTRIBUTES: &str = "v1/gateway/attributes";
const RPC: &str = "v1/gateway/rpc";

const DISCONNECT: &str = "v1/gateway/disconnect";

/// Most devices that are connected at a time. The platform has a bound of its own, beyond this one.
const MOST_CONNECTED: usize = 40_000;
/// Longest name of a device, characters.
const MAX_NAME: usize = 255;
/// Bytes of a packet beyond its payload, at most.
const PACKET_OVERHEAD: usize = 64;

/// See the module.
pub(crate) struct DeviceTranslation {
    bridge: DeviceBridge,
    /// Devices of which the platform knows that they are there.
    connected: IndexSet<String>,
    /// Where in them the next one is that makes room.
    next_out: usize,
    /// Largest packet that the platform takes, bytes.
    max_packet: usize,
}

impl DeviceTranslation {
    /// Translates for a platform that takes packets of `max_packet` bytes.
    pub(crate) fn new(bridge: &DeviceBridge, max_packet: usize) -> Self {
        Self {
            bridge: bridge.clone(),
            connected: IndexSet::new(),
            next_out: 0,
            max_packet,
        }
    }

    /// Telemetry or attributes for a message; none for one that is no value.
    fn outward(&mut self, message: &OutgoingMessage) -> Vec<(Side, OutgoingMessage)> {
        let (bridge, topic) = (&self.bridge, message.topic.as_str());
        let device = filled_in(&bridge.device, topic);
        if device.is_empty()
            || device.chars().nth(MAX_NAME).is_some()
            || message.payload.len() > self.max_packet
        {
            return Vec::new();
        }
        let Some(values) = values_of(&message.payload, || match bridge.key.as_str() {
            "" => topic.rsplit('/').next().unwrap_or(topic).to_owned(),
            key => filled_in(key, topic),
        }) else {
            return Vec::new();
        };
        let mut body = Map::new();
        let (to, content) = match bridge.attributes {
            true => (ATTRIBUTES, attributes_of(values)),
            false if values.is_array() => (TELEMETRY, values),
            false => (TELEMETRY, json!([values])),
        };
        body.insert(device.clone(), content);
        let values = to_gateway(to, &Value::Object(body));
        let profile = filled_in(&bridge.profile, topic);
        let connect = to_gateway(CONNECT, &json!({ "device": device, "type": profile }));
        // A packet that the platform does not take would end the connection, again and again.
        if values.payload.len().max(connect.payload.len()) + PACKET_OVERHEAD > self.max_packet {
            return Vec::new();
        }
        let mut messages = Vec::with_capacity(3);
        if !self.connected.contains(&device) {
            if self.connected.len() >= MOST_CONNECTED {
                self.next_out = (self.next_out + 1) % MOST_CONNECTED;
                let out = self.connected.swap_remove_index(self.next_out);
                let disconnect = to_gateway(DISCONNECT, &json!({ "device": out }));
                messages.push((Side::Remote, disconnect));
            }
            messages.push((Side::Remote, connect));
            self.connected.insert(device);
        }
        messages.push((Side::Remote, values));
        messages
    }

    /// What the platform sends to a device, on the topic for its commands.
    fn inward(&self, message: &OutgoingMessage) -> Vec<(Side, OutgoingMessage)> {
        let Ok(body) = serde_json::from_slice::<Value>(&message.payload) else {
            return Vec::new();
        };
        let Some(device) = body.get("device").and_then(Value::as_str) else {
            return Vec::new();
        };
        let data = body.get("data").cloned().unwrap_or(Value::Null);
        let call = (message.topic == RPC)
            .then(|| data.get("method").and_then(Value::as_str))
            .flatten();
        let (method, content) = match call {
            Some(method) => (method, data.get("params").cloned().unwrap_or(Value::Null)),
            None if message.topic == ATTRIBUTES => ("attributes", data.clone()),
            None => return Vec::new(),
        };
        let topic = self.command_topic(device, method);
        let mut messages = Vec::with_capacity(2);
        if let Some(id) = data.get("id").filter(|_| call.is_some()) {
            // Whoever calls learns that it is on its way; what a device answers is on a topic of its own.
            let answer = json!({ "device": device, "id": id, "data": { "success": topic.is_some() } });
            messages.push((Side::Remote, to_gateway(RPC, &answer)));
        }
        messages.extend(topic.map(|topic| {
            let command = OutgoingMessage {
                topic,
                payload: match content {
                    Value::String(text) => text.into(),
                    content => content.to_string().into(),
                },
                qos: QoS::AtLeastOnce,
                ..OutgoingMessage::default()
            };
            (Side::Local, command)
        }));
        messages
    }

    /// The topic for what is sent to a device, if there is one. What the platform puts in names no further levels: a method could
    /// reach topics of others otherwise. Names of devices do where they are topics.
    fn command_topic(&self, device: &str, method: &str) -> Option<String> {
        let may_have_levels = self.bridge.device.contains(TOPIC_PLACEHOLDER);
        if method.contains('/') || (device.contains('/') && !may_have_levels) {
            return None;
        }
        let topic = filled_with(&self.bridge.command_topic, |name| match name {
            "device" => Some(device),
            "method" => Some(method),
            _ => None,
        });
        (topic::is_valid_name(&topic) && !topic.starts_with('$')).then_some(topic)
    }
}

impl Translation for DeviceTranslation {
    fn filters(&self, side: Side) -> Vec<(String, SubscriptionOptions)> {
        let once = SubscriptionOptions::new(QoS::AtLeastOnce);
        match side {
            Side::Local => {
                let options = SubscriptionOptions {
                    no_local: true,
                    // A value that was stored once is not stored again with each connection.
                    retain_handling: RetainHandling::SendIfNew,
                    ..once
                };
                vec![(self.bridge.filter.clone(), options)]
            }
            Side::Remote if self.bridge.command_topic.is_empty() => Vec::new(),
            Side::Remote => vec![(ATTRIBUTES.to_owned(), once), (RPC.to_owned(), once)],
        }
    }

    fn translate(&mut self, from: Side, message: &OutgoingMessage) -> Vec<(Side, OutgoingMessage)> {
        match from {
            Side::Local => self.outward(message),
            Side::Remote => self.inward(message),
        }
    }

    fn begin(&mut self) {
        self.connected.clear();
    }

    fn no_room_for(&mut self, message: &OutgoingMessage) -> RefusalCause {
        // Its device is not there then, and asked for again.
        self.connected
            .swap_remove(&filled_in(&self.bridge.device, &message.topic));
        // The tenant can have no more devices. Where it has sent too much, the platform ends the connection.
        RefusalCause::Message
    }
}

fn to_gateway(topic: &str, body: &Value) -> OutgoingMessage {
    OutgoingMessage {
        topic: topic.to_owned(),
        payload: body.to_string().into(),
        qos: QoS::AtLeastOnce,
        ..OutgoingMessage::default()
    }
}

/// A pattern with levels of a topic in it. A level that is not there is empty.
fn filled_in(pattern: &str, topic: &str) -> String {
    filled_with(pattern, |name| match (name, name.parse::<usize>()) {
        ("topic", _) => Some(topic),
        (_, Ok(level @ 1..)) => Some(topic.split('/').nth(level - 1).unwrap_or_default()),
        _ => None,
    })
}

/// A pattern with values in the place of the names that have one. What is put in is not looked at again.
fn filled_with<'a>(pattern: &str, value: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut filled = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some((before, from)) = rest.split_once("${") {
        filled.push_str(before);
        let found = from
            .split_once('}')
            .and_then(|(name, after)| Some((value(name)?, after)));
        match found {
            Some((value, after)) => {
                filled.push_str(value);
                rest = after;
            }
            None => {
                filled.push_str("${");
                rest = from;
            }
        }
    }
    filled.push_str(rest);
    filled
}

/// The values of a payload: those of a JSON object or of a list of them, or one value under a key of its own.
fn values_of(payload: &[u8], key: impl FnOnce() -> String) -> Option<Value> {
    let text = std::str::from_utf8(payload).ok()?;
    let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    match value {
        Value::Null => None,
        Value::Object(fields) if fields.is_empty() => None,
        Value::Object(_) => Some(value),
        Value::Array(values) if values.is_empty() => None,
        Value::Array(ref values) if values.iter().all(Value::is_object) => Some(value),
        Value::String(text) if text.is_empty() => None,
        scalar => {
            let key = key();
            (!key.is_empty()).then(|| json!({ key: scalar }))
        }
    }
}

/// Attributes of values that may have times.
fn attributes_of(values: Value) -> Value {
    let mut all = Map::new();
    let list = match values {
        Value::Array(list) => list,
        one => vec![one],
    };
    for one in list {
        let Value::Object(mut fields) = one else { continue };
        match (fields.contains_key("ts"), fields.remove("values")) {
            (true, Some(Value::Object(inner))) => all.extend(inner),
            (_, Some(other)) => {
                fields.insert("values".to_owned(), other);
                all.extend(fields);
            }
            (_, None) => all.extend(fields),
        }
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bridge() -> DeviceTranslation {
        let bridge = DeviceBridge {
            filter: "home/+/#".to_owned(),
            device: "Lamp ${2}".to_owned(),
            profile: "lamps".to_owned(),
            command_topic: "home/${device}/${method}".to_owned(),
            ..DeviceBridge::default()
        };
        DeviceTranslation::new(&bridge, 65_536)
    }

    fn sent(
        bridge: &mut DeviceTranslation,
        from: Side,
        topic: &str,
        payload: &str,
    ) -> Vec<(Side, String, Value)> {
        let message = OutgoingMessage {
            topic: topic.to_owned(),
            payload: payload.to_owned().into(),
            ..OutgoingMessage::default()
        };
        let sent = bridge.translate(from, &message).into_iter();
        sent.map(|(to, message)| {
            let text = String::from_utf8_lossy(&message.payload).into_owned();
            let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
            (to, message.topic, body)
        })
        .collect()
    }

    #[test]
    fn a_message_becomes_telemetry_of_its_device() {
        let mut bridge = bridge();
        let first = sent(&mut bridge, Side::Local, "home/7/power", "12.5");
        assert_eq!(
            first,
            [
                (
                    Side::Remote,
                    CONNECT.to_owned(),
                    json!({ "device": "Lamp 7", "type": "lamps" })
                ),
                (
                    Side::Remote,
                    TELEMETRY.to_owned(),
                    json!({ "Lamp 7": [{ "power": 12.5 }] })
                ),
            ]
        );
        for (payload, values) in [
            (r#"{"a":1,"b":"x"}"#, json!([{ "a": 1, "b": "x" }])),
            (
                r#"{"ts":5,"values":{"a":1}}"#,
                json!([{ "ts": 5, "values": { "a": 1 } }]),
            ),
            (r#"[{"a":1},{"a":2}]"#, json!([{ "a": 1 }, { "a": 2 }])),
            ("[1,2]", json!([{ "state": [1, 2] }])),
            ("true", json!([{ "state": true }])),
            ("ON", json!([{ "state": "ON" }])),
        ] {
            let got = sent(&mut bridge, Side::Local, "home/7/state", payload);
            assert_eq!(
                got,
                [(Side::Remote, TELEMETRY.to_owned(), json!({ "Lamp 7": values }))]
            );
        }
        for nothing in ["", "null", "{}", "[]"] {
            assert!(
                sent(&mut bridge, Side::Local, "home/7/state", nothing).is_empty(),
                "{nothing}"
            );
        }
        // What it becomes counts.
        let quotes = "\"".repeat(40_000);
        assert!(sent(&mut bridge, Side::Local, "home/7/state", &quotes).is_empty());
        bridge.begin();
        assert_eq!(
            sent(&mut bridge, Side::Local, "home/7/power", "1").len(),
            2,
            "it connects again"
        );
        // One that there was no room for is asked for again as well.
        let message = OutgoingMessage {
            topic: "home/7/power".to_owned(),
            ..OutgoingMessage::default()
        };
        assert_eq!(bridge.no_room_for(&message), RefusalCause::Message);
        assert_eq!(sent(&mut bridge, Side::Local, "home/7/power", "1").len(), 2);
    }

    #[test]
    fn one_device_too_many_takes_the_place_of_another_one() {
        let mut bridge = bridge();
        for device in 0..MOST_CONNECTED {
            sent(&mut bridge, Side::Local, &format!("home/{device}/a"), "1");
        }
        let more = sent(&mut bridge, Side::Local, "home/more/a", "1");
        let topics: Vec<_> = more.iter().map(|(_, topic, _)| topic.as_str()).collect();
        assert_eq!(topics, [DISCONNECT, CONNECT, TELEMETRY]);
        assert_eq!(more[0].2, json!({ "device": "Lamp 1" }));
        assert_eq!(bridge.connected.len(), MOST_CONNECTED);
        assert_eq!(
            sent(&mut bridge, Side::Local, "home/1/a", "1").len(),
            3,
            "it connects again"
        );
    }

    #[test]
    fn attributes_have_no_times() {
        let mut bridge = bridge();
        bridge.bridge.attributes = true;
        let got = sent(
            &mut bridge,
            Side::Local,
            "home/7/info",
            r#"{"ts":5,"values":{"model":"x"}}"#,
        );
        assert_eq!(
            got[1],
            (
                Side::Remote,
                ATTRIBUTES.to_owned(),
                json!({ "Lamp 7": { "model": "x" } })
            )
        );
    }

    #[test]
    fn what_is_sent_to_a_device_is_published() {
        let mut bridge = bridge();
        let attributes = r#"{"device":"Lamp 7","data":{"level":3}}"#;
        assert_eq!(
            sent(&mut bridge, Side::Remote, ATTRIBUTES, attributes),
            [(
                Side::Local,
                "home/Lamp 7/attributes".to_owned(),
                json!({ "level": 3 })
            )]
        );
        let call = r#"{"device":"Lamp 7","data":{"id":4,"method":"set","params":"ON"}}"#;
        let answer = json!({ "device": "Lamp 7", "id": 4, "data": { "success": true } });
        assert_eq!(
            sent(&mut bridge, Side::Remote, RPC, call),
            [
                (Side::Remote, RPC.to_owned(), answer),
                (Side::Local, "home/Lamp 7/set".to_owned(), json!("ON")),
            ]
        );
        // One that no topic can be for is answered as well.
        for (device, method) in [("#", "set"), ("Lamp 7", "+"), ("Lamp 7", "a/b"), ("a/b", "set")] {
            let call = json!({ "device": device, "data": { "id": 4, "method": method, "params": 1 } });
            let answer = json!({ "device": device, "id": 4, "data": { "success": false } });
            assert_eq!(
                sent(&mut bridge, Side::Remote, RPC, &call.to_string()),
                [(Side::Remote, RPC.to_owned(), answer)]
            );
        }
        let one_way = r#"{"device":"Lamp 7","data":{"method":"${device}","params":1}}"#;
        assert_eq!(
            sent(&mut bridge, Side::Remote, RPC, one_way),
            [(Side::Local, "home/Lamp 7/${device}".to_owned(), json!(1))]
        );
        bridge.bridge.device = "${topic}".to_owned();
        assert_eq!(
            sent(
                &mut bridge,
                Side::Remote,
                ATTRIBUTES,
                r#"{"device":"a/b","data":{}}"#
            ),
            [(Side::Local, "home/a/b/attributes".to_owned(), json!({}))]
        );
        for wrong in ["no JSON", "{}", r#"{"device":7}"#] {
            assert!(sent(&mut bridge, Side::Remote, RPC, wrong).is_empty());
        }
    }

    #[test]
    fn patterns_name_levels_of_a_topic() {
        for (pattern, expected) in [
            ("${1}-${3}", "a-c"),
            ("${topic}", "a/b/c"),
            ("${9}", ""),
            ("${0}${x}${", "${0}${x}${"),
            ("plain", "plain"),
        ] {
            assert_eq!(filled_in(pattern, "a/b/c"), expected);
        }
    }
}
