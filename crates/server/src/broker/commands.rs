//! `fieldline broker`: looks at the publish/subscribe broker of a running platform, over its REST API.

use std::fmt::Write as _;
use std::process::ExitCode;

use chrono::DateTime;
use clap::{Args, Subcommand};
use fieldline_loadgen::error::LoadError;
use fieldline_loadgen::rest::RestClient;
use serde_json::{Value, json};

use crate::platform_call::{PlatformArgs, print_answer};

/// Rows that are asked for at a time.
const PAGE_ROWS: usize = 1_000;
/// Characters of a payload that a table shows.
const PAYLOAD_CHARS: usize = 60;
/// Characters of any other cell that a table shows.
const CELL_CHARS: usize = 120;

/// Looks at the publish/subscribe broker of a running platform.
#[derive(Subcommand)]
pub(crate) enum BrokerCommand {
    /// Lists the sessions of clients, or shows one.
    Sessions {
        #[command(flatten)]
        call: CallArgs,
        /// Shows only the session of this client, with its subscriptions.
        #[arg(long, value_name = "CLIENT")]
        client: Option<String>,
    },
    /// Lists the subscriptions of clients.
    Subscriptions {
        #[command(flatten)]
        call: CallArgs,
        /// Lists only the subscriptions that get the messages of this topic.
        #[arg(long, value_name = "TOPIC", conflicts_with = "client")]
        topic: Option<String>,
        /// Lists only the subscriptions of this client.
        #[arg(long, value_name = "CLIENT")]
        client: Option<String>,
    },
    /// Lists how many messages wait for clients, and how many were dropped; the longest queue comes first.
    Queues {
        #[command(flatten)]
        call: CallArgs,
    },
    /// Lists the retained messages, or prints that of a topic.
    Retained {
        #[command(flatten)]
        call: CallArgs,
        /// The topic.
        topic: Option<String>,
    },
    /// Ends the connection of a client. It may connect again.
    Disconnect {
        #[command(flatten)]
        call: CallArgs,
        /// The client identifier.
        client: String,
    },
}

/// The platform that is asked, and the form of what is printed.
#[derive(Args)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    platform: PlatformArgs,
    /// Most rows of a list.
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    limit: usize,
    /// Prints JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// Runs a command of `broker`.
pub(crate) fn run(command: &BrokerCommand) -> ExitCode {
    let answer = match command {
        BrokerCommand::Sessions { call, client: None } => sessions(call),
        BrokerCommand::Sessions {
            call,
            client: Some(client),
        } => session(call, client),
        BrokerCommand::Subscriptions { call, topic, client } => match client {
            Some(client) => subscriptions_of(call, client),
            None => subscriptions(call, topic.as_deref()),
        },
        BrokerCommand::Queues { call } => queues(call),
        BrokerCommand::Retained { call, topic: None } => retained(call),
        BrokerCommand::Retained {
            call,
            topic: Some(topic),
        } => retained_message(call, topic),
        BrokerCommand::Disconnect { call, client } => disconnect(call, client),
    };
    print_answer("broker", answer, |error| {
        matches!(error, LoadError::InvalidOption(_))
    })
}

/// Rows of a list, and how many it has in all.
struct ListRows {
    rows: Vec<Value>,
    total: u64,
}

impl CallArgs {
    fn client(&self) -> Result<RestClient, LoadError> {
        RestClient::new(self.platform.target())
    }

    fn list(&self, path: &str, query: &[(&str, &str)]) -> Result<ListRows, LoadError> {
        let client = self.client()?;
        let mut list = ListRows {
            rows: Vec::new(),
            total: 0,
        };
        let size = self.limit.clamp(1, PAGE_ROWS).to_string();
        for page in 0.. {
            let page = page.to_string();
            let mut query = query.to_vec();
            query.extend([("pageSize", size.as_str()), ("page", page.as_str())]);
            let answer = client.get(path, &query)?;
            list.total = answer["totalElements"].as_u64().unwrap_or(0);
            list.rows
                .extend(answer["data"].as_array().into_iter().flatten().cloned());
            if answer["hasNext"] != true || list.rows.len() >= self.limit {
                break;
            }
        }
        list.rows.truncate(self.limit);
        Ok(list)
    }

    /// Prints a list as JSON, or as a table with a line of cells for each row.
    fn print(&self, list: &ListRows, columns: &[&str], cells: impl Fn(&Value) -> Vec<String>) -> String {
        if self.json {
            return pretty(&json!({"data": list.rows, "totalElements": list.total}));
        }
        let lines: Vec<Vec<String>> = list.rows.iter().map(cells).collect();
        let mut text = table(columns, &lines);
        let shown = list.rows.len() as u64;
        if shown < list.total {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "... and {} more (--limit)", list.total - shown);
        }
        text
    }
}

fn sessions(call: &CallArgs) -> Result<String, LoadError> {
    let list = call.list("/api/client-session", &[])?;
    let columns = [
        "CLIENT",
        "STATE",
        "TYPE",
        "ADDRESS",
        "SUBSCRIPTIONS",
        "SINCE (UTC)",
    ];
    Ok(call.print(&list, &columns, |row| {
        vec![
            text(&row["clientId"]),
            text(&row["connectionState"]),
            text(&row["clientType"]),
            text(&row["clientIpAdr"]),
            text(&row["subscriptionsCount"]),
            time(since(row)),
        ]
    }))
}

fn since(session: &Value) -> &Value {
    match session["connectionState"] == "CONNECTED" {
        true => &session["connectedAt"],
        false => &session["disconnectedAt"],
    }
}

fn session(call: &CallArgs, client_id: &str) -> Result<String, LoadError> {
    let client = call.client()?;
    let query = [("clientId", client_id)];
    let mut session = client.get("/api/client-session", &query)?;
    let details = client.get("/api/client-session/details", &query)?;
    for name in ["mqttVersion", "username"] {
        session[name] = details[name].clone();
    }
    if call.json {
        return Ok(pretty(&session));
    }
    let seconds = |name: &str| format!("{} s", text(&session[name]));
    let rows = [
        ("client", text(&session["clientId"])),
        ("session", text(&session["sessionId"])),
        ("state", text(&session["connectionState"])),
        ("since (UTC)", time(since(&session))),
        ("type", text(&session["clientType"])),
        ("address", text(&session["clientIpAdr"])),
        ("user name", text(&session["username"])),
        ("MQTT", text(&session["mqttVersion"])),
        ("clean start", text(&session["cleanStart"])),
        ("keep-alive", seconds("keepAliveSeconds")),
        ("expiry", seconds("sessionExpiryInterval")),
    ];
    let mut shown = String::new();
    for (name, value) in rows {
        let _ = writeln!(shown, "{name:12} {}", cleaned(&value, CELL_CHARS));
    }
    let subscriptions: Vec<_> = session["subscriptions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(subscription_cells)
        .collect();
    if !subscriptions.is_empty() {
        shown.push('\n');
        shown.push_str(&table(&SUBSCRIPTION_COLUMNS, &subscriptions));
    }
    Ok(shown)
}

const SUBSCRIPTION_COLUMNS: [&str; 3] = ["FILTER", "QOS", "OPTIONS"];

fn subscription_cells(subscription: &Value) -> Vec<String> {
    let options = &subscription["options"];
    let mut named: Vec<String> = ["noLocal", "retainAsPublish"]
        .into_iter()
        .filter(|name| options[*name] == true)
        .map(str::to_owned)
        .collect();
    if options["retainHandling"].as_u64().is_some_and(|it| it != 0) {
        named.push(format!("retainHandling={}", text(&options["retainHandling"])));
    }
    if subscription["subscriptionId"].is_u64() {
        named.push(format!("id={}", text(&subscription["subscriptionId"])));
    }
    let qos = match subscription["qos"].as_str() {
        Some("AT_MOST_ONCE") => "0",
        Some("AT_LEAST_ONCE") => "1",
        Some("EXACTLY_ONCE") => "2",
        _ => "-",
    };
    vec![
        text(&subscription["topicFilter"]),
        qos.to_owned(),
        named.join(" "),
    ]
}

fn subscriptions(call: &CallArgs, topic: Option<&str>) -> Result<String, LoadError> {
    let query: Vec<(&str, &str)> = topic.map(|topic| ("topic", topic)).into_iter().collect();
    let list = call.list("/api/subscription/all", &query)?;
    let [filter, qos, options] = SUBSCRIPTION_COLUMNS;
    Ok(call.print(&list, &["CLIENT", filter, qos, options], |row| {
        let mut cells = vec![text(&row["clientId"])];
        cells.extend(subscription_cells(&row["subscription"]));
        cells
    }))
}

fn subscriptions_of(call: &CallArgs, client_id: &str) -> Result<String, LoadError> {
    let session = call
        .client()?
        .get("/api/client-session", &[("clientId", client_id)])?;
    let rows = session["subscriptions"].as_array().cloned().unwrap_or_default();
    let list = ListRows {
        total: rows.len() as u64,
        rows: rows.into_iter().take(call.limit).collect(),
    };
    Ok(call.print(&list, &SUBSCRIPTION_COLUMNS, subscription_cells))
}

fn queues(call: &CallArgs) -> Result<String, LoadError> {
    let order = [("sortProperty", "queuedMsgs"), ("sortOrder", "DESC")];
    let list = call.list("/api/client-session/queues", &order)?;
    let columns = ["CLIENT", "STATE", "TYPE", "QUEUED", "DROPPED"];
    Ok(call.print(&list, &columns, |row| {
        let names = [
            "clientId",
            "connectionState",
            "clientType",
            "queuedMsgs",
            "droppedMsgs",
        ];
        names.map(|name| text(&row[name])).into()
    }))
}

fn retained(call: &CallArgs) -> Result<String, LoadError> {
    let list = call.list("/api/retained-msg", &[])?;
    let columns = ["TOPIC", "QOS", "PUBLISHED (UTC)", "PAYLOAD"];
    Ok(call.print(&list, &columns, |row| {
        vec![
            text(&row["topic"]),
            text(&row["qos"]),
            time(&row["createdTime"]),
            cleaned(&text(&row["payload"]), PAYLOAD_CHARS),
        ]
    }))
}

fn retained_message(call: &CallArgs, topic: &str) -> Result<String, LoadError> {
    let message = call.client()?.get("/api/retained-msg", &[("topicName", topic)])?;
    match call.json {
        true => Ok(pretty(&message)),
        false => Ok(cleaned(&text(&message["payload"]), usize::MAX) + "\n"),
    }
}

fn disconnect(call: &CallArgs, client_id: &str) -> Result<String, LoadError> {
    let client = call.client()?;
    let session = client.get("/api/client-session", &[("clientId", client_id)])?;
    let session_id = text(&session["sessionId"]);
    let query = [("clientId", client_id), ("sessionId", session_id.as_str())];
    client.delete_with("/api/client-session/disconnect", &query)?;
    let was_connected = session["connectionState"] == "CONNECTED";
    if call.json {
        let answer = json!({"clientId": client_id, "sessionId": session_id, "wasConnected": was_connected});
        return Ok(pretty(&answer));
    }
    let client_id = cleaned(client_id, CELL_CHARS);
    Ok(match was_connected {
        true => format!("{client_id} is disconnected\n"),
        false => format!("{client_id} was not connected\n"),
    })
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// A value as a cell.
fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn time(ms: &Value) -> String {
    match ms
        .as_i64()
        .filter(|ms| *ms > 0)
        .and_then(DateTime::from_timestamp_millis)
    {
        Some(time) => time.format("%Y-%m-%d %H:%M:%S").to_string(),
        None => "-".to_owned(),
    }
}

/// Clients choose their texts, and a terminal must not obey what is in them.
fn cleaned(text: &str, most: usize) -> String {
    let mut cleaned = String::new();
    for (index, character) in text.chars().enumerate() {
        if index == most {
            cleaned.push('…');
            break;
        }
        if character.is_control() {
            cleaned.extend(character.escape_default());
        } else {
            cleaned.push(character);
        }
    }
    cleaned
}

/// Returns a table with columns as wide as needed.
fn table(columns: &[&str], rows: &[Vec<String>]) -> String {
    let names: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
    let mut lines = vec![names];
    for row in rows {
        lines.push(row.iter().map(|cell| cleaned(cell, CELL_CHARS)).collect());
    }
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut out = String::new();
    for line in &lines {
        let padded = line
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        let joined = padded.collect::<Vec<_>>().join("  ");
        out.push_str(joined.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_aligned_and_obey_no_client() {
        let rows = [
            vec!["a\u{1b}[2J".to_owned(), "1".to_owned()],
            vec!["ä".to_owned(), String::new()],
        ];
        // The first column is as wide as the escaped name.
        let expected = "CLIENT      QOS\na\\u{1b}[2J  1\nä\n";
        assert_eq!(table(&["CLIENT", "QOS"], &rows), expected);
        assert_eq!(cleaned("abc", 2), "ab…");
        assert_eq!(cleaned("abc", 3), "abc");
    }

    #[test]
    fn subscriptions_are_shown_with_their_options() {
        let subscription = json!({
            "topicFilter": "a/#", "qos": "AT_LEAST_ONCE", "subscriptionId": 7,
            "options": {"noLocal": true, "retainAsPublish": false, "retainHandling": 2},
        });
        assert_eq!(
            subscription_cells(&subscription),
            ["a/#", "1", "noLocal retainHandling=2 id=7"]
        );
        assert_eq!(time(&json!(0)), "-");
        assert_eq!(time(&json!(1_000)), "1970-01-01 00:00:01");
    }
}
