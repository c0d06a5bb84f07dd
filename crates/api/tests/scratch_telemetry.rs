#![allow(missing_docs, dead_code, unreachable_pub)]
#[path = "../src/telemetry/buckets.rs"] mod buckets;
#[path = "../src/telemetry/zone.rs"] mod zone;
#[path = "../src/telemetry/render.rs"] mod render;
#[path = "../src/telemetry/params.rs"] mod params;
#[path = "../src/telemetry/payload.rs"] mod payload;
#[path = "../src/telemetry/history.rs"] mod history;
