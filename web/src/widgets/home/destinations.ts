// Where cards and links of ThingsBoard's own screens lead here.

import { SCREENS, type ScreenRow } from "@/app/screens";
import type { Authority } from "@/api/types";

/** Paths of ThingsBoard's screens that have another one here; quick links name screens by words. */
const PATHS: Record<string, string> = {
  "/devices": "/entities/devices",
  "/assets": "/entities/assets",
  "/entityViews": "/entities/entityViews",
  "/deviceProfiles": "/profiles/deviceProfiles",
  "/assetProfiles": "/profiles/assetProfiles",
  "/alarms": "/alarms/alarms",
  "/auditLogs": "/security-settings/auditLogs",
  "/otaUpdates": "/features/otaUpdates",
  "/profile": "/account/profile",
  "/account": "/account/profile",
  devices: "/entities/devices",
  assets: "/entities/assets",
  entity_views: "/entities/entityViews",
  device_profiles: "/profiles/deviceProfiles",
  asset_profiles: "/profiles/assetProfiles",
  alarms: "/alarms/alarms",
  dashboards: "/dashboards",
  customers: "/customers",
  rulechains: "/ruleChains",
  rule_chains: "/ruleChains",
  audit_log: "/security-settings/auditLogs",
  api_usage: "/usage",
  ota_updates: "/features/otaUpdates",
  tenants: "/tenants",
  tenant_profiles: "/tenantProfiles",
  mail_server: "/settings/outgoing-mail",
};

/** Returns the screen that a path or a word of ThingsBoard means, if there is one that the role may use. */
export function screenFor(named: string, authority: Authority): ScreenRow | undefined {
  const plain = named.split("?")[0] ?? named;
  const path = PATHS[plain] ?? plain;
  return SCREENS.find((row) => row.path === path && row.roles.includes(authority));
}

/** Returns the address of a screen of ThingsBoard's here, or of one thing below it, for a role that may use it. */
export function addressFor(path: string, authority: Authority): string | undefined {
  const screen = screenFor(path, authority);
  const above = offeredTo(authority).find((row) => path.startsWith(`${row.path}/`));
  return screen?.path ?? (above === undefined ? undefined : path);
}

/** The screens that the menu offers to a role. */
export function offeredTo(authority: Authority): ScreenRow[] {
  return SCREENS.filter((row) => row.section !== undefined && row.roles.includes(authority) && row.path !== "/home");
}
