// What the menu offers, by role, and which screen answers a path.

import type { Authority } from "@/api/types";
import { KINDS } from "@/entities/kinds";
import { SETTINGS_PAGES } from "@/screens/settings/pages";

export interface MenuItem {
  path: string;
  label: string;
  section: "Overview" | "Things" | "People" | "Rules" | "Settings";
  roles: Authority[];
}

const ALL: Authority[] = ["SYS_ADMIN", "TENANT_ADMIN", "CUSTOMER_USER"];
const SECTIONS = ["Overview", "Things", "People", "Rules", "Settings"] as const;

const SCREENS: MenuItem[] = [
  { path: "/home", label: "Home", section: "Overview", roles: ALL },
  { path: "/alarms/alarms", label: "Alarms", section: "Overview", roles: ["TENANT_ADMIN", "CUSTOMER_USER"] },
  { path: "/security-settings/auditLogs", label: "Audit log", section: "Settings", roles: ["TENANT_ADMIN"] },
  { path: "/usage", label: "API usage", section: "Settings", roles: ["TENANT_ADMIN"] },
  ...SETTINGS_PAGES.map(({ path, label }): MenuItem => ({ path, label, section: "Settings", roles: ["SYS_ADMIN"] })),
  { path: "/account/security", label: "Your account", section: "Settings", roles: ALL },
];

/** Returns the items that a role may use, by section, in the order of the menu. */
export function menuFor(authority: Authority): { section: string; items: MenuItem[] }[] {
  const lists = KINDS.map(({ path, plural, section, list }): MenuItem => ({ path, label: plural, section, roles: ALL.filter((role) => role in list) }));
  const items = [...SCREENS, ...lists].filter((item) => item.roles.includes(authority));
  return SECTIONS.map((section) => ({ section, items: items.filter((item) => item.section === section) })).filter(({ items: some }) => some.length > 0);
}
