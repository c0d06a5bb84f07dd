// Every screen with the roles that may use it: the one table from which menu, routes and the tests of access are made.

import type { Authority } from "@/api/types";
import { KINDS, type EntityKind, type Section } from "@/entities/kinds";
import { BROKER_PAGES } from "@/screens/broker/pages";
import { GALLERIES, LIBRARIES } from "@/screens/resources/model";
import { SETTINGS_PAGES } from "@/screens/settings/pages";

export interface ScreenRow {
  /** Pattern of the path; `:id` stands for any entity. */
  path: string;
  label: string;
  roles: readonly Authority[];
  /** Where the menu has it. Screens of one thing are reached from their lists. */
  section?: Section;
  /** The kind of entities that it shows. */
  kind?: EntityKind;
}

export const ALL: readonly Authority[] = ["SYS_ADMIN", "TENANT_ADMIN", "CUSTOMER_USER"];
const TENANT: readonly Authority[] = ["TENANT_ADMIN"];
const USERS: readonly Authority[] = ["TENANT_ADMIN", "CUSTOMER_USER"];

/** Where the screens of the broker begin. */
export const BROKER = "/broker";

const LIBRARIANS: readonly Authority[] = ["SYS_ADMIN", "TENANT_ADMIN"];

const OWN: readonly ScreenRow[] = [
  { path: "/home", label: "Home", section: "Overview", roles: ALL },
  { path: "/alarms/alarms", label: "Alarms", section: "Overview", roles: USERS },
  { path: "/dashboards/:id", label: "Dashboard", roles: USERS },
  { path: "/dashboard/:id", label: "Dashboard", roles: USERS },
  { path: "/ruleChains/:id", label: "Rule chain", roles: TENANT },
  { path: "/security-settings/auditLogs", label: "Audit log", section: "Settings", roles: TENANT },
  { path: "/overload", label: "Overload", section: "Overview", roles: LIBRARIANS },
  ...BROKER_PAGES.map(({ path, label }): ScreenRow => ({ path, label, roles: ["SYS_ADMIN"], ...(path === BROKER ? { section: "Overview" } : {}) })),
  { path: "/resources/widgets-library/widget-types/:id", label: "Widget", roles: LIBRARIANS },
  { path: "/resources/scada-symbols/tenant/:id/edit", label: "SCADA symbol", roles: TENANT },
  { path: "/resources/scada-symbols/tenant/:id", label: "SCADA symbol", roles: TENANT },
  { path: "/resources/scada-symbols/system/:id/edit", label: "SCADA symbol", roles: LIBRARIANS },
  { path: "/resources/scada-symbols/system/:id", label: "SCADA symbol", roles: LIBRARIANS },
  ...[...GALLERIES, ...LIBRARIES].map(({ path, label }): ScreenRow => ({ path, label, section: "Resources", roles: LIBRARIANS })),
  { path: "/usage", label: "API usage", section: "Settings", roles: TENANT },
  ...SETTINGS_PAGES.map(({ path, label, roles }): ScreenRow => ({ path, label, section: "Settings", roles })),
  { path: "/account/profile", label: "Your profile", section: "Settings", roles: ALL },
  { path: "/account/security", label: "Your security", section: "Settings", roles: ALL },
];

const ofKinds = KINDS.flatMap((kind): ScreenRow[] => {
  const readers = ALL.filter((role) => role in kind.list);
  const openers = ALL.filter((role) => role in kind.list || kind.writers.includes(role));
  return [
    { path: kind.path, label: kind.plural, section: kind.section, roles: readers, kind },
    ...(OWN.some(({ path }) => path === `${kind.path}/:id`) ? [] : [{ path: `${kind.path}/:id`, label: kind.singular, roles: openers, kind }]),
    { path: `${kind.path}/:id/details`, label: kind.singular, roles: openers, kind },
  ];
});

export const SCREENS: readonly ScreenRow[] = [...OWN, ...ofKinds];
