// The forms of the settings, apart from their names, which the menu needs before.

import type { FormField, FormValues } from "@/ui/form/values";

/** What a screen of settings asks for, and where it is stored. */
export interface SettingsForm {
  /** Key of the settings, which are kept as JSON under it; or the endpoint that has them as they are. */
  key?: string;
  endpoint?: string;
  /** Where the settings, saved or not, can be tried; `fields` are asked for before, and `body` makes the request of both. */
  test?: {
    path: string;
    label: string;
    done: string;
    fields?: readonly FormField[];
    body?: (settings: FormValues, asked: FormValues) => FormValues;
  };
  /** What there is before anything was saved, where the server has no defaults. */
  initial?: FormValues;
  /** What stands above the form. */
  note?: string;
  /** Answers to a save that mean more than that it worked: new tokens of whoever saved. */
  isSession?: true;
  /** Where ready values for parts of the form are listed. */
  presets?: { path: string; label: string; values: (preset: FormValues) => FormValues };
  /** Path that answers with the address at which somebody lets the server in. */
  grant?: { path: string; label: string; when: (values: FormValues) => boolean };
  fields: readonly FormField[];
}

const heading = (label: string): FormField => ({ name: "", label, type: "heading" });

const address = (protocol: string, label: string): FormField[] => [
  { name: `${protocol}.enabled`, label, type: "boolean" },
  { name: `${protocol}.host`, label: "Host", help: "Empty for the host that the pages came from", when: (values) => isOn(values, protocol) },
  { name: `${protocol}.port`, label: "Port", when: (values) => isOn(values, protocol) },
];

const byGrant = (values: FormValues): boolean => values["enableOauth2"] === true;
const sms = (type: string) => (values: FormValues): boolean => values["type"] === type;

function isOn(values: Record<string, unknown>, protocol: string): boolean {
  const part = values[protocol];
  return typeof part === "object" && part !== null && "enabled" in part && part.enabled === true;
}

export const SETTINGS_FORMS: Readonly<Record<string, SettingsForm>> = {
  "/settings/general": {
    key: "general",
    fields: [
      { name: "baseUrl", label: "Address of these pages", required: true, help: "Links in mails begin with it" },
      { name: "prohibitDifferentUrl", label: "Use it in mails even where somebody came by another address", type: "boolean" },
    ],
  },
  "/settings/connectivity": {
    key: "connectivity",
    fields: [
      ...address("http", "HTTP"),
      ...address("https", "HTTPS"),
      ...address("mqtt", "MQTT"),
      ...address("mqtts", "MQTT over TLS"),
      ...address("coap", "CoAP"),
      ...address("coaps", "CoAP over DTLS"),
    ],
  },
  "/settings/outgoing-mail": {
    key: "mail",
    note: "Mails with links, such as for a forgotten password, go out once the public address is set, too.",
    test: { path: "/api/admin/settings/testMail", label: "Send a test mail", done: "A mail is on its way to your address." },
    fields: [
      { name: "mailFrom", label: "Sender", required: true },
      { name: "smtpProtocol", label: "Protocol", type: "select", required: true, options: [{ value: "smtp", label: "SMTP" }, { value: "smtps", label: "SMTPS" }] },
      { name: "smtpHost", label: "Mail server", required: true },
      { name: "smtpPort", label: "Port", required: true },
      { name: "timeout", label: "Time-out, ms", required: true },
      { name: "enableTls", label: "Switch to TLS after connecting", type: "boolean" },
      { name: "tlsVersion", label: "Version of TLS", type: "select", options: ["TLSv1.2", "TLSv1.3"], when: ({ enableTls }) => enableTls === true },
      { name: "enableProxy", label: "Through a proxy", type: "boolean" },
      { name: "proxyHost", label: "Host of the proxy", required: true, when: ({ enableProxy }) => enableProxy === true },
      { name: "proxyPort", label: "Port of the proxy", required: true, when: ({ enableProxy }) => enableProxy === true },
      { name: "proxyUser", label: "User name at the proxy", when: ({ enableProxy }) => enableProxy === true },
      { name: "proxyPassword", label: "Password at the proxy", type: "password", help: "Empty keeps the stored one", when: ({ enableProxy }) => enableProxy === true },
      { name: "username", label: "User name" },
      { name: "enableOauth2", label: "Log in by OAuth 2 instead of a password", type: "boolean" },
      { name: "password", label: "Password", type: "password", help: "Empty keeps the stored one", when: (values) => !byGrant(values) },
      { name: "providerId", label: "Provider", type: "select", required: true, initial: "CUSTOM", when: byGrant, options: [{ value: "GOOGLE", label: "Google" }, { value: "OFFICE_365", label: "Office 365" }, { value: "SENDGRID", label: "SendGrid" }, { value: "CUSTOM", label: "Another one" }] },
      { name: "providerTenantId", label: "Tenant at Microsoft", required: true, when: (values) => byGrant(values) && values["providerId"] === "OFFICE_365" },
      { name: "clientId", label: "Client ID", required: true, when: byGrant },
      { name: "clientSecret", label: "Client secret", type: "password", help: "Empty keeps the stored one", when: byGrant },
      { name: "authUri", label: "Address of the authorization", required: true, when: byGrant },
      { name: "tokenUri", label: "Address of the tokens", required: true, when: byGrant },
      { name: "scope", label: "Scopes", type: "texts", when: byGrant },
      { name: "redirectUri", label: "Address to return to", required: true, help: "It has to be registered at the provider", when: byGrant },
    ],
    presets: {
      path: "/api/mail/config/template",
      label: "Take the values of a provider",
      values: (preset) => ({
        providerId: preset["providerId"], smtpProtocol: String(preset["smtpProtocol"]).toLowerCase(), smtpHost: preset["smtpHost"], smtpPort: String(preset["smtpPort"]),
        timeout: String(preset["timeout"]), enableTls: preset["enableTls"], tlsVersion: preset["tlsVersion"],
        authUri: preset["authorizationUri"] ?? "", tokenUri: preset["accessTokenUri"] ?? "", scope: preset["scope"] ?? [],
      }),
    },
    grant: { path: "/api/admin/mail/oauth2/authorize", label: "Let the provider grant access", when: byGrant },
  },
  "/settings/sms": {
    key: "sms",
    initial: {},
    test: {
      path: "/api/admin/settings/testSms",
      label: "Send a test message",
      done: "The message is on its way.",
      fields: [
        { name: "numberTo", label: "Phone number of the recipient", required: true, help: "For example +491701234567" },
        { name: "message", label: "Text", type: "long", required: true, initial: "Fieldline can send text messages." },
      ],
      body: (providerConfiguration, { numberTo, message }) => ({ providerConfiguration, numberTo, message }),
    },
    fields: [
      { name: "type", label: "Provider", type: "select", required: true, initial: "TWILIO", options: [{ value: "TWILIO", label: "Twilio" }, { value: "AWS_SNS", label: "Amazon SNS" }, { value: "SMPP", label: "SMPP" }] },
      { name: "numberFrom", label: "Phone number of the sender", required: true, when: sms("TWILIO") },
      { name: "accountSid", label: "Account SID", required: true, when: sms("TWILIO") },
      { name: "accountToken", label: "Account token", type: "password", help: "Empty keeps the stored one", when: sms("TWILIO") },
      { name: "accessKeyId", label: "Access key ID", required: true, when: sms("AWS_SNS") },
      { name: "secretAccessKey", label: "Secret access key", type: "password", help: "Empty keeps the stored one", when: sms("AWS_SNS") },
      { name: "region", label: "Region", required: true, initial: "eu-central-1", when: sms("AWS_SNS") },
      { name: "host", label: "Host", required: true, when: sms("SMPP") },
      { name: "port", label: "Port", type: "number", required: true, initial: 2775, when: sms("SMPP") },
      { name: "systemId", label: "System ID", required: true, when: sms("SMPP") },
      { name: "password", label: "Password", type: "password", help: "Empty keeps the stored one", when: sms("SMPP") },
      { name: "systemType", label: "System type", when: sms("SMPP") },
      { name: "protocolVersion", label: "Version of SMPP", type: "select", options: ["3.3", "3.4"], initial: "3.4", when: sms("SMPP") },
      { name: "bindType", label: "Kind of connection", type: "select", initial: "TX", options: [{ value: "TX", label: "Transmitter" }, { value: "RX", label: "Receiver" }, { value: "TRX", label: "Transceiver" }], when: sms("SMPP") },
      { name: "sourceAddress", label: "Address of the sender", when: sms("SMPP") },
      { name: "sourceTon", label: "Type of number of the sender", type: "number", initial: 5, when: sms("SMPP") },
      { name: "sourceNpi", label: "Numbering plan of the sender", type: "number", initial: 0, when: sms("SMPP") },
      { name: "destinationTon", label: "Type of number of recipients", type: "number", initial: 5, when: sms("SMPP") },
      { name: "destinationNpi", label: "Numbering plan of recipients", type: "number", initial: 0, when: sms("SMPP") },
      { name: "serviceType", label: "Service type", when: sms("SMPP") },
      { name: "addressRange", label: "Range of addresses", when: sms("SMPP") },
      { name: "codingScheme", label: "Coding scheme", type: "number", initial: 0, when: sms("SMPP") },
    ],
  },
  "/settings/home": {
    endpoint: "/api/tenant/dashboard/home/info",
    note: "All users of the tenant see it at home, if neither they nor their customer have another one.",
    fields: [
      { name: "dashboardId", label: "Home shows this dashboard", type: "entity", list: "/api/tenant/dashboards" },
      { name: "hideDashboardToolbar", label: "without its toolbar", type: "boolean", initial: true },
    ],
  },
  "/security-settings/general": {
    endpoint: "/api/admin/securitySettings",
    fields: [
      { name: "maxFailedLoginAttempts", label: "Wrong passwords until a user is disabled", type: "number", help: "0 is no limit" },
      { name: "userLockoutNotificationEmail", label: "Who is told of it by e-mail" },
      { name: "userActivationTokenTtl", label: "Hours that an activation link works", type: "number" },
      { name: "passwordResetTokenTtl", label: "Hours that a link for a new password works", type: "number" },
      heading("What a password must be like"),
      { name: "passwordPolicy.minimumLength", label: "Shortest length", type: "number" },
      { name: "passwordPolicy.maximumLength", label: "Greatest length", type: "number" },
      { name: "passwordPolicy.minimumUppercaseLetters", label: "Capital letters", type: "number" },
      { name: "passwordPolicy.minimumLowercaseLetters", label: "Small letters", type: "number" },
      { name: "passwordPolicy.minimumDigits", label: "Digits", type: "number" },
      { name: "passwordPolicy.minimumSpecialCharacters", label: "Other characters", type: "number" },
      { name: "passwordPolicy.allowWhitespaces", label: "Spaces are allowed", type: "boolean" },
      { name: "passwordPolicy.passwordExpirationPeriodDays", label: "Days until it has to be changed", type: "number" },
      { name: "passwordPolicy.passwordReuseFrequencyDays", label: "Days until an old one may be used again", type: "number" },
    ],
  },
  "/security-settings/jwt": {
    endpoint: "/api/admin/jwtSettings",
    isSession: true,
    note: "Another signing key ends all sessions, and this one gets new tokens.",
    fields: [
      { name: "tokenIssuer", label: "Issuer", required: true },
      { name: "tokenExpirationTime", label: "Seconds that a token is valid", type: "number", required: true, help: "At least 60" },
      { name: "refreshTokenExpTime", label: "Seconds until somebody who does nothing has to log in again", type: "number", required: true, help: "At least 900, and more than a token is valid" },
      { name: "tokenSigningKey", label: "New signing key (base64 of 64 bytes or more)", type: "password", help: "Empty keeps the stored one" },
    ],
  },
};
