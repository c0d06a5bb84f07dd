//! ThingsBoard's names of environment variables, so that what started a ThingsBoard starts this program.
//!
//! They are weaker than the program's own variables. A variable whose subject this program decides by itself (caches, script
//! runners, membership) has no effect, and is named once in the log. Names, forms and defaults are those of ThingsBoard's
//! `thingsboard.yml`.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use toml::Value;

/// Begins of variables that are ThingsBoard's; those that set nothing are without effect here.
const FOREIGN: [&str; 24] = [
    "CACHE_",
    "CASSANDRA_",
    "COAP_",
    "DATABASE_TS_",
    "EDGES_",
    "HTTP_BIND_",
    "INSTALL_TB",
    "JS_EVALUATOR",
    "LOAD_DEMO",
    "LWM2M_",
    "METRICS_E",
    "MQTT_",
    "NETTY_",
    "REDIS_",
    "REMOTE_JS_",
    "SNMP_",
    "SPRING_",
    "SQL_",
    "TB_",
    "TRANSPORT_TYPE",
    "TS_KV_",
    "UPGRADE_TB",
    "WEB_APPLICATION_",
    "ZOOKEEPER_",
];

/// A variable that says what one setting says, in another form.
struct SettingAlias {
    variable: &'static str,
    path: &'static str,
    value: fn(&str) -> Result<Value, &'static str>,
}

const SETTINGS: [SettingAlias; 11] = [
    alias(
        "SPRING_DATASOURCE_MAXIMUM_POOL_SIZE",
        "sql.connections",
        whole_number,
    ),
    alias("NETTY_MAX_PAYLOAD_SIZE", "mqtt.max-packet", whole_number),
    alias("MQTT_SSL_PEM_CERT", "mqtts.certificate", text),
    alias("MQTT_SSL_PEM_KEY", "mqtts.private-key", text),
    alias("COAP_DTLS_PEM_CERT", "coaps.certificate", text),
    alias("COAP_DTLS_PEM_KEY", "coaps.private-key", text),
    alias(
        "DEFAULT_INACTIVITY_TIMEOUT",
        "activity.inactivity-timeout",
        seconds,
    ),
    alias("JWT_TOKEN_EXPIRATION_TIME", "api.access-token-ttl", seconds),
    alias(
        "JWT_REFRESH_TOKEN_EXPIRATION_TIME",
        "api.refresh-token-ttl",
        seconds,
    ),
    alias("SECURITY_CLAIM_DURATION", "claiming.duration", milliseconds),
    alias(
        "SECURITY_CLAIM_ALLOW_CLAIMING_BY_DEFAULT",
        "claiming.allow-by-default",
        boolean,
    ),
];

const fn alias(
    variable: &'static str,
    path: &'static str,
    value: fn(&str) -> Result<Value, &'static str>,
) -> SettingAlias {
    SettingAlias {
        variable,
        path,
        value,
    }
}

/// A server whose address and port are two variables, and whether it runs at all a third one.
struct ListenAlias {
    path: &'static str,
    address: &'static str,
    port: &'static str,
    default_port: u16,
    /// The variable that switches the server on; none where it always runs.
    enabled: Option<&'static str>,
    /// Whether the server runs where that variable says nothing, but another one does.
    is_on: bool,
}

const LISTENERS: [ListenAlias; 5] = [
    listener(
        "http.listen",
        ["HTTP_BIND_ADDRESS", "HTTP_BIND_PORT"],
        8080,
        None,
        true,
    ),
    listener(
        "mqtt.listen",
        ["MQTT_BIND_ADDRESS", "MQTT_BIND_PORT"],
        1883,
        None,
        true,
    ),
    listener(
        "mqtts.listen",
        ["MQTT_SSL_BIND_ADDRESS", "MQTT_SSL_BIND_PORT"],
        8883,
        Some("MQTT_SSL_ENABLED"),
        false,
    ),
    listener(
        "coap.listen",
        ["COAP_BIND_ADDRESS", "COAP_BIND_PORT"],
        5683,
        Some("COAP_SERVER_ENABLED"),
        true,
    ),
    listener(
        "coaps.listen",
        ["COAP_DTLS_BIND_ADDRESS", "COAP_DTLS_BIND_PORT"],
        5684,
        Some("COAP_DTLS_ENABLED"),
        false,
    ),
];

const fn listener(
    path: &'static str,
    [address, port]: [&'static str; 2],
    default_port: u16,
    enabled: Option<&'static str>,
    is_on: bool,
) -> ListenAlias {
    ListenAlias {
        path,
        address,
        port,
        default_port,
        enabled,
        is_on,
    }
}

/// What ThingsBoard's variables say.
#[derive(Debug, Default)]
pub(super) struct AliasedSettings {
    /// Paths of settings with their values, and the variable that says so.
    pub(super) values: Vec<(&'static str, Value, &'static str)>,
    /// Variables that set nothing.
    pub(super) without_effect: Vec<String>,
    /// Variables whose values cannot be used, and what is expected of them.
    pub(super) problems: Vec<String>,
}

/// Reads ThingsBoard's variables among those of the environment.
pub(super) fn read(environment: &BTreeMap<String, String>) -> AliasedSettings {
    let mut reader = AliasReader {
        environment,
        used: Vec::new(),
        read: AliasedSettings::default(),
    };
    for setting in &SETTINGS {
        if let Some(text) = reader.get(setting.variable) {
            reader.put(setting.path, setting.variable, (setting.value)(text));
        }
    }
    for listener in &LISTENERS {
        reader.listener(listener);
    }
    reader.database();
    reader.queue();
    let AliasReader { used, mut read, .. } = reader;
    read.without_effect = environment
        .keys()
        .filter(|name| FOREIGN.iter().any(|begin| name.starts_with(begin)))
        .filter(|name| !used.contains(&name.as_str()))
        .cloned()
        .collect();
    read
}

struct AliasReader<'a> {
    environment: &'a BTreeMap<String, String>,
    used: Vec<&'static str>,
    read: AliasedSettings,
}

impl<'a> AliasReader<'a> {
    /// Returns the value of a variable; an empty one counts as not set, as compose files leave them.
    fn get(&mut self, variable: &'static str) -> Option<&'a str> {
        let text = self.environment.get(variable)?.trim();
        self.used.push(variable);
        (!text.is_empty()).then_some(text)
    }

    fn put(&mut self, path: &'static str, variable: &'static str, value: Result<Value, &'static str>) {
        match value {
            Ok(value) => self.read.values.push((path, value, variable)),
            Err(expected) => self
                .read
                .problems
                .push(format!("{variable} (`{path}`): expected {expected}")),
        }
    }

    fn listener(&mut self, listener: &ListenAlias) {
        let address = self.get(listener.address);
        let port = self.get(listener.port);
        let switch = listener.enabled.and_then(|variable| self.get(variable));
        let variable = match (address, port, switch, listener.enabled) {
            (None, None, Some(_), Some(enabled)) => enabled,
            (_, Some(_), ..) => listener.port,
            (Some(_), ..) => listener.address,
            _ => return,
        };
        match switch.map_or(Ok(Value::Boolean(listener.is_on)), boolean) {
            Ok(Value::Boolean(true)) => {}
            Ok(_) => return,
            Err(expected) => {
                return self.put(listener.path, listener.enabled.unwrap_or(variable), Err(expected));
            }
        }
        let value = match address.map_or(Ok(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), str::parse) {
            Err(_) => Err("an IP address"),
            Ok(address) => match port.map_or(Ok(listener.default_port), str::parse) {
                Err(_) => Err("a port, 0 to 65535"),
                Ok(port) => Ok(Value::String(SocketAddr::new(address, port).to_string())),
            },
        };
        self.put(listener.path, variable, value);
    }

    /// The database, and what it keeps: entities always, and time series unless something else is named for them.
    fn database(&mut self) {
        const URL: &str = "SPRING_DATASOURCE_URL";
        const KIND: &str = "DATABASE_TS_TYPE";
        if let Some(driver) = self.get("SPRING_DRIVER_CLASS_NAME")
            && driver != "org.postgresql.Driver"
        {
            self.put(
                "sql.url",
                "SPRING_DRIVER_CLASS_NAME",
                Err("org.postgresql.Driver, no other database is supported"),
            );
        }
        // All of ThingsBoard's images name the kind and the user, those with a database inside too: without an address they
        // have no effect.
        let Some(url) = self.get(URL) else {
            return;
        };
        let user = self.get("SPRING_DATASOURCE_USERNAME");
        let password = self.get("SPRING_DATASOURCE_PASSWORD");
        let url = postgres_url(url, user, password).map(Value::String);
        self.put("sql.url", URL, url);
        match self.get(KIND) {
            None => self.put("series.kind", URL, text("sql")),
            Some(kind) => {
                self.put("series.kind", KIND, series_kind(kind));
                if kind.eq_ignore_ascii_case("cassandra") {
                    self.cassandra();
                }
            }
        }
    }

    /// The cluster of the time series. Its keyspace is made as ThingsBoard's installation makes it, if it is not there.
    fn cassandra(&mut self) {
        const LOGS_IN: &str = "CASSANDRA_USE_CREDENTIALS";
        let variables = [
            ("CASSANDRA_URL", "cassandra.nodes", Some("localhost:9042")),
            (
                "CASSANDRA_KEYSPACE_NAME",
                "cassandra.keyspace",
                Some("thingsboard"),
            ),
            ("CASSANDRA_LOCAL_DATACENTER", "cassandra.data-center", None),
        ];
        for (variable, path, default) in variables {
            if let Some(value) = self.get(variable).or(default) {
                self.put(path, variable, text(value));
            }
        }
        self.put(
            "cassandra.replication",
            "CASSANDRA_KEYSPACE_NAME",
            text("SimpleStrategy:1"),
        );
        // The stores of certificates that others name are Java's: `cassandra.ca` takes their place.
        for (variable, path) in [
            ("CASSANDRA_USE_SSL", "cassandra.tls"),
            ("CASSANDRA_SSL_HOSTNAME_VALIDATION", "cassandra.verify-hostname"),
        ] {
            if let Some(value) = self.get(variable) {
                self.put(path, variable, boolean(value));
            }
        }
        if self
            .get(LOGS_IN)
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
        {
            for (variable, path) in [
                ("CASSANDRA_USERNAME", "cassandra.user"),
                ("CASSANDRA_PASSWORD", "cassandra.password"),
            ] {
                if let Some(value) = self.get(variable) {
                    self.put(path, variable, text(value));
                }
            }
        }
    }
}

impl AliasReader<'_> {
    /// The queues. Those in memory are as the journal in the data directory; of servers, there is Kafka.
    fn queue(&mut self) {
        const KIND: &str = "TB_QUEUE_TYPE";
        if self
            .environment
            .get(KIND)
            .is_none_or(|kind| !kind.trim().eq_ignore_ascii_case("kafka"))
        {
            return;
        }
        if self.get(KIND).is_some() {
            self.put("journal.kind", KIND, text("kafka"));
        }
        let servers = self.get("TB_KAFKA_SERVERS").unwrap_or("localhost:9092");
        self.put("journal.kafka.servers", "TB_KAFKA_SERVERS", text(servers));
        if let Some(prefix) = self.get("TB_QUEUE_PREFIX") {
            self.put("journal.kafka.prefix", "TB_QUEUE_PREFIX", text(prefix));
        }
        if let Some(copies) = self.get("TB_QUEUE_KAFKA_REPLICATION_FACTOR") {
            let copies = whole_number(copies);
            self.put(
                "journal.kafka.replication",
                "TB_QUEUE_KAFKA_REPLICATION_FACTOR",
                copies,
            );
        }
    }
}

fn series_kind(kind: &str) -> Result<Value, &'static str> {
    match kind.to_ascii_lowercase().as_str() {
        "sql" | "timescale" => text("sql"),
        "cassandra" => text("cassandra"),
        _ => Err("sql, timescale or cassandra"),
    }
}

fn text(text: &str) -> Result<Value, &'static str> {
    Ok(Value::String(text.to_owned()))
}

fn whole_number(text: &str) -> Result<Value, &'static str> {
    text.parse().map(Value::Integer).map_err(|_| "a whole number")
}

fn boolean(text: &str) -> Result<Value, &'static str> {
    text.to_ascii_lowercase()
        .parse()
        .map(Value::Boolean)
        .map_err(|_| "true or false")
}

fn seconds(text: &str) -> Result<Value, &'static str> {
    let seconds: u64 = text.parse().map_err(|_| "a whole number of seconds")?;
    Ok(Value::String(format!("{seconds}s")))
}

fn milliseconds(text: &str) -> Result<Value, &'static str> {
    let milliseconds: u64 = text.parse().map_err(|_| "a whole number of milliseconds")?;
    Ok(Value::String(format!("{milliseconds}ms")))
}

/// Makes a `postgres://` address of a JDBC one. The account may be among the JDBC address's parameters; of the others, only
/// those about TLS and the schema mean something here, the rest tunes a driver that isn't used.
///
/// See <https://jdbc.postgresql.org/documentation/use/>.
fn postgres_url(jdbc: &str, user: Option<&str>, password: Option<&str>) -> Result<String, &'static str> {
    const EXPECTED: &str = "jdbc:postgresql://host:port/database";
    let rest = jdbc.strip_prefix("jdbc:postgresql://").ok_or(EXPECTED)?;
    let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let (host, database) = place.split_once('/').ok_or(EXPECTED)?;
    if host.is_empty() || host.contains([',', '@']) || database.is_empty() {
        return Err(EXPECTED);
    }
    let mut account = [user.map(encode), password.map(encode)];
    let mut kept = Vec::new();
    for (name, value) in parameters.split('&').filter_map(|part| part.split_once('=')) {
        match name {
            "user" => account[0] = Some(value.to_owned()),
            "password" => account[1] = Some(value.to_owned()),
            "sslmode" | "sslrootcert" | "sslcert" | "sslkey" => kept.push(format!("{name}={value}")),
            "ssl" if value == "true" => kept.push("sslmode=verify-full".to_owned()),
            "ApplicationName" => kept.push(format!("application_name={value}")),
            "currentSchema" => kept.push(format!("options[search_path]={value}")),
            _ => {}
        }
    }
    let account = match account {
        [Some(user), Some(password)] => format!("{user}:{password}@"),
        [Some(user), None] => format!("{user}@"),
        [None, _] => String::new(),
    };
    let query = if kept.is_empty() { "" } else { "?" };
    Ok(format!(
        "postgres://{account}{host}/{database}{query}{}",
        kept.join("&")
    ))
}

/// Percent-encodes all but letters and digits, which is more than RFC 3986 asks for and means the same.
fn encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
        encoded
    })
}

#[cfg(test)]
mod tests;
