//! Names that mean something without being declared.

/// Functions of the library.
pub(crate) const HELPERS: &[&str] = &[
    "atob",
    "base64ToBytes",
    "base64ToBytesList",
    "base64ToHex",
    "btoa",
    "bytesToBase64",
    "bytesToExecutionArrayList",
    "bytesToHex",
    "bytesToString",
    "decodeToJson",
    "decodeToString",
    "decodeURI",
    "doubleToHex",
    "encodeURI",
    "floatToHex",
    "hexToBase64",
    "hexToBytes",
    "hexToBytesArray",
    "intLongToRadixString",
    "intToHex",
    "isArray",
    "isBinary",
    "isDecimal",
    "isHexadecimal",
    "isInsideCircle",
    "isInsidePolygon",
    "isList",
    "isMap",
    "isNaN",
    "isOctal",
    "isSet",
    "longToHex",
    "newSet",
    "padEnd",
    "padStart",
    "parseBigEndianHexToDouble",
    "parseBigEndianHexToFloat",
    "parseBigEndianHexToInt",
    "parseBigEndianHexToLong",
    "parseBinaryArrayToInt",
    "parseByteToBinaryArray",
    "parseBytesIntToFloat",
    "parseBytesLongToDouble",
    "parseBytesToBinaryArray",
    "parseBytesToDouble",
    "parseBytesToFloat",
    "parseBytesToInt",
    "parseBytesToLong",
    "parseBytesToUnsignedInt",
    "parseDouble",
    "parseFloat",
    "parseHexIntLongToFloat",
    "parseHexToDouble",
    "parseHexToFloat",
    "parseHexToInt",
    "parseHexToLong",
    "parseInt",
    "parseLittleEndianHexToDouble",
    "parseLittleEndianHexToFloat",
    "parseLittleEndianHexToInt",
    "parseLittleEndianHexToLong",
    "parseLong",
    "parseLongToBinaryArray",
    "printUnsignedBytes",
    "raiseError",
    "stringToBytes",
    "toFixed",
    "toFlatMap",
    "toInt",
    "toSet",
];

/// Classes with static methods and fields.
pub(crate) const CLASSES: &[&str] = &[
    "Boolean",
    "Byte",
    "Character",
    "Date",
    "Double",
    "Float",
    "Integer",
    "JSON",
    "Long",
    "Math",
    "Object",
    "Short",
    "String",
];

/// Types that a declaration, a cast or `is` may name.
const TYPES: &[&str] = &[
    "int",
    "long",
    "double",
    "float",
    "byte",
    "short",
    "char",
    "boolean",
    "String",
    "Integer",
    "Long",
    "Double",
    "Float",
    "Byte",
    "Short",
    "Character",
    "Boolean",
    "Object",
    "Number",
    "Map",
    "List",
    "Set",
    "Date",
    "HashMap",
    "LinkedHashMap",
    "ArrayList",
    "Collection",
];

/// Words that JavaScript keeps for itself but TBEL does not, and names our own code uses.
const JS_RESERVED: &[&str] = &[
    "arguments",
    "await",
    "catch",
    "class",
    "const",
    "debugger",
    "delete",
    "enum",
    "eval",
    "export",
    "extends",
    "finally",
    "implements",
    "in",
    "interface",
    "let",
    "package",
    "private",
    "protected",
    "public",
    "static",
    "super",
    "this",
    "throw",
    "try",
    "typeof",
    "undefined",
    "void",
    "with",
    "yield",
    "NaN",
    "Infinity",
    "async",
    "script",
    "def",
    "import",
    "var",
];

/// Words that cannot name a variable.
const RESERVED: &[&str] = &[
    "break",
    "case",
    "continue",
    "default",
    "do",
    "else",
    "for",
    "foreach",
    "function",
    "if",
    "import",
    "new",
    "return",
    "switch",
    "until",
    "var",
    "while",
    "true",
    "false",
    "null",
    "nil",
    "instanceof",
    "is",
    "contains",
    "isdef",
    "soundslike",
    "strsim",
    "and",
    "or",
];

pub(super) fn is_type(name: &str) -> bool {
    TYPES.contains(&name)
}

pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

pub(super) fn is_global(name: &str) -> bool {
    HELPERS.contains(&name) || CLASSES.contains(&name)
}

/// The JavaScript name of a variable or function.
pub(super) fn variable(name: &str) -> String {
    if name.starts_with('$') || JS_RESERVED.contains(&name) {
        format!("_${name}")
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Script, ScriptHost, ScriptLang, ScriptLimits};

    #[test]
    fn the_library_has_every_name() {
        let mut host = ScriptHost::new(ScriptLimits::default());
        for helper in HELPERS {
            let script = Script::new(ScriptLang::Tbel, &[], &format!("{helper}()")).unwrap();
            let error = host.call(&script, &[]).err().map(|error| error.to_string());
            let error = error.unwrap_or_default();
            assert!(
                !error.contains("not defined") && !error.contains("function not found"),
                "{helper}: {error}"
            );
        }
        for class in CLASSES {
            let script = Script::new(ScriptLang::Tbel, &[], &format!("{class}.none()")).unwrap();
            let error = host.call(&script, &[]).unwrap_err().to_string();
            assert!(!error.contains("not defined"), "{class}: {error}");
        }
    }
}
