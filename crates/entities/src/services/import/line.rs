//! Lines of an import, read as the columns say.

use std::collections::BTreeMap;

use fieldline_model::entity::{ImportColumnType, ImportMapping};
use fieldline_model::json::{self, JsonRules, NullPolicy, write_string};
use fieldline_model::kv::unpack;
use fieldline_model::timeseries::AttributeScope;
use serde_json::value::RawValue;

use super::csv;
use crate::audit::raw;
use crate::services::{ServiceError, ServiceResult};

/// The fields of a line.
pub(super) type ImportLineFields = BTreeMap<ImportColumnType, String>;

/// A line that can be read.
pub(super) struct ImportLine {
    pub(super) number: usize,
    pub(super) fields: ImportLineFields,
    /// Packed values of shared attributes, server attributes, series.
    pub(super) shared: Vec<u8>,
    pub(super) server: Vec<u8>,
    pub(super) series: Vec<u8>,
}

impl ImportLine {
    pub(super) fn field(&self, column: ImportColumnType) -> Option<&str> {
        self.fields.get(&column).map(String::as_str)
    }

    /// Its attributes by scope, where it has some.
    pub(super) fn attributes(&self) -> impl Iterator<Item = (AttributeScope, &[u8])> {
        let scopes = [
            (AttributeScope::Shared, self.shared.as_slice()),
            (AttributeScope::Server, self.server.as_slice()),
        ];
        scopes.into_iter().filter(|(_, values)| !values.is_empty())
    }

    /// Whether it has attributes or points.
    pub(super) fn has_values(&self) -> bool {
        self.attributes().next().is_some() || !self.series.is_empty()
    }

    /// Leaves the values alone that the entity has.
    pub(super) fn forget_values(&mut self) {
        for values in [&mut self.shared, &mut self.server, &mut self.series] {
            values.clear();
        }
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.field(ImportColumnType::Name)
    }
}

/// The lines of a text, and what is wrong with others.
pub(super) type ImportParseResult = (Vec<ImportLine>, Vec<(usize, String)>);

/// Reads a text.
pub(super) fn read_all(
    file: &str,
    mapping: &ImportMapping,
    type_cast: bool,
) -> ServiceResult<ImportParseResult> {
    let (mut lines, mut problems) = (Vec::new(), Vec::new());
    let mut is_header = mapping.header == Some(true);
    let delimiter = mapping.delimiter.unwrap_or(',');
    csv::each_row(file, delimiter, |row| {
        let number = row.line;
        match (std::mem::take(&mut is_header), read(row, mapping, type_cast)) {
            (true, _) => {}
            (false, Ok(line)) => lines.push(line),
            (false, Err(problem)) => problems.push((number, problem)),
        }
    })
    .map_err(too_much)?;
    Ok((lines, problems))
}

/// Whether a mapping makes sense.
pub(super) fn check(mapping: &ImportMapping) -> ServiceResult<()> {
    let columns = &mapping.columns;
    let of = |kind: ImportColumnType| columns.iter().filter(move |column| column.column_type == kind);
    if of(ImportColumnType::Name).count() != 1 {
        return Err(ServiceError::invalid(
            "Exactly one column should be of type NAME!",
        ));
    }
    if columns.len() > csv::MAX_CELLS {
        return Err(ServiceError::invalid(format!(
            "There must not be more than {} columns!",
            csv::MAX_CELLS
        )));
    }
    if mapping
        .delimiter
        .is_some_and(|char| matches!(char, '"' | '\r' | '\n'))
    {
        return Err(ServiceError::invalid(
            "The delimiter must not be a quote or a line end!",
        ));
    }
    Ok(())
}

fn too_much(problem: csv::CsvLimitError) -> ServiceError {
    ServiceError::invalid(match problem {
        csv::CsvLimitError::Rows => format!("There must not be more than {} lines!", csv::MAX_ROWS),
        csv::CsvLimitError::Cells(line) => format!("Line {line} has more than {} cells!", csv::MAX_CELLS),
    })
}

/// What a row says, by the columns.
fn read(row: csv::CsvRow, mapping: &ImportMapping, type_cast: bool) -> Result<ImportLine, String> {
    if row.cells.len() > mapping.columns.len() {
        return Err(format!(
            "There are {} cells, but {} columns",
            row.cells.len(),
            mapping.columns.len()
        ));
    }
    let mut fields = ImportLineFields::new();
    let (mut shared, mut server, mut series) = (String::new(), String::new(), String::new());
    for (column, cell) in mapping.columns.iter().zip(row.cells) {
        if cell.is_empty() {
            continue;
        }
        let out = match column.column_type {
            ImportColumnType::SharedAttribute => &mut shared,
            ImportColumnType::ServerAttribute => &mut server,
            ImportColumnType::Timeseries => &mut series,
            field => {
                fields.insert(field, cell);
                continue;
            }
        };
        let Some(key) = column.key.as_deref().filter(|key| !key.trim().is_empty()) else {
            continue;
        };
        out.push(if out.is_empty() { '{' } else { ',' });
        write_string(key, out);
        out.push(':');
        write_value(&cell, out);
    }
    Ok(ImportLine {
        number: row.line,
        fields,
        shared: pack(shared, type_cast)?,
        server: pack(server, type_cast)?,
        series: pack(series, type_cast)?,
    })
}

/// A cell as JSON: objects, arrays and truth values as they are, all else as a text, which becomes a number where it is one.
fn write_value(cell: &str, out: &mut String) {
    let text = cell.trim();
    let truth = ["true", "false"]
        .into_iter()
        .find(|word| text.eq_ignore_ascii_case(word));
    if let Some(truth) = truth {
        out.push_str(truth);
        return;
    }
    if text.starts_with(['{', '[']) && serde_json::from_str::<&RawValue>(text).is_ok() {
        out.push_str(text);
    } else {
        write_string(cell, out);
    }
}

/// The packed values of a JSON object that lacks its end.
fn pack(mut object: String, type_cast: bool) -> Result<Vec<u8>, String> {
    let mut values = Vec::new();
    if object.is_empty() {
        return Ok(values);
    }
    object.push('}');
    let rules = JsonRules {
        type_cast,
        nulls: NullPolicy::Reject,
        ..JsonRules::default()
    };
    match json::attributes(object.as_bytes(), &rules, &mut values) {
        Ok(_) => Ok(values),
        Err(error) => Err(format!("The values cannot be read: {error}")),
    }
}

/// Packed values as a JSON object.
pub(super) fn object(values: &[u8]) -> Box<RawValue> {
    let mut text = String::from("{");
    for (name, value) in unpack(values).flatten() {
        if text.len() > 1 {
            text.push(',');
        }
        write_string(name, &mut text);
        text.push(':');
        value.write_json(&mut text);
    }
    text.push('}');
    raw(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldline_model::entity::ImportColumn;

    fn column(column_type: ImportColumnType, key: Option<&str>) -> ImportColumn {
        ImportColumn {
            column_type,
            key: key.map(str::to_owned),
        }
    }

    fn mapping(columns: Vec<ImportColumn>) -> ImportMapping {
        ImportMapping {
            columns,
            ..ImportMapping::default()
        }
    }

    fn row(text: &str) -> csv::CsvRow {
        let mut rows = Vec::new();
        csv::each_row(text, ',', |row| rows.push(row)).unwrap();
        rows.remove(0)
    }

    #[test]
    fn cells_become_values_of_their_own_type() {
        let mapping = mapping(vec![
            column(ImportColumnType::Name, None),
            column(ImportColumnType::ServerAttribute, Some("n")),
            column(ImportColumnType::ServerAttribute, Some("f")),
            column(ImportColumnType::ServerAttribute, Some("b")),
            column(ImportColumnType::ServerAttribute, Some("j")),
            column(ImportColumnType::ServerAttribute, Some("t")),
            column(ImportColumnType::Timeseries, Some("s")),
        ]);
        let row = row("a,12,1.5,TRUE,\"{\"\"x\"\":[1]}\",\"{no json\",");
        let line = read(row, &mapping, true).unwrap();
        assert_eq!(
            object(&line.server).get(),
            r#"{"n":12,"f":1.5,"b":true,"j":{"x":[1]},"t":"{no json"}"#
        );
        assert!(line.series.is_empty());
        assert!(read(self::row("a,1,2,3,4,5,6,7"), &mapping, true).is_err());
    }

    #[test]
    fn a_mapping_has_one_name() {
        assert!(check(&mapping(vec![])).is_err());
        assert!(check(&mapping(vec![column(ImportColumnType::Name, None)])).is_ok());
        let twice = vec![
            column(ImportColumnType::Name, None),
            column(ImportColumnType::Name, None),
        ];
        assert!(check(&mapping(twice)).is_err());
    }
}
