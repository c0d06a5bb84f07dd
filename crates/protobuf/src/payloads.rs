//! The payload configuration of a device profile.

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

/// Schema of calls to the device, for a profile without one.
const DEFAULT_RPC_REQUEST_SCHEMA: &str = "syntax = \"proto3\";\npackage rpc;\nmessage RpcRequestMsg {\n  optional string method = 1;\n  \
                    optional int32 requestId = 2;\n  optional string params = 3;\n}\n";
/// Schema of responses to such calls, for a profile without one.
const DEFAULT_RPC_RESPONSE_SCHEMA: &str =
    "syntax = \"proto3\";\npackage rpc;\nmessage RpcResponseMsg {\n  optional string payload = 1;\n}\n";

/// The compiled schemas of a device profile whose payloads are Protobuf.
#[derive(Debug)]
pub struct PayloadSchemas {
    configuration: PayloadTypeConfiguration,
    /// Telemetry from devices.
    pub telemetry: ProtobufSchema,
    /// Client attributes from devices.
    pub attributes: ProtobufSchema,
    /// RPC calls to devices.
    pub call: ProtobufSchema,
    /// Responses of devices to RPC calls.
    pub answer: ProtobufSchema,
    /// Whether payloads that are not Protobuf are parsed as JSON.
    pub json_too: bool,
    /// Whether messages to devices are JSON on the topics that name no format.
    pub json_downlinks: bool,
}

/// Equal if the configuration is, however often it was compiled.
impl PartialEq for PayloadSchemas {
    fn eq(&self, other: &Self) -> bool {
        self.configuration == other.configuration
    }
}

impl Eq for PayloadSchemas {}

impl PayloadSchemas {
    /// Compiles the schemas of a `transportPayloadTypeConfiguration`; `None` if payloads are JSON.
    ///
    /// # Errors
    /// The payload type is unknown, or one of the schemas is invalid.
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

    /// Returns whether these schemas were compiled from that configuration.
    pub fn is_compiled_from(&self, configuration: &Value) -> bool {
        PayloadTypeConfiguration::deserialize(configuration).is_ok_and(|other| other == self.configuration)
    }
}
