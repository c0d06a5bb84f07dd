//! What nodes do with messages.

mod alarms;
mod calls;
mod entities;
mod time;

use fieldline_model::message::Metadata;

fn meta<const N: usize>(entries: [(&str, &str); N]) -> Metadata {
    entries.into_iter().collect()
}
