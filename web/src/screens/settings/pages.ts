// The screens of settings: their names, and who may use them.

import type { Authority } from "@/api/types";

export interface SettingsPage {
  path: string;
  label: string;
  roles: readonly Authority[];
}

export const SETTINGS_PAGES: readonly SettingsPage[] = [
  { path: "/settings/general", label: "Public address", roles: ["SYS_ADMIN"] },
  { path: "/settings/connectivity", label: "Addresses for devices", roles: ["SYS_ADMIN"] },
  { path: "/settings/outgoing-mail", label: "Outgoing mail", roles: ["SYS_ADMIN"] },
  { path: "/settings/sms", label: "Text messages", roles: ["SYS_ADMIN"] },
  { path: "/settings/home", label: "Home dashboard", roles: ["TENANT_ADMIN"] },
  { path: "/security-settings/general", label: "Security", roles: ["SYS_ADMIN"] },
  { path: "/security-settings/jwt", label: "Sessions and tokens", roles: ["SYS_ADMIN"] },
];
