//! Where ThingsBoard has its data, as its own settings say.

use std::ffi::OsString;
use std::path::Path;

use fieldline_storage::series::{CassandraOptions, SeriesKind};

use crate::config::{self, ServerConfigError};

/// What the settings that say it begin with. The others are of no concern, and some of them are not for here.
const PREFIXES: [&str; 3] = ["SPRING_DATASOURCE_", "DATABASE_TS_TYPE", "CASSANDRA_"];

/// Where ThingsBoard has its data.
pub(super) struct HistorySource {
    pub(super) url: String,
    pub(super) cassandra: Option<CassandraOptions>,
}

/// Why ThingsBoard's settings do not say where its data is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error("{0}")]
    Read(#[from] std::io::Error),
    #[error("{0}")]
    Settings(ServerConfigError),
    #[error("it must set SPRING_DATASOURCE_URL, such as jdbc:postgresql://localhost:5432/thingsboard")]
    NoAddress,
}

/// Reads a file of ThingsBoard's settings.
pub(super) fn load(path: &Path) -> Result<HistorySource, SourceError> {
    of_settings(&std::fs::read_to_string(path)?)
}

fn of_settings(text: &str) -> Result<HistorySource, SourceError> {
    let is_wanted = |name: &str| PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let settings = text
        .lines()
        .filter_map(variable)
        .filter(|(name, _)| is_wanted(name));
    let settings = settings.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let config = config::load(None, settings, &[])
        .map_err(SourceError::Settings)?
        .config;
    Ok(HistorySource {
        url: config.sql.url.ok_or(SourceError::NoAddress)?,
        cassandra: (config.series.kind == SeriesKind::Cassandra).then_some(config.cassandra),
    })
}

/// The variable that a line sets: `export NAME="value"`, `NAME=value`, or `NAME: value` as in a compose file.
fn variable(line: &str) -> Option<(&str, &str)> {
    let line = line.trim().trim_start_matches("- ");
    let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
    let (name, rest) = line.split_at(end);
    let value = rest.strip_prefix(['=', ':'])?.trim();
    let quoted = |quote: char| {
        value
            .strip_prefix(quote)
            .and_then(|value| value.strip_suffix(quote))
    };
    let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
    (!name.is_empty()).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_a_package_and_of_a_container_are_read() {
        let package = of_settings(
            "# DB Configuration\n\
             export JAVA_OPTS=\"$JAVA_OPTS -Xmx2g\"\n\
             export DATABASE_TS_TYPE=sql\n\
             export TB_QUEUE_TYPE=kafka\n\
             export SPRING_DATASOURCE_URL=jdbc:postgresql://db:5432/thingsboard\n\
             export SPRING_DATASOURCE_USERNAME=postgres\n\
             export SPRING_DATASOURCE_PASSWORD='p w'\n",
        )
        .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(package.url, "postgres://postgres:p%20w@db:5432/thingsboard");
        assert!(package.cassandra.is_none());

        let compose = of_settings(
            "      - DATABASE_TS_TYPE=cassandra\n      SPRING_DATASOURCE_URL: \"jdbc:postgresql://db/tb\"\n      CASSANDRA_URL: cassandra:9042\n",
        )
        .unwrap_or_else(|error| panic!("{error}"));
        let cassandra = compose.cassandra.map(|options| (options.nodes, options.keyspace));
        assert_eq!(
            cassandra,
            Some(("cassandra:9042".to_owned(), "thingsboard".to_owned()))
        );
    }

    #[test]
    fn settings_without_an_address_are_refused() {
        let refused = of_settings("export DATABASE_TS_TYPE=sql\nSPRING_DATASOURCE_URL\n");
        assert!(matches!(refused, Err(SourceError::NoAddress)));
    }
}
