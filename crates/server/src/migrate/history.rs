//! `fieldline migrate-history`: fills the time series, latest values and attributes of entities that are here with what
//! ThingsBoard keeps of those of the same name.
//!
//! Points are written in batches, and each series is noted in a file with how far it is once that is durable. What is
//! written twice is the same, so a run that was cut off, and one that comes after further devices were imported, only cost
//! the reading of what is there.

mod progress;
mod source;
mod target;
mod writer;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use fieldline_core::clock::SystemClock;
use fieldline_core::ports::{AttributeStore as _, StoreError, TimeSeriesStore as _};
use fieldline_model::EntityType;
use fieldline_model::timeseries::{Aggregation, AggregationBucket, Attribute, AttributeScope, DataPoint};
use fieldline_storage::series::SeriesStore;
use fieldline_storage::sql::EntityDatabase;
use fieldline_storage::thingsboard::{
    ThingsBoardDatabase, ThingsBoardEntity, ThingsBoardPoints, ThingsBoardSeries,
};
use futures::{StreamExt as _, TryStreamExt as _};
use tokio::sync::Mutex;

use self::progress::HistoryProgress;
use self::source::SourceError;
use self::target::{HistorySubject, TargetEntities};
use self::writer::{CopiedSeries, HistoryWriter, expired_until};
use super::{ProgressPrinter, load, say};
use crate::config::ServerConfigError;
use crate::data_dir::DataDir;
use crate::serve::ServeError;
use crate::wiring::open_series;

/// Entities that are read from ThingsBoard at once, and whose points are counted before the next ones.
const PAGE_ENTITIES: u32 = 500;
/// Entities that are copied at the same time.
const ENTITIES_AT_ONCE: usize = 4;
/// Points of a series that are handed over together, and their bytes, unless one is larger.
const POINTS_AT_ONCE: usize = 1_000;
const BYTES_AT_ONCE: usize = 1 << 20;
/// What ThingsBoard keeps of a device's connection, and the platform itself keeps here.
const ACTIVITY: [&str; 5] = [
    "active",
    "lastActivityTime",
    "lastConnectTime",
    "lastDisconnectTime",
    "inactivityAlarmTime",
];

/// Copies the time series, latest values and attributes of a ThingsBoard installation to the entities of the same names.
/// ThingsBoard may run meanwhile, this installation must not. Where it is cut off, the same command goes on; run again, it
/// copies what has come since.
#[derive(Args)]
pub(crate) struct MigrateHistoryCommand {
    /// ThingsBoard's settings, as `/etc/thingsboard/conf/thingsboard.conf` or a file for containers has them:
    /// SPRING_DATASOURCE_URL, and CASSANDRA_URL with DATABASE_TS_TYPE=cassandra.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// Configuration file of the installation that is filled, or its data directory if it has no file.
    #[arg(long, value_name = "FILE|DIR")]
    to: PathBuf,
    /// A tenant of ThingsBoard and the one here that it has become, where the titles differ. Can be repeated.
    #[arg(long = "tenant", value_name = "TITLE=TITLE")]
    tenants: Vec<String>,
    /// Where it is noted how far each series is.
    #[arg(long, value_name = "FILE", default_value = "thingsboard-history.progress")]
    progress: PathBuf,
}

/// Why the history is not copied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MigrateHistoryError {
    #[error("{}: {error}", path.display())]
    Config { path: PathBuf, error: ServerConfigError },
    #[error("{}: {error}", path.display())]
    Source { path: PathBuf, error: SourceError },
    #[error("cannot read ThingsBoard: {0}")]
    Read(StoreError),
    #[error("cannot open the target: {0}")]
    Open(#[from] ServeError),
    #[error("cannot write to the target: {0}")]
    Write(#[from] StoreError),
    #[error("cannot note how far it is: {0}")]
    Progress(std::io::Error),
    #[error("`fieldline migrate` has not copied all of {0} into the target yet: run that to its end first")]
    UnfinishedTarget(String),
    #[error("the target has no tenants: start it once, and make or import what is to get a history")]
    EmptyTarget,
    #[error("ThingsBoard has several tenants with the title {0}: give them different ones first")]
    TenantTitleTwice(String),
    #[error("--tenant {0}: it must be a title there, `=` and a title here, both of tenants that exist")]
    UnknownTenant(String),
    #[error(
        "{entity} has {found} points of `{series}` where {copied} were copied: delete the progress file and copy again"
    )]
    Missing {
        entity: String,
        series: String,
        found: u64,
        copied: u64,
    },
}

/// Copies the history; prints how far it is.
pub(crate) fn run(command: &MigrateHistoryCommand) -> Result<(), MigrateHistoryError> {
    let source = source::load(&command.from).map_err(|error| MigrateHistoryError::Source {
        path: command.from.clone(),
        error,
    })?;
    let config = load(&command.to).map_err(|(path, error)| MigrateHistoryError::Config { path, error })?;
    let runtime = tokio::runtime::Runtime::new().map_err(ServeError::start)?;
    runtime.block_on(async {
        let dir = DataDir::open(&config.data_dir).map_err(|source| ServeError::DataDir {
            path: config.data_dir.clone(),
            source,
        })?;
        let thingsboard = ThingsBoardDatabase::open(&source.url, source.cassandra.as_ref())
            .await
            .map_err(MigrateHistoryError::Read)?;
        let database = EntityDatabase::open(&dir.entities(), &config.sql).await?;
        if let Some(unfinished) = database.unfinished_copy().await? {
            return Err(MigrateHistoryError::UnfinishedTarget(unfinished));
        }
        let installation = database.installation().await?;
        let installation = installation.ok_or(MigrateHistoryError::EmptyTarget)?;
        let series = open_series(&dir, &config, &(Arc::new(SystemClock) as _)).await?;
        let target = TargetEntities::open(database.entity_stores(), &thingsboard, &command.tenants).await?;
        let progress =
            HistoryProgress::open(&command.progress, &installation).map_err(MigrateHistoryError::Progress)?;
        let copy = HistoryCopy {
            thingsboard,
            target,
            series: series.clone(),
            writer: Mutex::new(HistoryWriter::new(series.clone(), progress)),
        };
        let copied = copy.run().await;
        copy.thingsboard.close().await;
        let closed = tokio::task::block_in_place(|| series.close());
        database.close().await;
        copied?;
        Ok(closed?)
    })
}

/// A copy under way.
struct HistoryCopy {
    thingsboard: ThingsBoardDatabase,
    target: TargetEntities,
    series: Arc<SeriesStore>,
    writer: Mutex<HistoryWriter>,
}

impl HistoryCopy {
    async fn run(&self) -> Result<(), MigrateHistoryError> {
        let mut absent = AbsentEntities::default();
        let mut entities = 0;
        for kind in ThingsBoardDatabase::KINDS {
            let mut after = None;
            loop {
                let page = self
                    .thingsboard
                    .entities(kind, after, PAGE_ENTITIES)
                    .await
                    .map_err(MigrateHistoryError::Read)?;
                let Some(last) = page.last() else { break };
                after = Some(last.id.id);
                let subjects = self.target.find(kind, &page).await?;
                let mut found = Vec::with_capacity(page.len());
                for entity in page {
                    match subjects.get(&entity.id) {
                        Some(subject) => found.push((entity, *subject)),
                        None => absent.add(kind, &entity.name),
                    }
                }
                entities += found.len();
                self.copy_page(&found).await?;
            }
        }
        self.writer.lock().await.end(entities);
        absent.report();
        Ok(())
    }

    async fn copy_page(
        &self,
        page: &[(ThingsBoardEntity, HistorySubject)],
    ) -> Result<(), MigrateHistoryError> {
        let copies = page
            .iter()
            .map(|(entity, subject)| self.copy_entity(entity, *subject));
        let copied: Vec<Vec<CopiedSeries>> = futures::stream::iter(copies)
            .buffer_unordered(ENTITIES_AT_ONCE)
            .try_collect()
            .await?;
        self.writer.lock().await.save().await?;
        for series in copied.iter().flatten() {
            self.verify(series).await?;
        }
        Ok(())
    }

    async fn copy_entity(
        &self,
        entity: &ThingsBoardEntity,
        subject: HistorySubject,
    ) -> Result<Vec<CopiedSeries>, MigrateHistoryError> {
        let read = MigrateHistoryError::Read;
        let mut copied = Vec::new();
        for series in self.thingsboard.series(entity.id).await.map_err(read)? {
            copied.extend(self.copy_series(entity, subject, &series).await?);
        }
        let latest = self.thingsboard.latest(entity.id).await.map_err(read)?;
        let attributes = self.thingsboard.attributes(entity.id).await.map_err(read)?;
        let newer = self.newer_attributes(subject, attributes).await?;
        let mut writer = self.writer.lock().await;
        writer.put_latest(subject, latest).await?;
        writer.put_attributes(subject, newer).await?;
        Ok(copied)
    }

    /// Those of the attributes that are newer than what is here, and that the platform does not keep itself.
    async fn newer_attributes(
        &self,
        subject: HistorySubject,
        mut attributes: Vec<(AttributeScope, Attribute)>,
    ) -> Result<Vec<(AttributeScope, Attribute)>, MigrateHistoryError> {
        let is_of_device = subject.key.entity.entity_type == EntityType::Device;
        attributes.retain(|(scope, attribute)| {
            !(is_of_device && *scope == AttributeScope::Server && ACTIVITY.contains(&&*attribute.key))
        });
        for scope in AttributeScope::ALL {
            if !attributes.iter().any(|(of, _)| *of == scope) {
                continue;
            }
            let here = self.series.get(subject.key, scope, None).await?;
            let here: HashMap<&str, i64> = here
                .iter()
                .map(|attribute| (&*attribute.key, attribute.last_update_ts))
                .collect();
            attributes.retain(|(of, attribute)| {
                *of != scope
                    || here
                        .get(&*attribute.key)
                        .is_none_or(|time| *time < attribute.last_update_ts)
            });
        }
        Ok(attributes)
    }

    async fn copy_series(
        &self,
        entity: &ThingsBoardEntity,
        subject: HistorySubject,
        series: &ThingsBoardSeries,
    ) -> Result<Option<CopiedSeries>, MigrateHistoryError> {
        let comes_in_order = self.thingsboard.comes_in_order();
        let after = self.writer.lock().await.until(entity.id, subject, &series.name);
        let mut points = self.thingsboard.points(entity.id, series, after);
        let mut copied = CopiedSeries {
            entity: format!("{} {}", entity.id.entity_type.name(), entity.name),
            subject,
            series: series.name.clone(),
            first: i64::MAX,
            last: i64::MIN,
            points: 0,
        };
        let mut newest: Option<i64> = None;
        let mut chunk = Vec::new();
        loop {
            let is_over = next_chunk(&mut points, &mut chunk).await?;
            let Some(last) = chunk.iter().map(|point| point.ts).max() else {
                break;
            };
            newest = newest.max(Some(last));
            let mut writer = self.writer.lock().await;
            writer.put_points(&mut copied, &chunk).await?;
            if comes_in_order || is_over {
                writer.reach(entity.id, subject, &series.name, newest.unwrap_or(last));
            }
            if is_over {
                break;
            }
        }
        Ok((copied.points > 0).then_some(copied))
    }

    /// Makes sure that what was copied is there.
    async fn verify(&self, copied: &CopiedSeries) -> Result<(), MigrateHistoryError> {
        if copied.first < expired_until(copied.subject) {
            // Some have reached the end of their life meanwhile.
            return Ok(());
        }
        let span = AggregationBucket {
            start: copied.first,
            end: copied.last.saturating_add(1),
        };
        let counted = self
            .series
            .aggregate(copied.subject.key, &copied.series, Aggregation::Count, &[span])
            .await?;
        let found = counted.first().and_then(|point| point.value.as_number());
        // Devices may have sent others since.
        let found = found.unwrap_or(0.0) as u64;
        if found < copied.points && !self.thingsboard.comes_in_order() {
            // A point that was written again after the periods had changed is in two of them.
            let (
                CopiedSeries {
                    entity,
                    series,
                    points,
                    ..
                },
                other,
            ) = (copied, copied.points - found);
            say(format_args!(
                "{entity}: `{series}` has {found} points of {points} copied; {other} were at the times of others"
            ));
            return Ok(());
        }
        if found < copied.points {
            return Err(MigrateHistoryError::Missing {
                entity: copied.entity.clone(),
                series: copied.series.clone(),
                found,
                copied: copied.points,
            });
        }
        Ok(())
    }
}

/// Fills a chunk with the next points, as many as are handed over together. Returns whether they were the last ones.
async fn next_chunk(
    points: &mut ThingsBoardPoints<'_>,
    chunk: &mut Vec<DataPoint>,
) -> Result<bool, MigrateHistoryError> {
    chunk.clear();
    let mut bytes = 0;
    while chunk.len() < POINTS_AT_ONCE && bytes < BYTES_AT_ONCE {
        match points.try_next().await.map_err(MigrateHistoryError::Read)? {
            Some(point) => {
                bytes += point.bytes();
                chunk.push(point);
            }
            None => return Ok(true),
        }
    }
    Ok(false)
}

/// Entities of ThingsBoard that are not here.
#[derive(Default)]
struct AbsentEntities {
    count: u64,
    /// The first ones.
    named: Vec<String>,
}

impl AbsentEntities {
    const NAMED: usize = 10;

    fn add(&mut self, kind: EntityType, name: &str) {
        self.count += 1;
        if self.named.len() < Self::NAMED {
            self.named.push(format!("{} {name}", kind.name()));
        }
    }

    fn report(&self) {
        let names = self.named.join(", ");
        let more = match self.count - self.named.len() as u64 {
            0 => String::new(),
            more => format!(" and {more} others"),
        };
        if self.count > 0 {
            say(format_args!(
                "{} entities of ThingsBoard are not here: {names}{more}. Run the command again once they are",
                self.count
            ));
        }
    }
}
