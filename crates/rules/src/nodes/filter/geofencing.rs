//! A filter that checks where a thing is.

use std::sync::Arc;

use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::geofence::GeofenceConfig;
use crate::nodes::geofence::{self, GeofenceMatcher};

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "geo.TbGpsGeofencingFilterNode",
    name: "gps geofencing filter",
    description: "Checks whether the place in a message is within a perimeter.",
    default_configuration: geofence::default_configuration,
    schema: config_schema::of::<GeofenceConfig>,
    make,
    ..NodeType::FILTER
}];

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    Ok(Arc::new(GpsGeofencingFilterNode(GeofenceMatcher::new(
        config.parse()?,
    )?)))
}

struct GpsGeofencingFilterNode(GeofenceMatcher);

impl Node for GpsGeofencingFilterNode {
    fn handle(&self, _: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let inside = self.0.contains(&mut msg);
        NodeResult::filtered(msg, inside)
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::message::MsgType;
    use serde_json::{Value, json};

    use crate::nodes::tests::{World, nobody};

    const CLASS: &str = "geo.TbGpsGeofencingFilterNode";
    const SQUARE: &str = "[[0,0],[0,10],[10,10],[10,0]]";

    async fn label(
        world: &mut World,
        configuration: Value,
        body: Value,
        metadata: &[(&str, &str)],
    ) -> String {
        let node = world.node(CLASS, configuration);
        let metadata = metadata.iter().copied().collect();
        let msg = world.msg_with(MsgType::PostTelemetry, nobody(), &body, metadata);
        world.one(&node, msg).await.label
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn perimeters_are_configured_or_come_with_the_message() {
        let mut world = World::new().await;
        let at = |latitude: f64, longitude: f64| json!({"latitude": latitude, "longitude": longitude});
        let fixed = json!({"fetchPerimeterInfoFromMessageMetadata": false, "polygonsDefinition": SQUARE});
        let circle = json!({
            "fetchPerimeterInfoFromMessageMetadata": false, "perimeterType": "CIRCLE",
            "centerLatitude": 48.0, "centerLongitude": 16.0, "range": 1.0, "rangeUnit": "MILE",
        });
        let in_meta = json!({"perimeterType": "CIRCLE"});
        let place = r#"{"latitude": 48, "longitude": 16, "radius": 2, "radiusUnit": "KILOMETER"}"#;
        let old = json!({"perimeterKeyName": null});
        let old_circle = [
            ("centerLatitude", "48"),
            ("centerLongitude", "16"),
            ("range", "100"),
            ("rangeUnit", "METER"),
        ];
        for (configuration, body, metadata, expected) in [
            (fixed.clone(), at(5.0, 5.0), &[][..], "True"),
            (fixed.clone(), at(5.0, 11.0), &[], "False"),
            (
                fixed.clone(),
                json!({"latitude": "5"}),
                &[("longitude", "5.5")],
                "True",
            ),
            (
                fixed.clone(),
                json!({"latitude": "five"}),
                &[("longitude", "5.5")],
                "Failure",
            ),
            (fixed.clone(), json!({"latitude": 5}), &[], "Failure"),
            (fixed, json!([]), &[], "Failure"),
            (circle.clone(), at(48.0144, 16.0), &[], "True"),
            (circle, at(48.0146, 16.0), &[], "False"),
            (json!({}), at(5.0, 5.0), &[("ss_perimeter", SQUARE)], "True"),
            (json!({}), at(5.0, 5.0), &[], "Failure"),
            (
                in_meta.clone(),
                at(48.017, 16.0),
                &[("ss_perimeter", place)],
                "True",
            ),
            (in_meta, at(48.019, 16.0), &[("ss_perimeter", place)], "False"),
            (old.clone(), at(5.0, 5.0), &[("perimeter", SQUARE)], "True"),
            (old.clone(), at(48.0005, 16.0), &old_circle[..], "True"),
            (old.clone(), at(48.005, 16.0), &old_circle[..], "False"),
            (old, at(48.005, 16.0), &old_circle[..2], "Failure"),
        ] {
            let shown = format!("{configuration} {body} {metadata:?}");
            assert_eq!(
                label(&mut world, configuration, body, metadata).await,
                expected,
                "{shown}"
            );
        }
        let node = world.node(CLASS, json!({}));
        let mut msg = world.packed(nobody(), &at(5.0, 5.0));
        msg.meta.set("ss_perimeter", SQUARE);
        assert_eq!(world.one(&node, msg).await.label, "True");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_a_perimeter_needs_must_be_there() {
        let world = World::new().await;
        let fixed = |mut patch: Value| {
            patch["fetchPerimeterInfoFromMessageMetadata"] = json!(false);
            world.wrong(CLASS, patch)
        };
        assert_eq!(fixed(json!({})), "polygonsDefinition");
        assert_eq!(
            fixed(json!({"polygonsDefinition": "[[1]]"})),
            "polygonsDefinition"
        );
        assert_eq!(fixed(json!({"perimeterType": "CIRCLE", "range": 1})), "rangeUnit");
        assert_eq!(
            world.wrong(CLASS, json!({"latitudeKeyName": ""})),
            "latitudeKeyName"
        );
        assert_eq!(
            world.wrong(CLASS, json!({"perimeterType": "BOX"})),
            "perimeterType"
        );
    }
}
