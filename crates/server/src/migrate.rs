//! `fieldline migrate`: copies an installation to other databases, and makes sure that all of it has arrived.

mod history;
mod log;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use fieldline_core::clock::{Clock as _, SystemClock};
use fieldline_core::ports::{Journal, Partition, StateKey, StoreError};
use fieldline_journal::JournalKind;
use fieldline_storage::series::{SeriesCopy, SeriesKind, SeriesPlace, SqlSeriesOptions};
use fieldline_storage::sql::EntityDatabase;

pub(crate) use self::history::{MigrateHistoryCommand, run as run_history};
use self::log::LogBacklog;
use crate::config::{self, Config, ServerConfigError};
use crate::data_dir::DataDir;
use crate::serve::ServeError;
use crate::wiring::open_journal;

/// How often the progress is printed.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// Copies an installation to other databases. Neither of them may be in use. Where it is cut off, the same command goes
/// on.
#[derive(Args)]
pub(crate) struct MigrateCommand {
    /// Configuration file of the installation, or its data directory if it has no file. Environment variables do not
    /// count, since they would for both.
    #[arg(long, value_name = "FILE|DIR")]
    from: PathBuf,
    /// Configuration file or data directory of the one that it is copied to, whose databases are empty.
    #[arg(long, value_name = "FILE|DIR")]
    to: PathBuf,
}

/// Why an installation is not copied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MigrateError {
    #[error("{}: {error}", path.display())]
    Config { path: PathBuf, error: ServerConfigError },
    #[error("there is no {}: `--from` has to name all settings of the installation, also those of its environment", .0.display())]
    NothingThere(PathBuf),
    #[error("`fieldline migrate` has not copied all of {0} into the source: run that to its end first")]
    UnfinishedSource(String),
    #[error("both name the same {0}: nothing would be copied there, name another one")]
    SamePlace(&'static str),
    #[error("{side}: {error}")]
    Open { side: &'static str, error: ServeError },
    #[error("cannot copy the log: {0}")]
    Log(#[from] log::LogCopyError),
    #[error("cannot copy: {0}")]
    Store(#[from] StoreError),
    #[error("cannot copy the key of tokens: {0}")]
    Key(std::io::Error),
    #[error(
        "{what} differ: the source has {source_rows}, the target {target_rows}, or others. Copy again into empty databases"
    )]
    Differs {
        what: String,
        source_rows: u64,
        target_rows: u64,
    },
}

/// One of the two installations.
struct Side {
    config: Config,
    dir: Arc<DataDir>,
    journal: Arc<dyn Journal>,
    database: EntityDatabase,
    owner: SqlSeriesOptions,
    series_dir: PathBuf,
}

impl Side {
    async fn open(config: Config, dir: Arc<DataDir>) -> Result<Self, ServeError> {
        let journal = open_journal(&dir, &config).await?;
        let database = EntityDatabase::open(&dir.entities(), &config.sql).await?;
        Ok(Self {
            owner: SqlSeriesOptions {
                url: config.sql.url.clone().unwrap_or_default(),
                connections: config.series.connections,
                plain_rows: config.series.plain_rows,
            },
            series_dir: dir.series(),
            config,
            dir,
            journal,
            database,
        })
    }

    fn series(&self) -> SeriesPlace<'_> {
        match self.config.series.kind {
            SeriesKind::Embedded => SeriesPlace::Embedded(&self.series_dir, &self.config.series),
            SeriesKind::Sql => SeriesPlace::Sql(&self.owner),
            SeriesKind::Cassandra => SeriesPlace::Cassandra(&self.owner, &self.config.cassandra),
        }
    }

    async fn close(&self) {
        self.journal.close().await;
        self.database.close().await;
    }
}

/// Copies an installation; prints how far it is.
pub(crate) fn run(command: &MigrateCommand) -> Result<(), MigrateError> {
    let load = |path| load(path).map_err(|(path, error)| MigrateError::Config { path, error });
    let (from, to) = (load(&command.from)?, load(&command.to)?);
    let files = [
        (from.sql.url.is_none(), "entities.db"),
        (from.series.kind == SeriesKind::Embedded, "series"),
        (from.journal.kind == JournalKind::Embedded, "journal"),
    ];
    // Opening would make them.
    for (is_there, name) in files {
        let path = from.data_dir.join(name);
        if is_there && !path.exists() {
            return Err(MigrateError::NothingThere(path));
        }
    }
    refuse_same_places(&from, &to)?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| MigrateError::Open {
        side: "cannot start",
        error: ServeError::start(error),
    })?;
    runtime.block_on(migrate(from, to))
}

/// The settings of an installation, from its file or for its data directory.
fn load(path: &Path) -> Result<Config, (PathBuf, ServerConfigError)> {
    // The target's directory need not be there yet.
    let is_dir = path.is_dir() || (!path.exists() && path.extension().is_none());
    let flags = [("data-dir", "--from or --to", path.as_os_str().to_owned())];
    let flags = if is_dir { &flags[..] } else { &[] };
    let loaded = config::load((!is_dir).then_some(path), std::iter::empty(), flags);
    loaded
        .map(|loaded| loaded.config)
        .map_err(|error| (path.to_owned(), error))
}

fn real_path(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn is_same_dir(from: &Config, to: &Config) -> bool {
    real_path(&from.data_dir) == real_path(&to.data_dir)
}

fn refuse_same_places(from: &Config, to: &Config) -> Result<(), MigrateError> {
    let is_same_dir = is_same_dir(from, to);
    if from.sql.url == to.sql.url && (from.sql.url.is_some() || is_same_dir) {
        return Err(MigrateError::SamePlace("database of entities"));
    }
    if from.series.kind == SeriesKind::Embedded && to.series.kind == SeriesKind::Embedded && is_same_dir {
        return Err(MigrateError::SamePlace("directory of time series"));
    }
    let keyspace = |config: &Config| {
        (config.series.kind == SeriesKind::Cassandra)
            .then(|| (config.cassandra.nodes.clone(), config.cassandra.keyspace.clone()))
    };
    if keyspace(from).is_some() && keyspace(from) == keyspace(to) {
        return Err(MigrateError::SamePlace("keyspace of Cassandra"));
    }
    let topics = |config: &Config| {
        let kafka = &config.journal.kafka;
        (config.journal.kind == JournalKind::Kafka).then(|| (kafka.servers.clone(), kafka.prefix.clone()))
    };
    match (topics(from), topics(to)) {
        (None, None) if is_same_dir => Err(MigrateError::SamePlace("log")),
        (Some(one), Some(other)) if one == other => Err(MigrateError::SamePlace("topics of Kafka")),
        _ => Ok(()),
    }
}

/// Opens the data directories, which may be one.
fn open_dirs(from: &Config, to: &Config) -> Result<(Arc<DataDir>, Arc<DataDir>), MigrateError> {
    let open = |side, path: &PathBuf| {
        let opened = DataDir::open(path).map_err(|source| ServeError::DataDir {
            path: path.clone(),
            source,
        });
        opened
            .map(Arc::new)
            .map_err(|error| MigrateError::Open { side, error })
    };
    let source = open("source", &from.data_dir)?;
    let target = match is_same_dir(from, to) {
        true => source.clone(),
        false => open("target", &to.data_dir)?,
    };
    Ok((source, target))
}

async fn migrate(from: Config, to: Config) -> Result<(), MigrateError> {
    let (source_dir, target_dir) = open_dirs(&from, &to)?;
    let opened = |side| move |error| MigrateError::Open { side, error };
    let source = Side::open(from, source_dir).await.map_err(opened("source"))?;
    let target = Side::open(to, target_dir).await.map_err(opened("target"))?;
    let done = copy(&source, &target).await;
    source.close().await;
    target.close().await;
    done
}

async fn copy(source: &Side, target: &Side) -> Result<(), MigrateError> {
    if let Some(unfinished) = source.database.unfinished_copy().await? {
        return Err(MigrateError::UnfinishedSource(unfinished));
    }
    let place = source.dir.root().display().to_string();
    let Some(installation) = source.database.installation().await? else {
        return Err(MigrateError::NothingThere(source.dir.root().to_owned()));
    };
    // People know the place, and it is the same installation wherever its directory is.
    let label = format!("{place} (installation {installation})");
    if target.database.unfinished_copy().await?.is_none() {
        target.database.refuse_entities().await?;
        log::refuse_used(target.journal.as_ref())?;
    }
    target.database.begin_copy(&label).await?;
    let series = tokio::task::block_in_place(|| {
        SeriesCopy::begin(&source.series(), &target.series(), &label, SystemClock.now_ms())
    })?;
    let mut printer = ProgressPrinter::default();
    target
        .database
        .copy_from(&source.database, &mut |table, rows| printer.print(table, rows))
        .await?;
    printer.end();
    verify_entities(source, target).await?;
    if !series.is_done() {
        copy_series_and_log(source, target, &series).await?;
    }
    // From here on the target may be used.
    target.database.end_copy().await?;
    say(format_args!("all of it is there and the same"));
    Ok(())
}

async fn copy_series_and_log(source: &Side, target: &Side, series: &SeriesCopy) -> Result<(), MigrateError> {
    let backlog = LogBacklog::open(&source.journal, &target.journal, series)?;
    let route = |partition: Partition, key: &StateKey| backlog.route(partition, key);
    tokio::task::block_in_place(|| series.check_states(&route))?;
    let mut printer = ProgressPrinter::default();
    tokio::task::block_in_place(|| {
        series.copy(&route, &mut |part, entries| printer.print(part.name(), entries))
    })?;
    printer.end();
    tokio::task::block_in_place(|| verify_series(series, &route))?;
    let records = backlog.copy(series).await?;
    say(format_args!(
        "{records} records of the log copied that are not stored yet"
    ));
    copy_key(source, target).map_err(MigrateError::Key)?;
    tokio::task::block_in_place(|| series.end())?;
    Ok(())
}

async fn verify_entities(source: &Side, target: &Side) -> Result<(), MigrateError> {
    let (before, after) = (
        source.database.checksums().await?,
        target.database.checksums().await?,
    );
    for (before, after) in before.iter().zip(&after) {
        if before != after {
            return Err(MigrateError::Differs {
                what: format!("the rows of {}", before.table),
                source_rows: before.rows,
                target_rows: after.rows,
            });
        }
    }
    let rows: u64 = after.iter().map(|table| table.rows).sum();
    say(format_args!("{rows} rows of entities compared"));
    Ok(())
}

fn verify_series(
    series: &SeriesCopy,
    route: fieldline_storage::series::StateRoute<'_>,
) -> Result<(), MigrateError> {
    for (part, [before, after]) in series.checksums(route)? {
        if before != after {
            return Err(MigrateError::Differs {
                what: part.name().to_owned(),
                source_rows: before.entries,
                target_rows: after.entries,
            });
        }
        say(format_args!("{} {} compared", after.entries, part.name()));
    }
    Ok(())
}

/// Copies the key that tokens are signed with, so that whoever is logged in stays so, and the mark of the demo.
fn copy_key(source: &Side, target: &Side) -> std::io::Result<()> {
    if Arc::ptr_eq(&source.dir, &target.dir) {
        return Ok(());
    }
    target.dir.take_key_and_mark(&source.dir)
}

/// Prints how far a copy is, now and then.
#[derive(Default)]
struct ProgressPrinter {
    last: Option<(&'static str, u64)>,
    printed: Option<Instant>,
}

impl ProgressPrinter {
    fn print(&mut self, what: &'static str, copied: u64) {
        if self.last.is_some_and(|(before, _)| before != what) {
            self.end();
        }
        self.last = Some((what, copied));
        if self.printed.is_none_or(|at| at.elapsed() >= PROGRESS_INTERVAL) {
            self.printed = Some(Instant::now());
            say(format_args!("{what}: {copied} …"));
        }
    }

    /// Ends what is being copied.
    fn end(&mut self) {
        if let Some((what, copied)) = self.last.take() {
            say(format_args!("{what}: {copied} copied"));
        }
        self.printed = None;
    }
}

fn say(line: std::fmt::Arguments<'_>) {
    // A reader such as `head` may close the pipe early.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
