//! What a device profile says about payloads.

use serde::Deserialize;
use serde_json::Value;

use crate::schema::{ProtobufSchema, SchemaError, invalid, unknown_type};

/// `transportPayloadTypeConfiguration` of a device profile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PayloadTypeConfiguration {
    device_telemetry_proto_schema: Option<String>,
    device_attributes_proto_schema: Option<String>,
    device_rpc_request_proto_schema: Option<String>,
    device_rpc_response_proto_schema: Option<String>,
    enable_compatibility_with_json_payload_format: Option<bool>,
    use_json_payload_format_for_default_downlink_topics: Option<bool>,
}

/// Calls to the device of a profile that says nothing about them.
const DEFAULT_RPC_REQUEST_SCHEMA: &str = "syntax = \"proto3\";\npackage rpc;\nmessage RpcRequestMsg {\n  optional string method = 1;\n  \
                    optional int32 requestId = 2;\n  optional string params = 3;\n}\n";
/// Answers to them.
const DEFAULT_RPC_RESPONSE_SCHEMA: &str =
    "syntax = \"proto3\";\npackage rpc;\nmessage RpcResponseMsg {\n  optional string payload = 1;\n}\n";

/// The compiled schemas of a device profile whose payloads are Protobuf.
#[derive(Debug)]
pub struct PayloadSchemas {
    configuration: PayloadTypeConfiguration,
    /// What devices send as telemetry.
    pub telemetry: ProtobufSchema,
    /// What they send as client attributes.
    pub attributes: ProtobufSchema,
    /// Calls to them.
    pub call: ProtobufSchema,
    /// Their answers to these.
    pub answer: ProtobufSchema,
    /// What is no Protobuf may be JSON.
    pub json_too: bool,
    /// What goes to devices on the topics that name no format is JSON.
    pub json_downlinks: bool,
}

/// The same profile, however often it was compiled.
impl PartialEq for PayloadSchemas {
    fn eq(&self, other: &Self) -> bool {
        self.configuration == other.configuration
    }
}

impl Eq for PayloadSchemas {}

impl PayloadSchemas {
    /// Compiles the schemas of a `transportPayloadTypeConfiguration`; `None` where payloads are JSON.
    ///
    /// # Errors
    /// The payload type is unknown, or one of the schemas is wrong.
    pub fn compile(configuration: &Value) -> Result<Option<Self>, SchemaError> {
        match configuration.get("transportPayloadType") {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(kind)) if kind == "JSON" => return Ok(None),
            Some(Value::String(kind)) if kind == "PROTOBUF" => {}
            Some(other) => return Err(unknown_type(other.as_str().unwrap_or("no text"))),
        }
        let configuration = PayloadTypeConfiguration::deserialize(configuration)
            .map_err(|error| invalid("transport payload type configuration", &format!("{error}!")))?;
        let schema =
            |source: &Option<String>, name: &str, default: Option<&str>| match (source.as_deref(), default) {
                (Some(source), _) if !source.is_empty() => ProtobufSchema::compile(source, name),
                (_, Some(default)) => ProtobufSchema::compile(default, name),
                _ => Err(invalid(name, "Schema should be specified!")),
            };
        let attributes = schema(
            &configuration.device_attributes_proto_schema,
            "attributes proto schema",
            None,
        )?;
        let name = "telemetry proto schema";
        let telemetry = schema(&configuration.device_telemetry_proto_schema, name, None)?;
        telemetry.check_telemetry(name)?;
        let name = "rpc request proto schema";
        let call = schema(
            &configuration.device_rpc_request_proto_schema,
            name,
            Some(DEFAULT_RPC_REQUEST_SCHEMA),
        )?;
        call.check_rpc(name)?;
        let answer = schema(
            &configuration.device_rpc_response_proto_schema,
            "rpc response proto schema",
            Some(DEFAULT_RPC_RESPONSE_SCHEMA),
        )?;
        let json_too = configuration
            .enable_compatibility_with_json_payload_format
            .unwrap_or(false);
        let json_downlinks = configuration
            .use_json_payload_format_for_default_downlink_topics
            .unwrap_or(false);
        Ok(Some(Self {
            telemetry,
            attributes,
            call,
            answer,
            json_too,
            json_downlinks: json_too && json_downlinks,
            configuration,
        }))
    }

    /// Whether these are the schemas of that configuration.
    pub fn is_compiled_from(&self, configuration: &Value) -> bool {
        PayloadTypeConfiguration::deserialize(configuration).is_ok_and(|other| other == self.configuration)
    }
}
