//! What nodes do with messages.

mod alarms;
mod calls;
mod entities;
mod time;

use fieldline_model::message::MetadataMap;

fn meta<const N: usize>(entries: [(&str, &str); N]) -> MetadataMap {
    entries.into_iter().collect()
}
