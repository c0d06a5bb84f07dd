//! Merges defaults, file, ThingsBoard's environment variables, the program's own and the command line into one configuration;
//! later sources win.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use toml::{Table, Value};

use super::schema::{ConfigKey, ConfigValueKind, keys};
use super::{Config, aliases, checks, is_secret};

/// Every environment variable with this prefix must be a key; those with the test prefix are exempt.
const PREFIX: &str = "FIELDLINE_";
const TEST_PREFIX: &str = "FIELDLINE_TEST_";
const NOT_UNICODE: &str = "the value is not valid Unicode";

/// Source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConfigSource {
    /// Built in.
    Default,
    /// A line of the configuration file.
    File(PathBuf),
    /// An environment variable.
    Environment(String),
    /// A flag of the command line.
    CommandLine(&'static str),
}

impl fmt::Display for ConfigSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::CommandLine(flag) => write!(f, "command line {flag}"),
        }
    }
}

/// Why the configuration was refused: one line per problem, each naming its key.
#[derive(Debug, thiserror::Error)]
#[error("the configuration cannot be used:\n  {}", .0.join("\n  "))]
pub(crate) struct ServerConfigError(pub Vec<String>);

/// The effective configuration with the source of each value.
#[derive(Debug)]
pub(crate) struct EffectiveConfig {
    /// The values.
    pub config: Config,
    pub(super) values: Table,
    pub(super) sources: BTreeMap<String, ConfigSource>,
    pub(super) keys: Vec<ConfigKey>,
    /// Environment variables of ThingsBoard's that set nothing here.
    pub(crate) without_effect: Vec<String>,
}

impl EffectiveConfig {
    /// Returns the source of a key's value.
    pub(crate) fn source(&self, path: &str) -> &ConfigSource {
        self.sources.get(path).unwrap_or(&ConfigSource::Default)
    }
}

/// Reads the file, the environment and the flags. Later ones win.
pub(crate) fn load(
    file: Option<&Path>,
    environment: impl Iterator<Item = (OsString, OsString)>,
    flags: &[(&str, &'static str, OsString)],
) -> Result<EffectiveConfig, ServerConfigError> {
    let keys = keys();
    let mut values =
        Table::try_from(Config::default()).map_err(|error| ServerConfigError(vec![error.to_string()]))?;
    let mut sources = BTreeMap::new();
    let mut problems = Vec::new();

    if let Some(path) = file {
        read_file(path, &keys, &mut values, &mut sources, &mut problems);
    }
    let (ours, others): (Vec<_>, Vec<_>) = environment.partition(|(name, _)| is_ours(name));
    let aliased = aliases::read(&unicode(others));
    for (path, value, name) in aliased.values {
        set(&mut values, path, value);
        sources.insert(path.to_owned(), ConfigSource::Environment(name.to_owned()));
    }
    problems.extend(aliased.problems);
    for (name, text) in ours {
        match variable(&name, &text, &keys) {
            Ok(Some((key, name, value))) => {
                set(&mut values, &key.path, value);
                sources.insert(key.path.clone(), ConfigSource::Environment(name.to_owned()));
            }
            Ok(None) => {}
            Err(problem) => problems.push(problem),
        }
    }
    for (path, flag, text) in flags {
        match text.to_str() {
            Some(text) => {
                set(&mut values, path, Value::String(text.to_owned()));
                sources.insert((*path).to_owned(), ConfigSource::CommandLine(flag));
            }
            None => problems.push(format!("{flag} (`{path}`): {NOT_UNICODE}")),
        }
    }
    if !problems.is_empty() {
        return Err(ServerConfigError(problems));
    }

    let config: Config = serde_path_to_error::deserialize(Value::Table(values.clone())).map_err(|error| {
        let path = error.path().to_string();
        let source = sources.get(&path).unwrap_or(&ConfigSource::Default);
        // The usual message quotes the value.
        let message = if is_secret(&path) {
            "it is of another type, or has a field that is not known"
        } else {
            error.inner().message()
        };
        ServerConfigError(vec![format!("`{path}` ({source}): {message}")])
    })?;
    let contradictions = checks::contradictions(&config);
    if contradictions.is_empty() {
        Ok(EffectiveConfig {
            config,
            values,
            sources,
            keys,
            without_effect: aliased.without_effect,
        })
    } else {
        Err(ServerConfigError(contradictions))
    }
}

fn is_ours(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(PREFIX.as_bytes()) && !name.starts_with(TEST_PREFIX.as_bytes())
}

/// Returns the variables that are text; what is none belongs to nobody who is read here.
fn unicode(variables: Vec<(OsString, OsString)>) -> BTreeMap<String, String> {
    variables
        .into_iter()
        .filter_map(|(name, text)| Some((name.into_string().ok()?, text.into_string().ok()?)))
        .collect()
}

/// Returns the key that an environment variable sets, its name and the value; `None` if the variable is not meant for
/// this program.
fn variable<'k, 'n>(
    name: &'n OsStr,
    text: &OsStr,
    keys: &'k [ConfigKey],
) -> Result<Option<(&'k ConfigKey, &'n str, Value)>, String> {
    let (Some(name), Some(text)) = (name.to_str(), text.to_str()) else {
        return Err(format!("{}: {NOT_UNICODE}", name.to_string_lossy()));
    };
    let Some(key) = keys.iter().find(|key| key.env == name) else {
        if is_service_link(name, text) {
            return Ok(None);
        }
        let hint = closest(name, keys.iter().map(|key| &*key.env));
        return Err(format!("{name}: no setting has this environment variable{hint}"));
    };
    match parse(key.shape, text) {
        Ok(value) => Ok(Some((key, name, value))),
        Err(expected) => Err(format!("{name} (`{}`): expected {expected}", key.path)),
    }
}

/// Whether Kubernetes has set the variable for a service whose name starts like the program's. Kubernetes sets
/// `NAME_SERVICE_HOST`, `NAME_SERVICE_PORT[_PORTNAME]`, `NAME_PORT` and `NAME_PORT_8080_TCP[_PROTO|_PORT|_ADDR]` in
/// every container of the namespace.
fn is_service_link(name: &str, text: &str) -> bool {
    let is_protocol = |rest: &str| {
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        ["_TCP", "_UDP", "_SCTP"].iter().any(|protocol| {
            rest.strip_prefix(protocol)
                .is_some_and(|end| ["", "_PROTO", "_PORT", "_ADDR"].contains(&end))
        })
    };
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || (name.ends_with("_PORT") && text.contains("://"))
        || name
            .match_indices("_PORT_")
            .any(|(at, found)| name.get(at + found.len()..).is_some_and(is_protocol))
}

fn read_file(
    path: &Path,
    keys: &[ConfigKey],
    values: &mut Table,
    sources: &mut BTreeMap<String, ConfigSource>,
    problems: &mut Vec<String>,
) {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => return problems.push(format!("cannot read {}: {error}", path.display())),
    };
    let table = match toml::Deserializer::parse(&text).and_then(Table::deserialize) {
        Ok(table) => table,
        Err(error) => return problems.push(unreadable(path, &text, &error)),
    };
    for (key, value) in leaves("", &table, keys) {
        if keys.iter().any(|known| known.path == key) {
            set(values, &key, value);
            sources.insert(key, ConfigSource::File(path.to_owned()));
        } else {
            let hint = closest(&key, keys.iter().map(|key| &*key.path));
            problems.push(format!(
                "`{key}` in {}: there is no such setting{hint}",
                path.display()
            ));
        }
    }
}

/// Describes a syntax error by line number, without quoting the line: it may hold a secret.
fn unreadable(path: &Path, text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(1, |before| before.matches('\n').count() + 1);
    format!("{}, line {line}: {}", path.display(), error.message())
}

/// Returns the values of a table by their paths. A table that is itself unknown counts as one value.
fn leaves(prefix: &str, table: &Table, keys: &[ConfigKey]) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for (name, value) in table {
        let path = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}.{name}")
        };
        let is_section = keys.iter().any(|key| {
            key.path
                .strip_prefix(&path)
                .is_some_and(|rest| rest.starts_with('.'))
        });
        match value {
            Value::Table(inner) if is_section => found.extend(leaves(&path, inner, keys)),
            other => found.push((path, other.clone())),
        }
    }
    found
}

fn set(values: &mut Table, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            values.insert(path.to_owned(), value);
        }
        Some((section, rest)) => {
            if let Value::Table(inner) = values
                .entry(section.to_owned())
                .or_insert_with(|| Value::Table(Table::new()))
            {
                set(inner, rest, value);
            }
        }
    }
}

fn parse(shape: ConfigValueKind, text: &str) -> Result<Value, &'static str> {
    match shape {
        ConfigValueKind::Text => Ok(Value::String(text.to_owned())),
        ConfigValueKind::Integer => text
            .trim()
            .parse()
            .map(Value::Integer)
            .map_err(|_| "a whole number"),
        ConfigValueKind::Float => text.trim().parse().map(Value::Float).map_err(|_| "a number"),
        ConfigValueKind::Boolean => text
            .trim()
            .parse()
            .map(Value::Boolean)
            .map_err(|_| "true or false"),
        ConfigValueKind::List => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            Ok(Value::Array(
                items.map(|item| Value::String(item.to_owned())).collect(),
            ))
        }
    }
}

/// Suggests the name that was probably meant.
fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    known
        .map(|candidate| (distance(name, candidate), candidate))
        .min()
        .filter(|(distance, _)| *distance <= name.len().div_ceil(4))
        .map_or_else(String::new, |(_, candidate)| {
            format!(" (did you mean `{candidate}`?)")
        })
}

/// Levenshtein distance.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = i;
        let mut previous = i + 1;
        for (cell, b) in row.iter_mut().skip(1).zip(&right) {
            let cost = diagonal + usize::from(a != *b);
            diagonal = *cell;
            previous = cost.min(previous + 1).min(*cell + 1);
            *cell = previous;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Result<EffectiveConfig, ServerConfigError> {
        let owned: Vec<_> = pairs
            .iter()
            .map(|(name, text)| (OsString::from(name), OsString::from(text)))
            .collect();
        load(None, owned.into_iter(), &[])
    }

    #[test]
    fn the_environment_overrides_the_file_and_flags_override_both() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("fieldline.toml");
        std::fs::write(
            &file,
            "log = \"warn\"\n[http]\nlisten = \"127.0.0.1:1\"\nmax-connections = 7\n",
        )
        .unwrap();
        let environment = [("FIELDLINE_HTTP_LISTEN".into(), "127.0.0.1:2".into())];
        let flags = [("data-dir", "--data-dir", "elsewhere".into())];
        let loaded = load(Some(&file), environment.into_iter(), &flags).unwrap();
        assert_eq!(loaded.config.http.listen.port(), 2);
        assert_eq!(
            (loaded.config.http.max_connections, loaded.config.log.as_str()),
            (7, "warn")
        );
        assert_eq!(
            loaded.source("data-dir"),
            &ConfigSource::CommandLine("--data-dir")
        );
        assert_eq!(loaded.source("http.max-connections"), &ConfigSource::File(file));
        assert_eq!(loaded.source("mqtt.listen"), &ConfigSource::Default);
    }

    #[test]
    fn names_of_thingsboard_are_weaker_than_the_programs_own() {
        let loaded = env(&[
            ("HTTP_BIND_PORT", "9090"),
            ("MQTT_BIND_PORT", "2883"),
            ("FIELDLINE_MQTT_LISTEN", "127.0.0.1:1"),
            ("SPRING_DATASOURCE_URL", "jdbc:postgresql://db/tb"),
            ("CACHE_TYPE", "redis"),
        ])
        .unwrap();
        let config = &loaded.config;
        assert_eq!((config.http.listen.port(), config.mqtt.listen.port()), (9090, 1));
        assert_eq!(config.sql.url.as_deref(), Some("postgres://db/tb"));
        let source = ConfigSource::Environment("HTTP_BIND_PORT".to_owned());
        assert_eq!(loaded.source("http.listen"), &source);
        assert_eq!(loaded.without_effect, ["CACHE_TYPE"]);
    }

    #[test]
    fn a_refusal_names_the_key_and_what_is_allowed() {
        for (name, text, expected) in [
            (
                "FIELDLINE_HTPP_LISTEN",
                "x",
                "did you mean `FIELDLINE_HTTP_LISTEN`?",
            ),
            (
                "FIELDLINE_HTTP_LISTEN",
                "nowhere",
                "`http.listen` (environment FIELDLINE_HTTP_LISTEN)",
            ),
            (
                "FIELDLINE_HTTP_MAX_CONNECTIONS",
                "many",
                "expected a whole number",
            ),
            (
                "FIELDLINE_INGEST_PARTITIONS",
                "0",
                "`ingest.partitions` must be 1 to 1024",
            ),
            (
                "FIELDLINE_INGEST_CHECKPOINT_INTERVAL",
                "soon",
                "write it as 250ms",
            ),
            ("FIELDLINE_LOG_FORMAT", "xml", "expected `text` or `json`"),
        ] {
            let error = env(&[(name, text)]).unwrap_err().to_string();
            assert!(error.contains(expected), "{name}={text}: {error}");
        }
    }

    #[test]
    fn variables_that_kubernetes_sets_for_services_are_not_ours() {
        let links = [
            ("FIELDLINE_SERVICE_HOST", "10.0.0.1"),
            ("FIELDLINE_SERVICE_PORT", "8080"),
            ("FIELDLINE_SERVICE_PORT_HTTP", "8080"),
            ("FIELDLINE_PORT", "tcp://10.0.0.1:8080"),
            ("FIELDLINE_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
            ("FIELDLINE_PORT_8080_TCP_PROTO", "tcp"),
            ("FIELDLINE_PORT_8080_TCP_PORT", "8080"),
            ("FIELDLINE_MQTT_PORT_1883_TCP_ADDR", "10.0.0.1"),
            ("FIELDLINE_COAP_PORT_5683_UDP", "udp://10.0.0.1:5683"),
        ];
        env(&links).unwrap();
        for (name, text) in [
            ("FIELDLINE_HTTP_PORT", "8080"),
            ("FIELDLINE_PORT_NUMBER_TCP", "1"),
        ] {
            let error = env(&[(name, text)]).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_by_name_where_they_are_ours() {
        use std::os::unix::ffi::OsStringExt as _;
        let broken = || OsString::from_vec(b"caf\xe9".to_vec());
        let foreign = [(OsString::from("LS_COLORS"), broken()), (broken(), "x".into())];
        load(None, foreign.into_iter(), &[]).unwrap();
        let ours = [(OsString::from("FIELDLINE_DATA_DIR"), broken())];
        let error = load(None, ours.into_iter(), &[]).unwrap_err().to_string();
        assert!(
            error.contains("FIELDLINE_DATA_DIR: the value is not valid Unicode"),
            "{error}"
        );
        let flags = [("data-dir", "--data-dir", broken())];
        let error = load(None, std::iter::empty(), &flags).unwrap_err().to_string();
        assert!(error.contains("--data-dir"), "{error}");
    }

    #[test]
    fn a_refusal_does_not_repeat_a_secret() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("fieldline.toml");
        for line in [
            "admin-password = 8675309",
            "admin-password = s8675309",
            "admin-password = \"8675309",
            "admin-password = [\"8675309\"]",
        ] {
            std::fs::write(&file, format!("log = \"warn\"\n{line}\n")).unwrap();
            let error = load(Some(&file), std::iter::empty(), &[])
                .unwrap_err()
                .to_string();
            assert!(!error.contains("8675309"), "{error}");
            assert!(
                error.contains("admin-password") || error.contains("line 2"),
                "{error}"
            );
        }
    }

    #[test]
    fn every_key_has_documentation() {
        for key in keys() {
            assert!(!key.doc.is_empty(), "{} has none", key.path);
        }
    }
}
