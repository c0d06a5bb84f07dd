//! How a device connects: commands that publish its first telemetry, with its own credentials.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use fieldline_entities::access::AccessOperation;
use fieldline_model::entity::{CredentialsType, Device, DeviceCredentials, DeviceProfile, TransportType};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa_axum::routes;

use super::admin;
use crate::caller::ApiCall;
use crate::endpoint::{ANYBODY, ApiRoutes, TC};
use crate::error::{ApiError, ApiResult};
use crate::extract::PathIds;
use crate::state::{ApiState, CertificateFiles, SharedApi};

/// The settings that say where devices connect to.
const SETTINGS: &str = "connectivity";
/// Where there is no command to show.
const NO_COMMAND: &str = "Check documentation";
/// The body of the commands, quoted so that shells of Linux, macOS and Windows take it; devices' JSON may be lenient.
const BODY: &str = "\"{temperature:25}\"";
const MQTT_IMAGE: &str = "docker run --rm -it thingsboard/mosquitto-clients ";
const COAP_IMAGE: &str = "docker run --rm -it thingsboard/coap-clients ";
/// The name of the host within a container.
const DOCKER_HOST: &str = "host.docker.internal";
const PLAIN_TOPIC: &str = "v1/devices/me/telemetry";

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(TC.reads(routes!(commands)))
        .add(TC.reads(routes!(gateway_compose)))
        .add(ANYBODY.reads(routes!(certificate)))
}

/// Where devices connect to with one protocol.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ConnectivityInfo {
    enabled: bool,
    host: String,
    port: Value,
}

impl ConnectivityInfo {
    /// The port as people have saved it, as a number or a text; `None` where it is none.
    fn port(&self) -> Option<u16> {
        match &self.port {
            Value::Number(number) => number.as_u64().and_then(|port| u16::try_from(port).ok()),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        }
        .filter(|port| *port != 0)
    }
}

/// The protocols that are enabled, with hosts: of those without one the host that the request came to.
struct DeviceEndpoints {
    settings: Value,
    requested_host: String,
}

impl DeviceEndpoints {
    async fn load(api: &ApiState, headers: &HeaderMap) -> ApiResult<Self> {
        let stored = api.entities.settings.admin(SETTINGS).await?;
        let settings = stored.map(|stored| stored.json_value);
        let requested = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let authority = requested.and_then(|host| host.parse::<axum::http::uri::Authority>().ok());
        Ok(Self {
            settings: settings
                .or_else(|| admin::default(api, SETTINGS))
                .unwrap_or_default(),
            requested_host: authority.map_or_else(|| "localhost".to_owned(), |it| it.host().to_owned()),
        })
    }

    /// Host and port of a protocol, if it is enabled.
    fn of(&self, protocol: &str) -> Option<(String, u16)> {
        let info: ConnectivityInfo = serde_json::from_value(self.settings.get(protocol)?.clone()).ok()?;
        let port = info.port().filter(|_| info.enabled)?;
        let host = match shell_safe(&info.host) {
            true => info.host,
            false => self.requested_host.clone(),
        };
        Some((host, port))
    }
}

/// Whether a text can stand in a command as it is.
fn shell_safe(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || "-._:[]".contains(char))
}

/// A text in double quotes, such as shells read it.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        if matches!(char, '"' | '\\' | '$' | '`') {
            quoted.push('\\');
        }
        quoted.push(char);
    }
    quoted.push('"');
    quoted
}

/// What is the same in the commands of a protocol beside its address.
struct CommandWriter<'a> {
    credentials: &'a DeviceCredentials,
    topic: &'a str,
    certificates: &'a CertificateFiles,
}

impl CommandWriter<'_> {
    fn token(&self) -> Option<&str> {
        match self.credentials.credentials_type {
            CredentialsType::AccessToken => self.credentials.credentials_id.as_deref(),
            _ => None,
        }
    }

    fn http(&self, scheme: &str, host: &str, port: u16) -> Option<String> {
        let token = self.token()?;
        let port = match (scheme, port) {
            ("http", 80) | ("https", 443) => String::new(),
            (_, port) => format!(":{port}"),
        };
        let url = quoted(&format!("{scheme}://{host}{port}/api/v1/{token}/telemetry"));
        Some(format!(
            "curl -v -X POST {url} --header Content-Type:application/json --data {BODY}"
        ))
    }

    fn mqtt(&self, host: &str, port: u16, tls: bool) -> Option<String> {
        let login = match self.credentials.credentials_type {
            CredentialsType::AccessToken => format!(" -u {}", quoted(self.token()?)),
            CredentialsType::MqttBasic => {
                let stored = self.credentials.credentials_value.as_deref()?;
                let stored: Map<String, Value> = serde_json::from_str(stored).ok()?;
                let option = |flag: &str, name: &str| {
                    let text = stored.get(name).and_then(Value::as_str).unwrap_or_default();
                    match text.is_empty() {
                        true => String::new(),
                        false => format!(" {flag} {}", quoted(text)),
                    }
                };
                option("-i", "clientId") + &option("-u", "userName") + &option("-P", "password")
            }
            CredentialsType::X509Certificate | CredentialsType::Lwm2mCredentials => return None,
        };
        let certificate = if tls { " --cafile tb-server-chain.pem" } else { "" };
        let topic = quoted(self.topic);
        Some(format!(
            "mosquitto_pub -d -q 1{certificate} -h {host} -p {port} -t {topic}{login} -m {BODY}"
        ))
    }

    fn coap(&self, scheme: &str, host: &str, port: u16) -> Option<String> {
        let token = self.token()?;
        let url = quoted(&format!("{scheme}://{host}:{port}/api/v1/{token}/telemetry"));
        Some(format!(
            "coap-client -v 6 -m POST -t application/json -e {BODY} {url}"
        ))
    }
}

/// How a command runs within a container: a host that is this machine has another name there.
fn in_docker(image: &str, host: &str, command: impl Fn(&str) -> Option<String>) -> Option<String> {
    if !matches!(host, "localhost" | "127.0.0.1" | "[::1]" | "::1") {
        return Some(format!("{image}{}", command(host)?));
    }
    let image = image.replace(" --rm", &format!(" --rm --add-host={DOCKER_HOST}:host-gateway"));
    Some(format!("{image}{}", command(DOCKER_HOST)?))
}

fn text(command: Option<String>) -> Value {
    Value::String(command.unwrap_or_else(|| NO_COMMAND.to_owned()))
}

/// The command that loads the certificates of the MQTT server, if it has some.
fn chain_download(is_there: bool, endpoints: &DeviceEndpoints) -> Option<Value> {
    let (scheme, (host, port)) = ["https", "http"]
        .into_iter()
        .filter(|_| is_there)
        .find_map(|scheme| Some((scheme, endpoints.of(scheme)?)))?;
    let url = format!("{scheme}://{host}:{port}/api/device-connectivity/mqtts/certificate/download");
    Some(Value::String(format!(
        "curl -f -S -o {CHAIN_FILE} {}",
        quoted(&url)
    )))
}

/// The commands of a device.
fn all_commands(profile: &DeviceProfile, writer: &CommandWriter<'_>, endpoints: &DeviceEndpoints) -> Value {
    let mut shown = Map::new();
    let (http, mqtt, coap) = match profile.transport_type {
        TransportType::Default => (true, true, true),
        TransportType::Mqtt => (false, true, false),
        TransportType::Coap => (false, false, true),
        TransportType::Lwm2m | TransportType::Snmp => {
            shown.insert(profile.transport_type.name().to_lowercase(), text(None));
            return Value::Object(shown);
        }
    };
    if http {
        let mut commands = Map::new();
        for scheme in ["http", "https"] {
            if let Some((host, port)) = endpoints.of(scheme) {
                commands.insert(scheme.to_owned(), text(writer.http(scheme, &host, port)));
            }
        }
        shown.insert("http".to_owned(), Value::Object(commands));
    }
    if mqtt {
        let (mut commands, mut docker) = (Map::new(), Map::new());
        for (scheme, tls) in [("mqtt", false), ("mqtts", true)] {
            let Some((host, port)) = endpoints.of(scheme) else {
                continue;
            };
            let plain = writer.mqtt(&host, port, tls);
            let contained = in_docker(MQTT_IMAGE, &host, |host| writer.mqtt(host, port, tls));
            if tls {
                let chain = chain_download(writer.certificates.mqtts.is_some(), endpoints);
                let after_chain = |command| chain.iter().cloned().chain([text(command)]).collect();
                commands.insert(scheme.to_owned(), Value::Array(after_chain(plain)));
                docker.insert(scheme.to_owned(), Value::Array(after_chain(contained)));
            } else {
                commands.insert(scheme.to_owned(), text(plain));
                docker.insert(scheme.to_owned(), text(contained));
            }
        }
        commands.insert("docker".to_owned(), Value::Object(docker));
        shown.insert("mqtt".to_owned(), Value::Object(commands));
    }
    if coap {
        let (mut commands, mut docker) = (Map::new(), Map::new());
        for scheme in ["coap", "coaps"] {
            let Some((host, port)) = endpoints.of(scheme) else {
                continue;
            };
            commands.insert(scheme.to_owned(), text(writer.coap(scheme, &host, port)));
            let contained = in_docker(COAP_IMAGE, &host, |host| writer.coap(scheme, host, port));
            docker.insert(scheme.to_owned(), text(contained));
        }
        commands.insert("docker".to_owned(), Value::Object(docker));
        shown.insert("coap".to_owned(), Value::Object(commands));
    }
    Value::Object(shown)
}

async fn credentials_of(api: &ApiState, device: &Device) -> ApiResult<DeviceCredentials> {
    let found = api
        .entities
        .device_credentials
        .get(device.tenant_id, device.id)
        .await?;
    found.ok_or_else(|| ApiError::not_found("Device credentials are not found"))
}

/// Returns commands that publish telemetry of a device, by protocol.
#[utoipa::path(get, path = "/api/device-connectivity/{deviceId}", tag = "device-connectivity",
    operation_id = "getDevicePublishTelemetryCommands", params(("deviceId" = Uuid, Path)),
    responses((status = 200, body = Value)))]
async fn commands(
    ApiCall { api, caller }: ApiCall,
    headers: HeaderMap,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<Value>> {
    let device = api
        .load::<Device>(&caller, id, AccessOperation::ReadCredentials)
        .await?;
    let credentials = credentials_of(&api, &device).await?;
    let profiles = &api.entities.device_profiles;
    let profile = match device.device_profile_id {
        Some(profile) => profiles.get(device.tenant_id, profile).await?,
        None => None,
    };
    let profile = profile.unwrap_or_default();
    let own_topic = profile
        .profile_data
        .pointer("/transportConfiguration/deviceTelemetryTopic")
        .and_then(Value::as_str)
        .filter(|topic| !topic.contains(['+', '#']) && profile.transport_type == TransportType::Mqtt);
    let writer = CommandWriter {
        credentials: &credentials,
        topic: own_topic.unwrap_or(PLAIN_TOPIC),
        certificates: &api.certificates,
    };
    let endpoints = DeviceEndpoints::load(&api, &headers).await?;
    Ok(Json(all_commands(&profile, &writer, &endpoints)))
}

/// Returns a file for Docker Compose that starts an IoT gateway with the credentials of a gateway device.
#[utoipa::path(get, path = "/api/device-connectivity/gateway-launch/{deviceId}/docker-compose/download",
    tag = "device-connectivity", operation_id = "downloadGatewayDockerCompose", params(("deviceId" = Uuid, Path)),
    responses((status = 200, body = String, content_type = "application/octet-stream")))]
async fn gateway_compose(
    ApiCall { api, caller }: ApiCall,
    headers: HeaderMap,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Response> {
    let device = api
        .load::<Device>(&caller, id, AccessOperation::ReadCredentials)
        .await?;
    let is_gateway = device
        .additional_info
        .as_ref()
        .and_then(|info| info.get("gateway"))
        .and_then(Value::as_bool);
    if is_gateway != Some(true) {
        return Err(ApiError::bad_request("The device must be a gateway!"));
    }
    let credentials = credentials_of(&api, &device).await?;
    let Some((host, port)) = DeviceEndpoints::load(&api, &headers).await?.of("mqtt") else {
        return Err(ApiError::bad_request(
            "MQTT is not enabled in the connectivity settings!",
        ));
    };
    let host = match host.as_str() {
        "localhost" | "127.0.0.1" => DOCKER_HOST.to_owned(),
        _ => host,
    };
    let mut environment = vec![("host", host), ("port", port.to_string())];
    match credentials.credentials_type {
        CredentialsType::AccessToken => {
            environment.push(("accessToken", credentials.credentials_id.unwrap_or_default()));
        }
        CredentialsType::MqttBasic => {
            let stored = credentials.credentials_value.unwrap_or_default();
            let stored: Map<String, Value> = serde_json::from_str(&stored).unwrap_or_default();
            for (variable, name) in [
                ("clientId", "clientId"),
                ("username", "userName"),
                ("password", "password"),
            ] {
                let value = stored.get(name).and_then(Value::as_str).unwrap_or_default();
                environment.push((variable, value.to_owned()));
            }
        }
        CredentialsType::X509Certificate | CredentialsType::Lwm2mCredentials => {}
    }
    let mut file = String::from(
        "services:\n  tb-gateway:\n    image: thingsboard/tb-gateway\n    container_name: tb-gateway\n    restart: always\n    \
         extra_hosts:\n      - \"host.docker.internal:host-gateway\"\n    environment:\n",
    );
    for (name, value) in environment {
        // A JSON text is a YAML text, too; a dollar sign would begin a variable of Compose.
        let value = Value::String(value.replace('$', "$$"));
        file.push_str(&format!("      - {}\n", yaml_pair(name, &value)));
    }
    file.push_str(
        "    volumes:\n      - tb-gw-config:/thingsboard_gateway/config\n      - tb-gw-logs:/thingsboard_gateway/logs\n      \
         - tb-gw-extensions:/thingsboard_gateway/extensions\nvolumes:\n  tb-gw-config:\n  tb-gw-logs:\n  tb-gw-extensions:\n",
    );
    let name = HeaderValue::from_static("docker-compose.yml");
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/octet-stream"),
        ),
        (
            header::CONTENT_DISPOSITION,
            HeaderValue::from_static("attachment; filename=docker-compose.yml"),
        ),
        (header::HeaderName::from_static("x-filename"), name),
    ];
    Ok((headers, file).into_response())
}

/// Most bytes of a chain of certificates.
const MAX_CHAIN: u64 = 1 << 20;
/// Its name as a file, which the commands have, too.
const CHAIN_FILE: &str = "tb-server-chain.pem";

/// Returns the certificates that a device server shows, for devices that have to trust them.
#[utoipa::path(get, path = "/api/device-connectivity/{protocol}/certificate/download", tag = "device-connectivity",
    operation_id = "downloadServerCertificate", params(("protocol" = String, Path, description = "`mqtts` or `coaps`")),
    responses((status = 200, body = String, content_type = "application/octet-stream")))]
async fn certificate(State(api): State<SharedApi>, Path(protocol): Path<String>) -> ApiResult<Response> {
    let file = match protocol.as_str() {
        "mqtts" => api.certificates.mqtts.as_deref(),
        "coaps" => api.certificates.coaps.as_deref(),
        _ => None,
    };
    let absent = || {
        let protocol: String = protocol.chars().take(16).collect();
        ApiError::not_found(format!("{protocol} pem cert file is not found!"))
    };
    let file = file.ok_or_else(absent)?;
    let size = tokio::fs::metadata(file).await.map_err(|_| absent())?.len();
    if size > MAX_CHAIN {
        return Err(absent());
    }
    let text = tokio::fs::read_to_string(file).await.map_err(|_| absent())?;
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment;filename={CHAIN_FILE}"),
        ),
        (
            header::HeaderName::from_static("x-filename"),
            CHAIN_FILE.to_owned(),
        ),
    ];
    Ok((headers, certificates_of(&text)).into_response())
}

/// The certificates of a PEM file, which may have a key, too.
fn certificates_of(text: &str) -> String {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let mut chain = String::new();
    for part in text.split(BEGIN).skip(1) {
        if let Some((body, _)) = part.split_once(END) {
            chain.push_str(&format!("{BEGIN}{body}{END}\n"));
        }
    }
    chain
}

/// An entry `"name=value"` of a list of variables.
fn yaml_pair(name: &str, value: &Value) -> String {
    let text = format!("{name}={}", value.as_str().unwrap_or_default());
    Value::String(text).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_beside_certificates_is_not_handed_out() {
        let file = "-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n";
        let chain = certificates_of(file);
        assert_eq!(
            chain,
            "-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n"
        );
    }

    fn of_token(token: &str) -> DeviceCredentials {
        DeviceCredentials {
            credentials_id: Some(token.to_owned()),
            ..DeviceCredentials::default()
        }
    }

    #[test]
    fn a_token_that_shells_would_run_is_quoted() {
        let credentials = of_token("$(reboot)`\"");
        let writer = CommandWriter {
            credentials: &credentials,
            topic: PLAIN_TOPIC,
            certificates: &CertificateFiles::default(),
        };
        let command = writer.mqtt("localhost", 1883, false).unwrap();
        assert!(command.contains(r#"-u "\$(reboot)\`\"" -m"#), "{command}");
    }

    #[test]
    fn hosts_come_from_the_settings_or_the_request_and_what_is_disabled_is_not_shown() {
        let endpoints = DeviceEndpoints {
            settings: json!({
                "http": {"enabled": true, "host": "iot.example.com", "port": 80},
                "mqtt": {"enabled": true, "host": "x; rm -rf /", "port": "1884"},
                "coap": {"enabled": false, "host": "", "port": "5683"},
            }),
            requested_host: "here".to_owned(),
        };
        assert_eq!(endpoints.of("mqtt"), Some(("here".to_owned(), 1884)));
        assert_eq!(endpoints.of("coap"), None);
        let credentials = of_token("T");
        let writer = CommandWriter {
            credentials: &credentials,
            topic: PLAIN_TOPIC,
            certificates: &CertificateFiles::default(),
        };
        let shown = all_commands(&DeviceProfile::default(), &writer, &endpoints);
        assert!(
            shown["http"]["http"]
                .as_str()
                .unwrap()
                .contains("\"http://iot.example.com/api/v1/T/telemetry\"")
        );
        assert_eq!(shown["coap"], json!({"docker": {}}));
    }
}
