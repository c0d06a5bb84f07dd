//! Reading CSV texts, for the fuzz target.

use fieldline_model::entity::{ImportColumn, ImportColumnType as Column, ImportMapping};
use fieldline_model::kv::unpack;

use super::line;

/// Reads the lines of an import: each is read or named once, and what is packed is whole.
pub fn import_lines(text: &str, delimiter: char) {
    let columns = [
        (Column::Name, None),
        (Column::SharedAttribute, Some("shared")),
        (Column::ServerAttribute, Some("server")),
        (Column::Timeseries, Some("series")),
        (Column::Timeseries, Some("series")),
    ];
    let column = |(column_type, key): (Column, Option<&str>)| ImportColumn {
        column_type,
        key: key.map(str::to_owned),
    };
    let mapping = ImportMapping {
        columns: columns.map(column).into(),
        delimiter: Some(delimiter),
        ..ImportMapping::default()
    };
    for type_cast in [false, true] {
        let Ok((lines, problems)) = line::read_all(text, &mapping, type_cast) else {
            continue;
        };
        let ends = text.matches(['\n', '\r']).count();
        assert!(lines.len() + problems.len() <= ends + 1);
        let bytes = |line: &line::ImportLine| line.shared.len() + line.server.len() + line.series.len();
        assert!(
            lines.iter().map(bytes).sum::<usize>() <= 64 * lines.len() + 8 * text.len(),
            "a cell takes no more than it has"
        );
        for line in &lines {
            for values in [&line.shared, &line.server, &line.series] {
                unpack(values).for_each(|value| drop(value.expect("a whole value")));
            }
        }
    }
}
