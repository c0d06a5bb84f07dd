//! Perimeters: circles and polygons on a map, and whether a place is inside.
//!
//! A polygon is an array of `[latitude, longitude]`; two corners make a rectangle. An array of polygons is the area of
//! all of them, where a polygon within another one is a hole. The border is outside.

use serde_json::Value;

/// Radius of the earth that distances are measured with, metres.
const EARTH_RADIUS: f64 = 6_371_008.771_4;

/// Most corners of one perimeter.
const MAX_CORNERS: usize = 10_000;
/// Most polygons of one perimeter; holes are found by comparing each with each.
const MAX_POLYGONS: usize = 200;
/// Most comparisons of corners of one polygon with those of another.
const MAX_COMPARISONS: usize = 4_000_000;
/// Deepest nesting of arrays around polygons.
const MAX_DEPTH: usize = 8;

/// A place: latitude and longitude, degrees.
pub type GeoPoint = (f64, f64);

/// An area on the map.
#[derive(Debug, Clone, PartialEq)]
pub enum Perimeter {
    /// All places nearer than so many metres.
    Circle {
        /// Its middle.
        middle: GeoPoint,
        /// Metres.
        radius: f64,
    },
    /// Polygons without holes.
    Polygons {
        /// Areas that belong to it.
        areas: Vec<Vec<GeoPoint>>,
        /// Areas within these that do not.
        holes: Vec<Vec<GeoPoint>>,
    },
}

impl Perimeter {
    /// Reads `{"latitude", "longitude", "radius"}` or an array of corners or polygons.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let json: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        Self::from_json(&json)
    }

    /// See [`Perimeter::parse`].
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_json(json: &Value) -> Result<Self, String> {
        match json {
            Value::Object(fields) => {
                let number = |name: &str| {
                    let value = fields.get(name).and_then(coordinate);
                    value.ok_or_else(|| format!("`{name}` of the circle is missing or no number"))
                };
                Ok(Self::Circle {
                    middle: (number("latitude")?, number("longitude")?),
                    radius: number("radius")?,
                })
            }
            Value::Array(items) => {
                let mut polygons = Vec::new();
                collect(items, 0, &mut polygons)?;
                Self::polygons(polygons)
            }
            _ => Err("expected an object (circle) or an array (polygon)".to_owned()),
        }
    }

    /// An area of polygons; those within others are holes.
    ///
    /// # Errors
    /// There are none, or too many.
    pub fn polygons(polygons: Vec<Vec<GeoPoint>>) -> Result<Self, String> {
        if polygons.is_empty() {
            return Err("the polygon has no corners".to_owned());
        }
        if polygons.len() > MAX_POLYGONS || polygons.iter().map(Vec::len).sum::<usize>() > MAX_CORNERS {
            return Err(format!(
                "more than {MAX_POLYGONS} polygons or {MAX_CORNERS} corners"
            ));
        }
        let corners: usize = polygons.iter().map(Vec::len).sum();
        let own: usize = polygons.iter().map(|polygon| polygon.len() * polygon.len()).sum();
        if corners * corners - own > MAX_COMPARISONS {
            return Err(format!(
                "finding the holes takes more than {MAX_COMPARISONS} comparisons of corners"
            ));
        }
        let is_hole: Vec<bool> = polygons
            .iter()
            .map(|inner| {
                polygons
                    .iter()
                    .any(|outer| outer != inner && covers(outer, inner))
            })
            .collect();
        let mut areas = Vec::new();
        let mut holes = Vec::new();
        for (polygon, is_hole) in polygons.into_iter().zip(is_hole) {
            if is_hole { &mut holes } else { &mut areas }.push(polygon);
        }
        Ok(Self::Polygons { areas, holes })
    }

    /// Whether a place is inside.
    pub fn contains(&self, place: GeoPoint) -> bool {
        match self {
            Self::Circle { middle, radius } => distance(*middle, place) < *radius,
            Self::Polygons { areas, holes } => {
                areas
                    .iter()
                    .any(|area| side(area, place) == PointPosition::Inside)
                    && holes
                        .iter()
                        .all(|hole| side(hole, place) == PointPosition::Outside)
            }
        }
    }
}

/// Metres between two places along the surface of the earth.
pub fn distance(from: GeoPoint, to: GeoPoint) -> f64 {
    let (from_latitude, to_latitude) = (from.0.to_radians(), to.0.to_radians());
    let across = ((to_latitude - from_latitude) / 2.0).sin();
    let along = ((to.1 - from.1).to_radians() / 2.0).sin();
    let haversine = across * across + from_latitude.cos() * to_latitude.cos() * along * along;
    2.0 * EARTH_RADIUS * haversine.clamp(0.0, 1.0).sqrt().asin()
}

fn coordinate(value: &Value) -> Option<f64> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_f64(),
    };
    number.filter(|number| number.is_finite())
}

/// Finds the polygons in arrays of arrays.
fn collect(items: &[Value], depth: usize, polygons: &mut Vec<Vec<GeoPoint>>) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err("polygons are nested too deeply".to_owned());
    }
    let is_corner =
        |item: &Value| matches!(item, Value::Array(pair) if pair.first().is_some_and(|x| !x.is_array()));
    if !items.is_empty() && items.iter().all(is_corner) {
        polygons.push(polygon(items)?);
        return Ok(());
    }
    for item in items {
        match item {
            Value::Array(inner) => collect(inner, depth + 1, polygons)?,
            _ => return Err("expected an array of corners".to_owned()),
        }
    }
    Ok(())
}

fn polygon(corners: &[Value]) -> Result<Vec<GeoPoint>, String> {
    if corners.len() > MAX_CORNERS {
        return Err(format!("more than {MAX_CORNERS} corners"));
    }
    let corners = corners
        .iter()
        .map(|corner| {
            let at = |index: usize| corner.get(index).and_then(coordinate);
            at(0).zip(at(1)).ok_or("a corner is not two numbers")
        })
        .collect::<Result<Vec<GeoPoint>, _>>()?;
    match corners.as_slice() {
        [(a, b), (c, d)] => Ok(vec![(*a, *b), (*a, *d), (*c, *d), (*c, *b)]),
        [] | [_] => Err("a polygon needs two corners or more".to_owned()),
        _ => Ok(corners),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PointPosition {
    Inside,
    Border,
    Outside,
}

fn edges(polygon: &[GeoPoint]) -> impl Iterator<Item = (GeoPoint, GeoPoint)> + '_ {
    polygon
        .iter()
        .copied()
        .zip(polygon.iter().copied().cycle().skip(1))
}

/// Where a place lies, by the edges that a ray from it crosses.
fn side(polygon: &[GeoPoint], place: GeoPoint) -> PointPosition {
    let mut inside = false;
    for (a, b) in edges(polygon) {
        let turn = cross(a, b, place);
        let within = |low: f64, high: f64, x: f64| low.min(high) <= x && x <= low.max(high);
        if turn == 0.0 && within(a.0, b.0, place.0) && within(a.1, b.1, place.1) {
            return PointPosition::Border;
        }
        if (a.1 > place.1) != (b.1 > place.1) {
            let crossing = (b.0 - a.0) * (place.1 - a.1) / (b.1 - a.1) + a.0;
            if place.0 < crossing {
                inside = !inside;
            }
        }
    }
    if inside {
        PointPosition::Inside
    } else {
        PointPosition::Outside
    }
}

fn cross(a: GeoPoint, b: GeoPoint, c: GeoPoint) -> f64 {
    (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0)
}

/// Whether a polygon lies within another: no corner outside, and no edge across its border.
fn covers(outer: &[GeoPoint], inner: &[GeoPoint]) -> bool {
    inner
        .iter()
        .all(|corner| side(outer, *corner) != PointPosition::Outside)
        && edges(inner).all(|(a, b)| {
            side(outer, ((a.0 + b.0) / 2.0, (a.1 + b.1) / 2.0)) != PointPosition::Outside
                && edges(outer).all(|(c, d)| !crosses(a, b, c, d))
        })
}

/// Whether two edges cross in a point that is an end of neither.
fn crosses(a: GeoPoint, b: GeoPoint, c: GeoPoint, d: GeoPoint) -> bool {
    let sides = |p: GeoPoint, q: GeoPoint, r: GeoPoint, s: GeoPoint| cross(p, q, r) * cross(p, q, s) < 0.0;
    sides(a, b, c, d) && sides(c, d, a, b)
}
