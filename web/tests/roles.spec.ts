// Each screen of the table by each role: the allowed ones open without an error, and axe finds nothing; the others say so.

import { SCREENS, type ScreenRow } from "../src/app/screens";
import { findings } from "./axe";
import { expect, logIn, test, USERS, type Program, type Role } from "./program";

interface Found {
  id: { id: string };
}

/** What is made of a kind that the demo tenant has none of. */
async function make(program: Program, type: string): Promise<Found> {
  const first = async (list: string): Promise<Found> => ((await program.call<{ data: Found[] }>("TENANT_ADMIN", `${list}?pageSize=1&page=0`)).data[0])!;
  const profile = (await first("/api/deviceProfiles")).id;
  const device = (await first("/api/tenant/deviceInfos")).id;
  const argument = { refEntityKey: { key: "temperature", type: "TS_LATEST" } };
  const expression = { type: "SIMPLE", operation: "AND", filters: [{ argument: "t", valueType: "NUMERIC", operation: "AND", predicates: [{ type: "NUMERIC", operation: "GREATER", value: { staticValue: 9 } }] }] };
  const body: Record<string, [string, unknown]> = {
    DASHBOARD: ["/api/dashboard", { title: "Walked" }],
    ASSET: ["/api/asset", { name: "Walked" }],
    ENTITY_VIEW: ["/api/entityView", { name: "Walked", type: "default", entityId: device, keys: { timeseries: [], attributes: { cs: [], sh: [], ss: [] } } }],
    OTA_PACKAGE: ["/api/otaPackage", { title: "Walked", version: "1", type: "FIRMWARE", deviceProfileId: profile, usesUrl: true, url: "https://example.com/f" }],
    CALCULATED_FIELD: ["/api/calculatedField", { name: "Walked", type: "SIMPLE", entityId: device, configuration: { type: "SIMPLE", arguments: { t: argument }, expression: "t * 2", output: { type: "TIME_SERIES", name: "double" } } }],
    ALARM_RULE: ["/api/alarm/rule", { name: "Walked", entityId: device, configuration: { arguments: { t: argument }, createRules: { MAJOR: { condition: { type: "SIMPLE", expression } } } } }],
    WIDGET_TYPE: ["/api/widgetType", { name: "Walked", descriptor: { type: "latest", sizeX: 4, sizeY: 3, templateHtml: "<b></b>", templateCss: "", controllerScript: "", defaultConfig: "{}" } }],
    WIDGETS_BUNDLE: ["/api/widgetsBundle", { title: "Walked" }],
  };
  const [path, content] = body[type] ?? ["", {}];
  return program.call<Found>("TENANT_ADMIN", path, content);
}

/** Returns the path of a row with the id of an entity that the role can see. */
async function pathFor(program: Program, role: Role, row: ScreenRow): Promise<string | undefined> {
  if (!row.path.includes(":id")) {
    return row.path;
  }
  const scope = /scada-symbols\/(tenant|system)/.exec(row.path)?.[1];
  if (scope !== undefined) {
    const drawing = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:tb="https://thingsboard.io/svg" viewBox="0 0 9 9"><rect tb:tag="walked" width="9" height="9"/></svg>';
    const link = await program.symbol(scope === "tenant" ? "TENANT_ADMIN" : "SYS_ADMIN", `Walked by ${role}`, drawing);
    return `${link.replace("/api/images/", "/resources/scada-symbols/")}/edit`;
  }
  const kind = SCREENS.find(({ path, kind: own }) => own !== undefined && row.path.replace("/dashboard/", "/dashboards/").startsWith(`${path}/`))?.kind;
  if (kind?.type === "USER") {
    return row.path.replace(":id", (await program.call<Found>(role, "/api/auth/user")).id.id);
  }
  const place = kind?.list[role];
  const reader = place === undefined ? "TENANT_ADMIN" : role;
  const path = place ?? kind?.list.TENANT_ADMIN ?? kind?.list.SYS_ADMIN ?? "";
  const { customerId } = await program.call<{ customerId: Found["id"] }>(reader, "/api/auth/user");
  const asked = `${path.replace("{customerId}", customerId.id)}${path.includes("?") ? "&" : "?"}pageSize=1&page=0`;
  const holder = kind?.list.TENANT_ADMIN === undefined ? "SYS_ADMIN" : reader;
  const known = (await program.call<{ data: Found[] }>(holder, asked)).data[0];
  const found = known ?? (role === "TENANT_ADMIN" && kind !== undefined ? await make(program, kind.type) : undefined);
  return found === undefined ? undefined : row.path.replace(":id", found.id.id);
}

for (const role of Object.keys(USERS) as Role[]) {
  test(`every screen by ${role}`, async ({ page, program }) => {
    test.setTimeout(420_000);
    await logIn(page, program, role);
    for (const row of SCREENS) {
      const path = await pathFor(program, role, row);
      if (path === undefined) {
        continue;
      }
      await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
      // All screens are looked at, so that one run tells all that is wrong.
      await page.goto(program.url + path);
      if (!row.roles.includes(role)) {
        await expect(page.getByRole("heading", { level: 1, name: "This is not for your role" }), path).toBeVisible();
        continue;
      }
      await expect(page.getByRole("heading", { level: 1 }), path).toBeVisible();
      await expect(page.getByRole("status", { name: "Loading" }), path).toHaveCount(0);
      if (row.section !== undefined) {
        await expect(page.getByRole("heading", { level: 1, name: row.label }), path).toBeVisible();
      }
      await expect.soft(page.getByRole("alert"), path).toHaveCount(0);
      if (SCREENS.some(({ path: known, kind }) => kind !== undefined && `${known}/details` === row.path)) {
        // The same page as without the last part, which has been looked at.
        continue;
      }
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        await expect.configure({ soft: true }).poll(() => findings(page), { message: `${path} ${colorScheme}`, timeout: 5_000 }).toEqual([]);
        await page.screenshot({ path: `test-results/screens/${role}${row.path.replaceAll(/[/:]/g, "_")}_${colorScheme}.png` });
      }
    }
  });
}
