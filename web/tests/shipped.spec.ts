// Dashboards of others, such as those in ThingsBoard's source: each file of a folder is brought in, and all of its states are opened.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { object, text } from "../src/dashboard/json";
import { readDashboard, type Dashboard, type DashboardState } from "../src/dashboard/model";
import { encodeStates } from "../src/dashboard/state";
import { isKnown } from "../src/widgets/registry";
import { expect, logIn, test, type Program } from "./program";
import { FAILS, look, settled, watch } from "./seen";

const FOLDER = process.env["SHIPPED_DASHBOARDS"];
const FILES = FOLDER === undefined ? [] : readdirSync(FOLDER).filter((name) => name.endsWith(".json")).sort();

/** Values that are none of numbers. */
const ARRIVING: Record<string, unknown> = { temperature: 21.5, humidity: 40, fw_state: "UPDATED", sw_state: "UPDATED" };

interface Stored {
  id: { id: string; entityType: string };
}

/** Aliases of what the program itself counts, by the hour or by the five minutes: a new one has not counted anything yet. */
const COUNTED = /"type":"apiUsageState"|"entityType":"(QUEUE_STATS|TENANT)"/;
/** What a widget may say instead of values: that nobody here draws it, as the report of the import does, or that nothing was counted yet. */
const mayBeSaid = (said: string, fqn: string, isCounted: boolean): boolean => (!isKnown(fqn) && said.includes("can't be drawn yet")) || (isCounted && said.includes("No values in this time"));

/** A device that is a thermostat, a gateway and has firmware at once, so that each alias of a file finds it. */
async function makeDevice(program: Program): Promise<Stored> {
  const device = await program.call<Stored>("TENANT_ADMIN", "/api/device", { name: "Thermostat 1", type: "thermostat", additionalInfo: { gateway: true } });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${device.id.id}/credentials`);
  const connected = await program.device(credentialsId, ({ method }) => (method === "getTermInfo" ? { ok: true, platform: "linux", type: "linux", release: "1", cwd: "/" } : { done: true }));
  const firmware = ["fw", "sw"].flatMap((kind) => [[`${kind}_state`, "UPDATED"], [`current_${kind}_title`, "Firm"], [`current_${kind}_version`, "1.0"], [`target_${kind}_title`, "Firm"], [`target_${kind}_version`, "1.0"]]);
  await connected.send({ temperature: 21.5, humidity: 40, latitude: 48.1, longitude: 11.5, ...(Object.fromEntries(firmware) as object) });
  await program.save(`/api/plugins/telemetry/DEVICE/${device.id.id}/SERVER_SCOPE`, { latitude: 48.1, longitude: 11.5, temperatureAlarmFlag: true, active_connectors: ["MQTT"] });
  await program.call("TENANT_ADMIN", "/api/alarm", { originator: device.id, type: "High temperature", severity: "CRITICAL", tenantId: null });
  return device;
}

/** Sends all keys that a file names, so that each chart has values; what an alias calls by name is made first. */
async function fill(program: Program, configuration: unknown, device: Stored): Promise<void> {
  const aliases = Object.values(object(object(configuration)["entityAliases"])).map((alias) => object(object(alias)["filter"]));
  const named = aliases.filter(({ type, entityType }) => type === "entityName" && entityType === "ASSET").map(({ entityNameFilter }) => text(entityNameFilter) ?? "");
  const assets = await Promise.all(named.map((name) => program.call<Stored>("TENANT_ADMIN", "/api/asset", { name, type: "default" })));
  const keys = [...JSON.stringify(object(configuration)["widgets"]).matchAll(/"name":"([^"]+)","type":"timeseries"/g)].map(([, name]) => name ?? "");
  for (const { id } of [device, ...assets]) {
    if (keys.length > 0) {
      await program.save(`/api/plugins/telemetry/${id.entityType}/${id.id}/timeseries/ANY`, Object.fromEntries(keys.map((key) => [key, ARRIVING[key] ?? 42])));
    }
  }
}

/** Opens a state with the device as all entities that its aliases are waiting for. */
function stateOf(configuration: unknown, state: string, device: Stored): string {
  const entity = { entityId: device.id, entityName: "Thermostat 1", entityLabel: "Thermostat 1" };
  const named = Object.values(object(object(configuration)["entityAliases"])).flatMap((alias) => text(object(object(alias)["filter"])["stateEntityParamName"]) || []);
  return encodeStates([{ id: state, params: { ...entity, ...Object.fromEntries(named.map((name) => [name, entity])) } }]);
}

async function bringIn(page: Page, program: Program, path: string): Promise<string> {
  await page.goto(`${program.url}/dashboards`);
  const choosing = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Import" }).click();
  await (await choosing).setFiles(path);
  await page.waitForURL(/\/dashboards\/[0-9a-f-]{36}/);
  return /[0-9a-f-]{36}/.exec(page.url())?.[0] ?? "";
}

/** Returns what is wrong with the widgets of a state as they are seen. */
async function problemsOf(page: Page, dashboard: Dashboard, { id: state, main, right }: DashboardState): Promise<string[]> {
  const seen = await look(page);
  const missing = [main, right].flatMap((layout) => layout?.places.filter(({ id, desktopHide }) => !desktopHide && seen[id] === undefined) ?? []);
  const wrong = Object.entries(seen).flatMap(([name, { waits, alerts, text: words, parts }]) => {
    const { fqn, datasources } = dashboard.widgets.get(name) ?? { fqn: "", datasources: [] };
    // A text may hold other states with their charts.
    const isCounted = /markdown_card/.test(fqn) || datasources.some(({ aliasId }) => COUNTED.test(JSON.stringify(dashboard.aliases.get(aliasId ?? "")?.filter ?? {})));
    const said = alerts.find((alert) => alert !== "") ?? (FAILS.test(words) ? words : undefined);
    const problem = waits ? "waits" : said !== undefined && !mayBeSaid(said, fqn, isCounted) ? `says ${JSON.stringify(said.slice(0, 160))}` : parts === 0 && words.trim() === "" ? "is empty" : undefined;
    return problem === undefined ? [] : [`${state}: ${fqn} ${problem}`];
  });
  return [...missing.map(({ id }) => `${state}: ${dashboard.widgets.get(id)?.fqn ?? id} is not there`), ...wrong];
}

let made: Promise<Stored> | undefined;

test.skip(FILES.length === 0, "SHIPPED_DASHBOARDS names no folder with dashboards");

for (const file of FILES) {
  test(`each state of ${file} is drawn`, async ({ page, program }) => {
    test.setTimeout(240_000);
    // One program serves all of these tests, and one device.
    const device = await (made ??= makeDevice(program));
    const said = await watch(page, program);
    await page.setViewportSize({ width: 1_920, height: 2_400 });
    await logIn(page, program, "TENANT_ADMIN");
    const path = join(FOLDER ?? "", file);
    const id = await bringIn(page, program, path);
    const { configuration } = JSON.parse(readFileSync(path, "utf8")) as { configuration: unknown };
    const dashboard = readDashboard(configuration);
    await fill(program, configuration, device);
    const unknown = [...dashboard.widgets.values()].filter(({ fqn }) => !isKnown(fqn)).length;
    await expect(page.getByRole("alert").filter({ hasText: "Brought in" })).toContainText(new RegExp(`(?<!\\d)${unknown} not drawable`));
    const problems: string[] = [];
    for (const state of dashboard.states) {
      await page.goto(`${program.url}/dashboards/${id}?state=${encodeURIComponent(stateOf(configuration, state.id, device))}`);
      problems.push(...(await settled(page, () => problemsOf(page, dashboard, state), `${file} ${state.id}`)));
    }
    expect(problems).toEqual([]);
    expect(said).toEqual([]);
  });
}
