// Settings of the system, each as a form over one endpoint.

import type { FormField } from "@/ui/form/values";

export interface SettingsPage {
  path: string;
  label: string;
  /** Key of the settings, which are kept as JSON under it; or the endpoint that has them as they are. */
  key?: string;
  endpoint?: string;
  /** Where the settings, saved or not, can be tried. */
  test?: { path: string; label: string; done: string };
  fields: readonly FormField[];
}

const heading = (label: string): FormField => ({ name: "", label, type: "heading" });

const address = (protocol: string, label: string): FormField[] => [
  { name: `${protocol}.enabled`, label, type: "boolean" },
  { name: `${protocol}.host`, label: "Host", help: "Empty for the host that the pages came from", when: (values) => isOn(values, protocol) },
  { name: `${protocol}.port`, label: "Port", when: (values) => isOn(values, protocol) },
];

function isOn(values: Record<string, unknown>, protocol: string): boolean {
  const part = values[protocol];
  return typeof part === "object" && part !== null && "enabled" in part && part.enabled === true;
}

export const SETTINGS_PAGES: readonly SettingsPage[] = [
  {
    path: "/settings/general",
    label: "Public address",
    key: "general",
    fields: [
      { name: "baseUrl", label: "Address of these pages", required: true, help: "Links in mails begin with it" },
      { name: "prohibitDifferentUrl", label: "Use it in mails even where somebody came by another address", type: "boolean" },
    ],
  },
  {
    path: "/settings/connectivity",
    label: "Addresses for devices",
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
  {
    path: "/settings/outgoing-mail",
    label: "Outgoing mail",
    key: "mail",
    test: { path: "/api/admin/settings/testMail", label: "Send a test mail", done: "A mail is on its way to your address." },
    fields: [
      { name: "mailFrom", label: "Sender", required: true },
      { name: "smtpProtocol", label: "Protocol", type: "select", required: true, options: ["smtp", "smtps"] },
      { name: "smtpHost", label: "Mail server", required: true },
      { name: "smtpPort", label: "Port", required: true },
      { name: "timeout", label: "Time-out, ms", required: true },
      { name: "enableTls", label: "Switch to TLS after connecting", type: "boolean" },
      { name: "username", label: "User name" },
      { name: "password", label: "Password", type: "password", help: "Empty keeps the stored one" },
    ],
  },
  {
    path: "/security-settings/general",
    label: "Security",
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
];
