//! The replay report as text.

use std::fmt::Write as _;

use fieldline_model::replay::{ReplayAlarm, ReplayNode, ReplayReport};

use super::times::show;

/// Most rows of each table that are shown.
const MAX_ROWS: usize = 20;

/// Returns the report as text.
pub(super) fn report(report: &ReplayReport) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(report, &mut out);
    out
}

fn write(report: &ReplayReport, out: &mut String) -> std::fmt::Result {
    let summary = &report.summary;
    let draft = if summary.draft { " (draft)" } else { "" };
    writeln!(
        out,
        "Rule chain {}{draft}, {} to {} UTC",
        summary.rule_chain_name,
        show(summary.start_ts),
        show(summary.end_ts)
    )?;
    writeln!(
        out,
        "{} messages of {} devices, {} that they led to, {} timers, {} failed; {} ms",
        summary.messages,
        summary.devices,
        summary.follow_ups,
        summary.timers,
        summary.failed,
        summary.duration_ms
    )?;
    if let Some(why) = &summary.truncated_by {
        writeln!(
            out,
            "CUT SHORT by the limit of {why}: only what is before the second time was replayed"
        )?;
    }
    if let Some(failure) = &summary.last_failure {
        writeln!(out, "last failure: {failure}")?;
    }
    nodes(&report.nodes, out)?;
    alarms(report, out)?;
    points(report, out)?;
    if !summary.not_changed.is_empty() {
        writeln!(out, "\nNot done:")?;
        for (what, count) in &summary.not_changed {
            writeln!(out, "  {what}: {count}")?;
        }
    }
    Ok(())
}

fn nodes(nodes: &[ReplayNode], out: &mut String) -> std::fmt::Result {
    let rows: Vec<Vec<String>> = nodes
        .iter()
        .map(|node| {
            let output: Vec<String> = node
                .output
                .iter()
                .map(|(label, count)| format!("{label} {count}"))
                .collect();
            let mut notes = node.last_error.clone().unwrap_or_default();
            if !node.executed {
                notes = format!("not executed{}{notes}", if notes.is_empty() { "" } else { "; " });
            }
            vec![
                node.name.clone(),
                node.input.to_string(),
                output.join(", "),
                node.failures.to_string(),
                format!("{:.1}", node.mean_us),
                notes,
            ]
        })
        .collect();
    table(
        "Nodes",
        &["name", "in", "out", "failures", "µs each", ""],
        &rows,
        out,
    )
}

fn alarms(report: &ReplayReport, out: &mut String) -> std::fmt::Result {
    let alarms = &report.alarms;
    writeln!(
        out,
        "\nAlarms: {} raised, {} updated, {} cleared; {} were active before",
        alarms.raised, alarms.updated, alarms.cleared, alarms.active_at_start
    )?;
    let rows: Vec<Vec<String>> = alarms.alarms.iter().map(|alarm| row(alarm, "")).collect();
    table("", ALARM_COLUMNS, &rows, out)?;
    let difference = &report.difference.alarms;
    writeln!(
        out,
        "\nAgainst the stored alarms: {} the same, {} different, {} only stored, {} only replayed{}",
        difference.same,
        difference.different,
        difference.only_stored,
        difference.only_replayed,
        if difference.incomplete {
            " (not all stored ones were looked at)"
        } else {
            ""
        }
    )?;
    let stored = difference.stored.iter().map(|alarm| row(alarm, "only stored"));
    let replayed = difference
        .replayed
        .iter()
        .map(|alarm| row(alarm, "only replayed"));
    let changed = difference.changed.iter().flat_map(|changed| {
        let fields = changed.fields.join(", ");
        [
            row(&changed.stored, &format!("stored: {fields}")),
            row(&changed.replayed, &format!("replayed: {fields}")),
        ]
    });
    let rows: Vec<Vec<String>> = stored.chain(replayed).chain(changed).collect();
    table("", ALARM_COLUMNS, &rows, out)
}

const ALARM_COLUMNS: &[&str] = &["began", "cleared", "originator", "type", "severity", ""];

fn row(alarm: &ReplayAlarm, note: &str) -> Vec<String> {
    vec![
        show(alarm.start_ts),
        alarm.cleared_ts.map_or_else(|| "-".to_owned(), show),
        alarm
            .originator_name
            .clone()
            .unwrap_or_else(|| alarm.originator.to_string()),
        alarm.alarm_type.clone(),
        alarm
            .severity
            .map_or_else(String::new, |severity| severity.name().to_owned()),
        note.to_owned(),
    ]
}

fn points(report: &ReplayReport, out: &mut String) -> std::fmt::Result {
    let difference = &report.difference.points;
    writeln!(
        out,
        "\nPoints: {} would be stored; {} the same, {} different, {} only stored, {} only replayed",
        report.stored.points,
        difference.same,
        difference.different,
        difference.only_stored,
        difference.only_replayed
    )?;
    let rows: Vec<Vec<String>> = difference
        .keys
        .iter()
        .map(|(key, of_key)| {
            let counts = [
                of_key.same,
                of_key.different,
                of_key.only_stored,
                of_key.only_replayed,
            ];
            std::iter::once(key.clone())
                .chain(counts.map(|count| count.to_string()))
                .collect()
        })
        .collect();
    table(
        "",
        &["key", "same", "different", "only stored", "only replayed"],
        &rows,
        out,
    )?;
    let value = |value: &Option<serde_json::Value>| {
        value.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string)
    };
    let rows: Vec<Vec<String>> = difference
        .sample
        .iter()
        .map(|point| {
            vec![
                show(point.ts),
                point.entity.to_string(),
                point.key.clone(),
                value(&point.stored),
                value(&point.replayed),
            ]
        })
        .collect();
    table(
        "For example",
        &["time", "entity", "key", "stored", "replayed"],
        &rows,
        out,
    )?;
    let rows: Vec<Vec<String>> = report
        .stored
        .attributes
        .iter()
        .map(|(name, count)| vec![name.clone(), count.to_string()])
        .collect();
    table("Attributes", &["name", "writes"], &rows, out)
}

/// Writes a table with columns as wide as needed; nothing if it has no rows.
fn table(title: &str, columns: &[&str], rows: &[Vec<String>], out: &mut String) -> std::fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    if !title.is_empty() {
        writeln!(out, "\n{title}:")?;
    }
    let shown = rows.get(..MAX_ROWS).unwrap_or(rows);
    let width = |column: usize| {
        let cells = shown
            .iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count());
        let name = columns.get(column).map_or(0, |name| name.chars().count());
        cells.max().unwrap_or(0).max(name)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let names: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
    for row in std::iter::once(&names).chain(shown) {
        let mut line = String::from(" ");
        for (cell, width) in row.iter().zip(&widths) {
            write!(line, " {cell:width$} ")?;
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    if rows.len() > shown.len() {
        writeln!(out, "  ... and {} more", rows.len() - shown.len())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_need() {
        let rows = vec![
            vec!["temperature".to_owned(), "1".to_owned()],
            vec!["ä".to_owned(), "20".to_owned()],
        ];
        let mut out = String::new();
        table("", &["key", "same"], &rows, &mut out).unwrap();
        assert_eq!(out, "  key          same\n  temperature  1\n  ä            20\n");
    }
}
