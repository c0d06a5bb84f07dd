//! Messages to the person who started the program: on standard output, apart from the log.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::data_dir::BoundAddresses;

/// Prints the administrator account that the first start creates.
pub(crate) fn print_admin(email: &str, password: &str) {
    write_stdout(&format!(
        "System administrator, shown this once:\n  {email} / {password}\n"
    ));
}

/// Prints where the servers listen and what to try.
pub(crate) fn print(listening: &BoundAddresses, demo: bool) {
    let mut text = String::new();
    let mut line = |content: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{content}");
    };
    line("Fieldline is ready.".to_owned());
    line(format!(
        "  HTTP   http://{}  (web user interface; API documentation at /swagger-ui.html)",
        listening.http
    ));
    if let Some(probes) = listening.probes {
        line(format!("  Probes http://{probes}"));
    }
    line(format!("  MQTT   mqtt://{}", listening.mqtt));
    if let Some(mqtts) = listening.mqtts {
        line(format!("  MQTTS  mqtts://{mqtts}"));
    }
    if let Some(coap) = listening.coap {
        line(format!("  CoAP   coap://{coap}"));
    }
    if let Some(coaps) = listening.coaps {
        line(format!("  CoAPS  coaps://{coaps}"));
    }
    for (scheme, address) in listening.broker.by_scheme() {
        let path = if scheme.starts_with("ws") { "/mqtt" } else { "" };
        line(format!(
            "  Broker {scheme}://{address}{path}  (publish/subscribe, any topic)"
        ));
    }
    if let Some(path) = &listening.broker.broker_unix {
        line(format!(
            "  Broker unix://{}  (publish/subscribe, any topic)",
            path.display()
        ));
    }
    if demo {
        line("\nDemo logins:".to_owned());
        line("  sysadmin@thingsboard.org / sysadmin    system administrator".to_owned());
        line("  tenant@thingsboard.org   / tenant      tenant administrator".to_owned());
        line("  customer@thingsboard.org / customer    customer user".to_owned());
        line("\nSend telemetry:".to_owned());
        line(format!(
            "  curl -d '{{\"temperature\": 21.5}}' http://{}/api/v1/A1_TEST_TOKEN/telemetry",
            listening.http
        ));
        line(format!(
            "  mosquitto_pub -h {} -p {} -q 1 -u A1_TEST_TOKEN -t v1/devices/me/telemetry -m '{{\"temperature\": 22.5}}'",
            listening.mqtt.ip(),
            listening.mqtt.port()
        ));
        if let Some(coap) = listening.coap {
            line(format!(
                "  coap-client-notls -m post -t json -e '{{\"temperature\": 23.5}}' coap://{coap}/api/v1/A1_TEST_TOKEN/telemetry"
            ));
        }
    }
    write_stdout(&text);
}

/// Ignores errors: a closed standard output is no reason not to serve.
fn write_stdout(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}
