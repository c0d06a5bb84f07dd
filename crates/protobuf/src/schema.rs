//! Schemas: proto3 text, compiled to the descriptor of its last message.

use std::sync::Arc;

use prost_reflect::prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto};
use prost_reflect::{DescriptorPool, Kind, MessageDescriptor};

use crate::plan::DecodePlan;

/// Longest schema, bytes.
pub const MAX_SCHEMA_BYTES: usize = 32 << 10;

const PREFIX: &str = "[Transport Configuration]";

/// The reason why a schema was refused, in words for its author.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{PREFIX} {0}")]
pub struct SchemaError(String);

/// A compiled schema. Cheap to copy.
#[derive(Debug, Clone)]
pub struct ProtobufSchema {
    pub(crate) root: MessageDescriptor,
    /// The plan for decoding its messages.
    pub(crate) plan: Arc<DecodePlan>,
    /// The indexes of `ts` and `values`, which together give a message its own time.
    pub(crate) timed: Option<(usize, usize)>,
}

impl ProtobufSchema {
    /// Compiles a schema, whose last message is the root. `name` is the schema's name in errors.
    ///
    /// # Errors
    /// The schema is too long, not valid proto3, or uses a construct that profiles do not allow: imports, options,
    /// extensions, reserved fields.
    pub fn compile(source: &str, name: &str) -> Result<Self, SchemaError> {
        if source.len() > MAX_SCHEMA_BYTES {
            return Err(invalid(
                name,
                &format!("Schema exceeds {MAX_SCHEMA_BYTES} bytes!"),
            ));
        }
        // The parser limits the nesting of messages, and parses everything else without recursion.
        let mut file = protox_parse::parse("schema.proto", source).map_err(|error| {
            let (line, column) = place(source, error.span().map_or(0, |span| span.start));
            unparsable(name, &format!("Syntax error in :{line}:{column}: {error}"))
        })?;
        check_file(&file, name)?;
        file.name = Some("schema.proto".to_owned());
        file.source_code_info = None;
        file.service.clear();
        file.message_type.iter_mut().for_each(name_fields);
        let last = file.message_type.last().and_then(|message| message.name.clone());
        let package = file.package.clone().unwrap_or_default();
        let mut pool = DescriptorPool::new();
        pool.add_file_descriptor_proto(file)
            .map_err(|error| unparsable(name, &error.to_string()))?;
        let root = last.and_then(|last| {
            let full = if package.is_empty() {
                last
            } else {
                format!("{package}.{last}")
            };
            pool.get_message_by_name(&full)
        });
        let root = root.ok_or_else(|| invalid(name, "At least one Message definition should exists!"))?;
        let place = |name: &str| root.fields().position(|field| field.json_name() == name);
        let timed = place("ts").zip(place("values"));
        let plan = Arc::new(DecodePlan::of(&root));
        Ok(Self { root, plan, timed })
    }

    /// Checks the additional requirements for telemetry.
    ///
    /// # Errors
    /// The message has no fields, or it has only `ts` and `values` with wrong types.
    pub(crate) fn check_telemetry(&self, name: &str) -> Result<(), SchemaError> {
        if self.root.fields().len() == 0 {
            let message = format!("{} fields is empty!", self.root.name());
            return Err(invalid(name, &message));
        }
        let fields = (
            self.root.get_field_by_name("ts"),
            self.root.get_field_by_name("values"),
        );
        let ((Some(ts), Some(values)), 2) = (fields, self.root.fields().len()) else {
            return Ok(());
        };
        let problem = if !matches!(values.kind(), Kind::Message(_)) {
            "Field 'values' has invalid data type. Only message type is supported!"
        } else if !matches!(ts.kind(), Kind::Int64) {
            "Field 'ts' has invalid data type. Only int64 type is supported!"
        } else if !ts.field_descriptor_proto().proto3_optional() {
            "Field 'ts' has invalid label. Field 'ts' should have optional keyword!"
        } else {
            return Ok(());
        };
        Err(invalid(name, problem))
    }

    /// Checks the additional requirements for RPC calls to the device: the fields `method`, `requestId` and `params`,
    /// and no others.
    ///
    /// # Errors
    /// The message has other fields, or fields of other types.
    pub(crate) fn check_rpc(&self, name: &str) -> Result<(), SchemaError> {
        if self.root.fields().len() != 3 {
            let message = self.root.name();
            let rule = "message should always contains 3 fields: method, requestId and params!";
            return Err(invalid(name, &format!("{message} {rule}")));
        }
        for (field, expected) in [
            ("method", Some("string")),
            ("requestId", Some("int32")),
            ("params", None),
        ] {
            let Some(found) = self.root.get_field_by_name(field) else {
                return Err(invalid(
                    name,
                    &format!("Failed to get field descriptor for field: {field}!"),
                ));
            };
            let fits = match expected {
                Some("string") => matches!(found.kind(), Kind::String),
                Some(_) => matches!(found.kind(), Kind::Int32),
                None => true,
            };
            if let (false, Some(expected)) = (fits, expected) {
                let problem =
                    format!("Field '{field}' has invalid data type. Only {expected} type is supported!");
                return Err(invalid(name, &problem));
            }
            if found.is_list() || found.is_map() {
                return Err(invalid(name, &format!("Field '{field}' has invalid label!")));
            }
        }
        Ok(())
    }
}

pub(crate) fn invalid(name: &str, problem: &str) -> SchemaError {
    SchemaError(format!("invalid {name} provided! {problem}"))
}

fn unparsable(name: &str, problem: &str) -> SchemaError {
    SchemaError(format!("failed to parse {name} due to: {problem}"))
}

pub(crate) fn unknown_type(given: &str) -> SchemaError {
    SchemaError(format!("unknown transport payload type: {given}!"))
}

fn check_file(file: &FileDescriptorProto, name: &str) -> Result<(), SchemaError> {
    let syntax = file.syntax.as_deref().unwrap_or("proto2");
    if syntax != "proto3" {
        return Err(SchemaError(format!(
            "invalid schema syntax: {syntax} for {name} provided! Only proto3 allowed!"
        )));
    }
    let refused = [
        (file.options.is_some(), "Schema options don't support!"),
        (
            !file.public_dependency.is_empty(),
            "Schema public imports don't support!",
        ),
        (!file.dependency.is_empty(), "Schema imports don't support!"),
        (
            !file.extension.is_empty(),
            "Schema extend declarations don't support!",
        ),
        (
            file.message_type.is_empty() && file.enum_type.is_empty(),
            "Type elements is empty!",
        ),
        (
            file.message_type.is_empty(),
            "At least one Message definition should exists!",
        ),
    ];
    check(name, &refused)?;
    check_enums(&file.enum_type, name)?;
    file.message_type
        .iter()
        .try_for_each(|message| check_message(message, name))
}

fn check_enums(enums: &[EnumDescriptorProto], name: &str) -> Result<(), SchemaError> {
    let has_options = enums.iter().any(|found| found.options.is_some());
    check(
        name,
        &[(has_options, "Enum definitions options are not supported!")],
    )
}

/// Recurses as deep as messages nest, which the parser limits.
fn check_message(message: &DescriptorProto, name: &str) -> Result<(), SchemaError> {
    // The entry of a map field is a message with an option.
    let is_entry = message
        .options
        .as_ref()
        .is_some_and(|options| options.map_entry());
    if is_entry {
        return Ok(());
    }
    let has_reserved = !message.reserved_range.is_empty() || !message.reserved_name.is_empty();
    let refused = [
        (
            message.options.is_some(),
            "Message definition options don't support!",
        ),
        (
            !message.extension_range.is_empty() || !message.extension.is_empty(),
            "Message definition extensions don't support!",
        ),
        (
            has_reserved,
            "Message definition reserved elements don't support!",
        ),
    ];
    check(name, &refused)?;
    check_enums(&message.enum_type, name)?;
    message
        .nested_type
        .iter()
        .try_for_each(|nested| check_message(nested, name))
}

fn check(name: &str, refused: &[(bool, &str)]) -> Result<(), SchemaError> {
    match refused.iter().find(|(is_there, _)| *is_there) {
        Some((_, problem)) => Err(invalid(name, problem)),
        None => Ok(()),
    }
}

/// Names the fields like the keys of the JSON mapping. Options, including `json_name`, are ignored.
fn name_fields(message: &mut DescriptorProto) {
    for field in &mut message.field {
        field.json_name = Some(json_name(field.name.as_deref().unwrap_or_default()));
        field.options = None;
    }
    message.nested_type.iter_mut().for_each(name_fields);
}

/// Converts `outdoor_temp` to `outdoorTemp`, as in JSON.
fn json_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut upper = false;
    for char in name.chars() {
        match char {
            '_' => upper = true,
            _ if std::mem::take(&mut upper) => out.push(char.to_ascii_uppercase()),
            _ => out.push(char),
        }
    }
    out
}

/// Line and column of a byte, counted from 1.
fn place(source: &str, at: usize) -> (usize, usize) {
    let before = source.get(..at).unwrap_or(source);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}
