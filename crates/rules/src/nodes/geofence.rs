//! Perimeters that messages are checked against: configured, or in their metadata.

use fieldline_calculated_fields::perimeter::{GeoPoint, Perimeter};
use fieldline_model::kv::{KvValueRef, unpack};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::text::as_double;
use crate::message::{MessageBody, RuleMessage};
use crate::node::{NodeConfigError, NodeError};

/// Kind of a perimeter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum PerimeterType {
    Polygon,
    Circle,
}

/// Unit of a distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum RangeUnit {
    Meter,
    Kilometer,
    Foot,
    Mile,
    NauticalMile,
}

impl RangeUnit {
    fn metres(self, distance: f64) -> f64 {
        let of_a_kilometre = match self {
            Self::Meter => return distance,
            Self::Kilometer => 1.0,
            Self::Foot => 3280.84,
            Self::Mile => 0.62137,
            Self::NauticalMile => 0.539_957,
        };
        distance / of_a_kilometre * 1000.0
    }

    fn from_name(name: &str) -> Result<Self, NodeError> {
        let unit = Self::deserialize(&Value::from(name));
        unit.map_err(|_| NodeError::new(format!("unknown unit of the perimeter's range: {name}")))
    }
}

/// The part of a configuration that says which perimeter counts.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GeofenceConfig {
    #[schemars(title = "Latitude key")]
    latitude_key_name: String,
    #[schemars(title = "Longitude key")]
    longitude_key_name: String,
    #[serde(default)]
    perimeter_type: Option<PerimeterType>,
    #[serde(default)]
    #[schemars(title = "Perimeter from the metadata")]
    fetch_perimeter_info_from_message_metadata: bool,
    #[serde(default)]
    #[schemars(title = "Perimeter key")]
    perimeter_key_name: Option<String>,
    #[serde(default)]
    #[schemars(title = "Polygon", description = "[[latitude, longitude], …]", extend("x-editor" = "json"))]
    polygons_definition: Option<String>,
    #[serde(default)]
    center_latitude: Option<f64>,
    #[serde(default)]
    center_longitude: Option<f64>,
    #[serde(default)]
    range: Option<f64>,
    #[serde(default)]
    range_unit: Option<RangeUnit>,
}

/// A perimeter and where the places come from.
#[derive(Debug)]
pub(crate) struct GeofenceMatcher {
    latitude: String,
    longitude: String,
    source: PerimeterSource,
}

#[derive(Debug)]
enum PerimeterSource {
    /// The same for all messages.
    Fixed(Perimeter),
    /// A value of the metadata.
    Meta(String, PerimeterType),
    /// Values of the metadata whose names cannot be chosen, as in the oldest configurations.
    OldMeta,
}

/// The defaults of a configuration.
pub(crate) fn default_configuration() -> Value {
    json!({
        "latitudeKeyName": "latitude",
        "longitudeKeyName": "longitude",
        "perimeterType": "POLYGON",
        "fetchPerimeterInfoFromMessageMetadata": true,
        "perimeterKeyName": "ss_perimeter",
        "polygonsDefinition": null,
        "centerLatitude": null,
        "centerLongitude": null,
        "range": null,
        "rangeUnit": null,
    })
}

impl GeofenceMatcher {
    /// The perimeter of a configuration.
    ///
    /// # Errors
    /// A field that the perimeter needs is missing or wrong.
    pub(crate) fn new(config: GeofenceConfig) -> Result<Self, NodeConfigError> {
        let missing = |field: &str| NodeConfigError::new(field, "must be given");
        let kind = config.perimeter_type.ok_or_else(|| missing("perimeterType"));
        let key = config.perimeter_key_name.filter(|key| !key.is_empty());
        let source = match (config.fetch_perimeter_info_from_message_metadata, key) {
            (true, Some(key)) => PerimeterSource::Meta(key, kind?),
            (true, None) => PerimeterSource::OldMeta,
            (false, _) if kind? == PerimeterType::Circle => {
                let range = config.range.ok_or_else(|| missing("range"))?;
                let unit = config.range_unit.ok_or_else(|| missing("rangeUnit"))?;
                PerimeterSource::Fixed(Perimeter::Circle {
                    middle: (
                        config.center_latitude.ok_or_else(|| missing("centerLatitude"))?,
                        config
                            .center_longitude
                            .ok_or_else(|| missing("centerLongitude"))?,
                    ),
                    radius: unit.metres(range),
                })
            }
            (false, _) => {
                let text = config.polygons_definition.filter(|text| !text.trim().is_empty());
                let polygons = polygon(&text.ok_or_else(|| missing("polygonsDefinition"))?);
                PerimeterSource::Fixed(
                    polygons.map_err(|problem| NodeConfigError::new("polygonsDefinition", problem))?,
                )
            }
        };
        for (field, key) in [
            ("latitudeKeyName", &config.latitude_key_name),
            ("longitudeKeyName", &config.longitude_key_name),
        ] {
            if key.is_empty() {
                return Err(missing(field));
            }
        }
        Ok(Self {
            latitude: config.latitude_key_name,
            longitude: config.longitude_key_name,
            source,
        })
    }

    /// Whether the place of a message is inside.
    ///
    /// # Errors
    /// The message has no place, or no perimeter where it should.
    pub(crate) fn contains(&self, msg: &mut RuleMessage) -> Result<bool, NodeError> {
        let place = (
            coordinate(msg, &self.latitude)?,
            coordinate(msg, &self.longitude)?,
        );
        let inside = |perimeter: &Perimeter, place: GeoPoint| perimeter.contains(place);
        match &self.source {
            PerimeterSource::Fixed(perimeter) => Ok(inside(perimeter, place)),
            PerimeterSource::Meta(key, kind) => Ok(inside(&from_meta(msg, key, *kind)?, place)),
            PerimeterSource::OldMeta => Ok(inside(&from_old_meta(msg)?, place)),
        }
    }
}

fn polygon(text: &str) -> Result<Perimeter, String> {
    match serde_json::from_str::<Value>(text) {
        Ok(json @ Value::Array(_)) => Perimeter::from_json(&json),
        Ok(_) => Err("expected an array of corners or polygons".to_owned()),
        Err(error) => Err(format!("not JSON: {error}")),
    }
}

fn from_meta(msg: &RuleMessage, key: &str, kind: PerimeterType) -> Result<Perimeter, NodeError> {
    let text = msg.meta.get(key).filter(|text| !text.is_empty());
    let text = text
        .ok_or_else(|| NodeError::new(format!("missing perimeter definition: the metadata has no {key}")))?;
    let wrong = |problem: String| NodeError::new(format!("wrong perimeter in {key}: {problem}"));
    if kind == PerimeterType::Polygon {
        return polygon(&text).map_err(wrong);
    }
    let json: Value = serde_json::from_str(&text).map_err(|error| wrong(format!("not JSON: {error}")))?;
    let number = |name: &str| {
        let value = json.get(name).map(as_double);
        value.ok_or_else(|| wrong(format!("`{name}` of the circle is missing")))
    };
    let unit = match json.get("radiusUnit") {
        Some(unit) => RangeUnit::from_name(unit.as_str().unwrap_or_default())?,
        None => RangeUnit::Meter,
    };
    Ok(Perimeter::Circle {
        middle: (number("latitude")?, number("longitude")?),
        radius: unit.metres(number("radius")?),
    })
}

fn from_old_meta(msg: &RuleMessage) -> Result<Perimeter, NodeError> {
    let text = |key: &str| msg.meta.get(key).filter(|text| !text.is_empty());
    if let Some(polygons) = text("perimeter") {
        return polygon(&polygons).map_err(|problem| NodeError::new(format!("wrong perimeter: {problem}")));
    }
    let number = |key: &str| {
        let number = text(key).and_then(|text| text.trim().parse::<f64>().ok());
        number.ok_or_else(|| NodeError::new(format!("missing perimeter definition: {key} is no number")))
    };
    Ok(Perimeter::Circle {
        middle: (number("centerLatitude")?, number("centerLongitude")?),
        radius: RangeUnit::from_name(&text("rangeUnit").unwrap_or_default())?.metres(number("range")?),
    })
}

/// A coordinate from the body, or else from the metadata.
fn coordinate(msg: &mut RuleMessage, key: &str) -> Result<f64, NodeError> {
    let no_number = || NodeError::new(format!("{key} of the message is no number"));
    let in_body = if let MessageBody::Packed(bytes) = &msg.data {
        match unpack(bytes)
            .filter_map(Result::ok)
            .filter(|(name, _)| *name == key)
            .last()
        {
            Some((_, KvValueRef::Text(text))) => Some(text.trim().parse().map_err(|_| no_number())?),
            found => found.and_then(|(_, value)| value.as_number()),
        }
    } else {
        let body = msg.data.to_json()?;
        let body = body
            .as_object()
            .ok_or_else(|| NodeError::new("the body is no JSON object"))?;
        match body.get(key) {
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::String(text)) => Some(text.trim().parse().map_err(|_| no_number())?),
            _ => None,
        }
    };
    let value: Option<f64> = match in_body {
        Some(value) => Some(value),
        None => match msg.meta.get(key).filter(|text| !text.is_empty()) {
            Some(text) => Some(text.trim().parse().map_err(|_| no_number())?),
            None => None,
        },
    };
    let value =
        value.ok_or_else(|| NodeError::new(format!("the message has no {key} in body or metadata")))?;
    if value.is_finite() {
        Ok(value)
    } else {
        Err(no_number())
    }
}
