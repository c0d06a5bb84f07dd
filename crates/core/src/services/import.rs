//! Imports of many devices or assets from one CSV text: lines that are wrong are named and left out, the rest is stored in
//! large transactions.

mod asset;
mod csv;
mod device;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::iter::Peekable;
use std::sync::Arc;

use fieldline_model::Subject;
use fieldline_model::entity::{ImportColumnType, ImportMapping, ImportRequest, ImportResult};
use fieldline_model::json::{self, JsonRules, Nulls, write_string};
use fieldline_model::kv::{self, unpack};
use fieldline_model::timeseries::AttributeScope;
use futures::stream::{self, StreamExt as _};
use serde_json::value::RawValue;

use super::{Actions, Context, ServiceError, ServiceResult, limits};
use crate::access::{Entity, Kind as _, Principal};
use crate::audit::raw;
use crate::events::EntityChange;
use crate::ports::{Assignable, AttributeRow, ImportRow, RowParts, TelemetryRow};
use crate::usage::{ApiUsage, Feature, UsageKey, storage_points};

/// Lines that are stored together.
const BATCH: usize = 500;
/// Messages on their way to the rule engine at the same time.
const TELLING: usize = 256;

/// Imports of many entities.
#[derive(Clone)]
pub struct Imports {
    context: Arc<Context>,
    actions: Actions,
}

/// The fields of a line.
type Fields = BTreeMap<ImportColumnType, String>;

/// A line that can be read.
struct Line {
    number: usize,
    fields: Fields,
    /// Packed values of shared attributes, server attributes, series.
    shared: Vec<u8>,
    server: Vec<u8>,
    series: Vec<u8>,
}

impl Line {
    fn field(&self, column: ImportColumnType) -> Option<&str> {
        self.fields.get(&column).map(String::as_str)
    }

    fn name(&self) -> Option<&str> {
        self.field(ImportColumnType::Name)
    }
}

/// An entity as it was stored.
struct Stored<E> {
    line: Line,
    create: bool,
    entity: E,
}

/// What is particular to imports of devices, and of assets.
trait Import: Send + Sync {
    /// The kind.
    type Entity: Assignable;

    /// What a line makes of the entity that has its name, or a new one; or why it cannot be stored.
    fn draft(
        &mut self,
        line: &Line,
        old: Option<Self::Entity>,
    ) -> impl Future<Output = ServiceResult<ImportRow<Self::Entity>>> + Send;

    /// What has changed.
    fn changes(&self, stored: &Stored<Self::Entity>) -> Vec<EntityChange>;

    /// Attributes that a new entity has besides those of its line.
    fn first_attributes(&self, _out: &mut Vec<u8>) {}

    /// Seconds that points of an entity are kept.
    fn ttl_seconds(&mut self, entity: &Self::Entity) -> impl Future<Output = ServiceResult<u32>> + Send;
}

impl Imports {
    pub(super) fn new(context: &Arc<Context>, actions: &Actions) -> Self {
        Self {
            context: Arc::clone(context),
            actions: actions.clone(),
        }
    }

    /// Creates and changes devices. A device is known by its name.
    ///
    /// # Errors
    /// The mapping makes no sense, or the store failed; what was stored before stays.
    pub async fn devices(
        &self,
        who: &Principal,
        usage: &ApiUsage,
        request: ImportRequest,
    ) -> ServiceResult<ImportResult> {
        let kind = device::DeviceImport::new(&self.context, who.tenant);
        self.run(kind, who, usage, request).await
    }

    /// Creates and changes assets. An asset is known by its name.
    ///
    /// # Errors
    /// The mapping makes no sense, or the store failed; what was stored before stays.
    pub async fn assets(
        &self,
        who: &Principal,
        usage: &ApiUsage,
        request: ImportRequest,
    ) -> ServiceResult<ImportResult> {
        let kind = asset::AssetImport::new(&self.context, who.tenant);
        self.run(kind, who, usage, request).await
    }

    async fn run<K: Import>(
        &self,
        mut kind: K,
        who: &Principal,
        usage: &ApiUsage,
        request: ImportRequest,
    ) -> ServiceResult<ImportResult> {
        let mapping = request.mapping;
        check(&mapping)?;
        let mut result = ImportResult::default();
        let mut problems = Vec::new();
        let mut lines = Vec::new();
        let mut is_header = mapping.header == Some(true);
        let delimiter = mapping.delimiter.unwrap_or(',');
        csv::each_row(&request.file, delimiter, |row| {
            let number = row.line;
            match (std::mem::take(&mut is_header), read(row, &mapping)) {
                (true, _) => {}
                (false, Ok(line)) => lines.push(line),
                (false, Err(problem)) => problems.push((number, problem)),
            }
        })
        .map_err(too_much)?;
        let store = K::Entity::store(&self.context.stores);
        let mut room = limits::room(&self.context, who.tenant, K::Entity::TYPE).await?;
        let mut lines = lines.into_iter().peekable();
        while lines.peek().is_some() {
            let batch = next_batch(&mut lines);
            let names: Vec<&str> = batch.iter().filter_map(Line::name).collect();
            let found = store.by_names(who.tenant, &names).await?;
            let mut known: HashMap<String, K::Entity> = found
                .into_iter()
                .map(|entity| (entity.head().name.to_owned(), entity))
                .collect();
            let (mut places, mut rows) = (Vec::with_capacity(batch.len()), Vec::with_capacity(batch.len()));
            for line in batch {
                let old = line.name().and_then(|name| known.remove(name));
                match kind.draft(&line, old).await {
                    Ok(row) => match room.as_mut().filter(|_| row.create) {
                        Some(room) if room.left == 0 => {
                            problems.push((line.number, room.refuse().message().to_owned()));
                        }
                        room => {
                            if let Some(room) = room {
                                room.left -= 1;
                            }
                            places.push((line, row.create));
                            rows.push(row);
                        }
                    },
                    Err(error) => problems.push((line.number, error.message().to_owned())),
                }
            }
            let mut stored = Vec::with_capacity(places.len());
            for ((line, create), saved) in places.into_iter().zip(store.import(rows).await?) {
                match saved {
                    Ok(entity) => stored.push(Stored { line, create, entity }),
                    Err(error) => {
                        problems.push((line.number, ServiceError::from(error).message().to_owned()));
                    }
                }
            }
            result.created += stored.iter().map(|one| u32::from(one.create)).sum::<u32>();
            result.updated += stored.iter().map(|one| u32::from(!one.create)).sum::<u32>();
            self.finish(&mut kind, who, usage, stored, mapping.update == Some(true))
                .await?;
        }
        problems.sort();
        result.errors = u32::try_from(problems.len()).unwrap_or(u32::MAX);
        let named = problems
            .into_iter()
            .map(|(line, problem)| format!("Line {line}: {problem}"));
        result.errors_list = named.collect();
        Ok(result)
    }

    /// Saves attributes and points of what was stored, and tells everybody about it.
    async fn finish<K: Import>(
        &self,
        kind: &mut K,
        who: &Principal,
        usage: &ApiUsage,
        mut stored: Vec<Stored<K::Entity>>,
        update: bool,
    ) -> ServiceResult<()> {
        let now = self.context.now();
        let usage = usage.of(who.tenant);
        let keeps = usage.allows(Feature::Storage);
        let mut ttls = Vec::with_capacity(stored.len());
        for one in &mut stored {
            if !one.create && !update {
                one.line.shared.clear();
                one.line.server.clear();
                one.line.series.clear();
            }
            let has_points = keeps && !one.line.series.is_empty();
            ttls.push(match has_points {
                true => kind.ttl_seconds(&one.entity).await?,
                false => 0,
            });
        }
        let mut first = Vec::new();
        kind.first_attributes(&mut first);
        let (mut attributes, mut points) = (Vec::new(), Vec::new());
        for (one, ttl_seconds) in stored.iter().zip(&ttls) {
            let subject = subject_of(&one.entity);
            let mut add = |scope, values| {
                attributes.push(AttributeRow {
                    subject,
                    scope,
                    ts: now,
                    values,
                });
            };
            for (scope, values, wanted) in [
                (AttributeScope::Server, &first, one.create),
                (AttributeScope::Shared, &one.line.shared, true),
                (AttributeScope::Server, &one.line.server, true),
            ] {
                if wanted && !values.is_empty() {
                    add(scope, values.as_slice());
                }
            }
            if keeps && !one.line.series.is_empty() {
                points.push(TelemetryRow {
                    parts: RowParts::Both,
                    subject,
                    ts: now,
                    ttl_seconds: *ttl_seconds,
                    values: &one.line.series,
                });
            }
        }
        if !attributes.is_empty() {
            self.context.attributes.save(&attributes).await?;
        }
        if !points.is_empty() {
            self.context.series.save(&points).await?;
            for point in &points {
                let count = storage_points(kv::count(point.values).into(), point.ttl_seconds.into());
                usage.add(UsageKey::StorageDataPoints, count);
            }
        }
        for one in &stored {
            for change in kind.changes(one) {
                self.context.tell(change);
            }
            let subject = subject_of(&one.entity);
            for (scope, values) in [
                (AttributeScope::Shared, &one.line.shared),
                (AttributeScope::Server, &one.line.server),
            ] {
                if !values.is_empty() {
                    self.context.tell(EntityChange::AttributesChanged(subject, scope));
                }
            }
        }
        stream::iter(&stored)
            .for_each_concurrent(TELLING, |one| self.tell(who, one, now))
            .await;
        Ok(())
    }

    async fn tell<E: Assignable>(&self, who: &Principal, one: &Stored<E>, now: i64) {
        let saved: Entity = one.entity.clone().into_entity();
        self.actions.saved(who, one.create, &saved).await;
        let entity = subject_of(&one.entity).entity;
        for (scope, values) in [
            (AttributeScope::Shared, &one.line.shared),
            (AttributeScope::Server, &one.line.server),
        ] {
            if !values.is_empty() {
                self.actions
                    .attributes_updated(who, entity, scope, &object(values))
                    .await;
            }
        }
        if !one.line.series.is_empty() {
            let values = object(&one.line.series);
            let points = raw(format!("[{{\"ts\":{now},\"values\":{values}}}]"));
            self.actions.timeseries_updated(who, entity, &points).await;
        }
    }
}

fn subject_of<E: Assignable>(entity: &E) -> Subject {
    Subject {
        tenant: entity.head().tenant,
        entity: entity.id().unwrap_or_default().into(),
    }
}

fn check(mapping: &ImportMapping) -> ServiceResult<()> {
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

fn too_much(problem: csv::TooMuch) -> ServiceError {
    ServiceError::invalid(match problem {
        csv::TooMuch::Rows => format!("There must not be more than {} lines!", csv::MAX_ROWS),
        csv::TooMuch::Cells(line) => format!("Line {line} has more than {} cells!", csv::MAX_CELLS),
    })
}

/// The next lines up to a batch, as long as no name repeats: a name that comes again changes what the line before has made.
fn next_batch(lines: &mut Peekable<impl Iterator<Item = Line>>) -> Vec<Line> {
    let mut names = HashSet::new();
    let mut batch = Vec::new();
    while batch.len() < BATCH {
        let is_new = |line: &Line| match line.name() {
            Some(name) => names.insert(name.to_owned()),
            None => true,
        };
        match lines.next_if(is_new) {
            Some(line) => batch.push(line),
            None => break,
        }
    }
    batch
}

/// What a row says, by the columns.
fn read(row: csv::Row, mapping: &ImportMapping) -> Result<Line, String> {
    if row.cells.len() > mapping.columns.len() {
        return Err(format!(
            "There are {} cells, but {} columns",
            row.cells.len(),
            mapping.columns.len()
        ));
    }
    let mut fields = Fields::new();
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
    Ok(Line {
        number: row.line,
        fields,
        shared: pack(shared)?,
        server: pack(server)?,
        series: pack(series)?,
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
fn pack(mut object: String) -> Result<Vec<u8>, String> {
    let mut values = Vec::new();
    if object.is_empty() {
        return Ok(values);
    }
    object.push('}');
    let rules = JsonRules {
        nulls: Nulls::Reject,
        ..JsonRules::default()
    };
    match json::attributes(object.as_bytes(), &rules, &mut values) {
        Ok(_) => Ok(values),
        Err(error) => Err(format!("The values cannot be read: {error}")),
    }
}

/// Packed values as a JSON object.
fn object(values: &[u8]) -> Box<RawValue> {
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

/// Notes a description and other free-form fields.
fn note(info: &mut Option<serde_json::Value>, name: &str, value: serde_json::Value) {
    let info = info.get_or_insert_with(|| serde_json::json!({}));
    if let Some(fields) = info.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
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

    fn row(text: &str) -> csv::Row {
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
        let line = read(row, &mapping).unwrap();
        assert_eq!(
            object(&line.server).get(),
            r#"{"n":12,"f":1.5,"b":true,"j":{"x":[1]},"t":"{no json"}"#
        );
        assert!(line.series.is_empty());
        assert!(read(self::row("a,1,2,3,4,5,6,7"), &mapping).is_err());
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
