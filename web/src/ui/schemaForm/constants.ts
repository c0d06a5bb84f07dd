// Names of the constants that configurations hold, for forms whose schemas give them no titles.

import { titleOf } from "@/ui/words";

/** Constants whose own words say too little, or are short for others. Nothing is what some have to choose, too. */
export const NAMES: Readonly<Record<string, string>> = {
  "": "None",
  FROM: "From the originator",
  TO: "To the originator",
  DATA: "Message body",
  RELATED: "Related entity",
  ACTIVE_UNACK: "Active, unacknowledged",
  ACTIVE_ACK: "Active, acknowledged",
  CLEARED_UNACK: "Cleared, unacknowledged",
  CLEARED_ACK: "Cleared, acknowledged",
  TX: "Transmitter",
  RX: "Receiver",
  TRX: "Transceiver",
  DIRECT: "Direct message",
  TEXT_PLAIN: "Plain text",
  PERSISTENT_TEXT_PLAIN: "Persistent plain text",
  MQTT_3_1: "MQTT 3.1",
  MQTT_3_1_1: "MQTT 3.1.1",
  ASC: "Ascending",
  DESC: "Descending",
  EMAIL: "E-mail",
  ADDRESS2: "Address, second line",
  ZIP: "Postal code",
  ADDITIONAL_INFO: "Additional details",
  TB_RESOURCE: "File",
  CUSTOM: "Custom function",
  ADD: "Addition",
  SUB: "Subtraction",
  MULT: "Multiplication",
  DIV: "Division",
  MIN: "Minimum",
  MAX: "Maximum",
  AVG: "Average",
  POW: "To the power",
  FLOOR_DIV: "Floor division",
  FLOOR_MOD: "Remainder of the floor division",
  CEIL: "Rounded up",
  FLOOR: "Rounded down",
  ABS: "Absolute value",
  SIGNUM: "Sign of the value",
  SIN: "Sine",
  SINH: "Hyperbolic sine",
  COS: "Cosine",
  COSH: "Hyperbolic cosine",
  TAN: "Tangent",
  TANH: "Hyperbolic tangent",
  ASIN: "Arc sine",
  ACOS: "Arc cosine",
  ATAN: "Arc tangent",
  ATAN2: "Arc tangent of two values",
  HYPOT: "Hypotenuse",
  EXP: "Power of e",
  EXPM1: "Power of e, less one",
  GET_EXP: "Exponent of the binary number",
  LOG: "Natural logarithm",
  LOG10: "Decimal logarithm",
  LOG1P: "Natural logarithm of one more",
  SQRT: "Square root",
  CBRT: "Cube root",
  RAD: "Degrees to radians",
  DEG: "Radians to degrees",
  anonymous: "Anonymous",
  basic: "User name and password",
  sas: "Shared access key",
  "cert.PEM": "Certificates in PEM",
};

/** Values that only the field which holds them explains, such as a number or a yes. */
export const NAMES_OF_FIELDS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  mailBodyType: { false: "Plain text", true: "HTML", dynamic: "As the template says" },
  acks: { all: "All replicas", "-1": "All replicas, as -1", "0": "Nobody", "1": "The leader" },
  smtpProtocol: { smtp: "SMTP", smtps: "SMTPS" },
};

/** Methods of HTTP are known by what they are. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]);

/** Reads `ON_EVERY_MESSAGE` as words. A value that is no such constant stays as it is. */
export function nameOf(value: string): string {
  const own = NAMES[value];
  if (own !== undefined || METHODS.has(value) || !/^[A-Z][A-Z0-9_]*$/.test(value)) {
    return own ?? value;
  }
  return titleOf(value.split("_"));
}

/** Reads a value of a field as words. */
export function nameIn(field: string, value: string): string {
  return NAMES_OF_FIELDS[field]?.[value] ?? nameOf(value);
}
