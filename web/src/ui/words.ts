// Names of constants and fields as words.

/** Words that are not written as others are. */
const WORDS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(["AI", "API", "AWS", "FIFO", "HTTP", "HTTPS", "ID", "JSON", "MQTT", "OTA", "PEM", "REST", "RPC", "SMPP", "SMS", "SMTP", "SNS", "SQS", "TBEL", "TLS", "URL", "XML"].map((word) => [word, word])),
  JS: "JavaScript",
  OAUTH2: "OAuth 2",
  QOS: "QoS",
  WEBSOCKETS: "WebSockets",
  TWILIO: "Twilio",
};

/** Writes words as a title: the first one large, abbreviations as they are known. */
export function titleOf(words: readonly string[]): string {
  return words.map((word, at) => WORDS[word.toUpperCase()] ?? (at === 0 ? word.charAt(0).toUpperCase() + word.slice(1).toLowerCase() : word.toLowerCase())).join(" ");
}
