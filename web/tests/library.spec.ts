// Every type of widget is drawn with what is stored. Those that are drawn here are always tried; with SHIPPED_TYPES, a folder of files of
// types such as application/src/main/data/json/system/widget_types of ThingsBoard's source, all that it holds; with SHIPPED_SYMBOLS, a
// folder of drawings such as scada_symbols beside it, those, too.

import type { Page } from "@playwright/test";
import { ANSWERED, ownKinds, shownBy, STORED, symbolsOf, typesOf, type TypedWidget } from "./library";
import { expect, logIn, test, type Program } from "./program";
import { FAILS, look, settled, watch, type Seen } from "./seen";

const DEVICE = "Test Device A1";
const NUMBERS = "Test Device A2";
const TYPES = process.env["SHIPPED_TYPES"];
const SYMBOLS = process.env["SHIPPED_SYMBOLS"];
const IN_ONE = 30;
/** What symbols ask for by themselves. */
const SYMBOL_STATE = { state: true, value: true, running: true, open: true, connected: true, tankCapacity: 100, target: 20, fullValue: 100, filtrationMode: 1, chargingMode: 1, operatingMode: 1 };
const SYMBOL_VALUES = { liquidVolume: 61, temperature: 21, waterLevel: 55, flowRate: 7, voltage: 230 };
const COLUMNS = 6;

/** Types that nobody here draws, with the reason. */
const NOT_DRAWN: Record<string, string> = {
  "gateway_widgets.gateway_configuration": "management of gateways",
  "gateway_widgets.config_form_latest": "management of gateways",
  "gateway_widgets.gateway_connectors": "management of gateways",
  "gateway_widgets.gateway_custom_statistics": "management of gateways",
  "gateway_widgets.gateway_general_chart_statistics": "management of gateways",
  "gateway_widgets.gateway_general_configuration": "management of gateways",
  "gateway_widgets.gateway_logs": "management of gateways",
};

const isNear = (shown: string, stored: number): boolean => Math.abs(Number(shown.replace(/[^\d.-]/g, "")) - stored) < 0.6;

type Check = (seen: Seen, widget: TypedWidget) => string | undefined;

const first: Check = ({ values }, widget) => {
  const wanted = shownBy(widget)[0]?.text ?? "?";
  return values.includes(wanted) ? undefined : `shows ${JSON.stringify(values)} instead of ${wanted}`;
};
const each: Check = (seen, widget) => {
  const missing = shownBy(widget).filter(({ value }) => !seen.text.includes(value) && !seen.names.some((name) => name.includes(value)));
  return missing.length === 0 ? undefined : `does not show ${missing.map(({ label, value }) => `${label} ${value}`).join(", ")} in ${JSON.stringify(seen.text.slice(0, 200))}`;
};
const drawn: Check = ({ points, painted }) => (points.some((n) => n > 1) && painted.length > 0 && painted.every(Boolean) ? undefined : `has points ${points.join()} and canvases ${painted.join()}`);
const course: Check = ({ points }) => (points.some((n) => n > 1) ? undefined : `has points ${points.join()}`);
const both = (...checks: Check[]): Check => (seen, widget) => checks.map((check) => check(seen, widget)).find((problem) => problem !== undefined);
const says = (...wanted: (string | RegExp)[]): Check => ({ text }) => wanted.filter((one) => (typeof one === "string" ? !text.includes(one) : !one.test(text))).map((one) => `does not say ${String(one)} in ${JSON.stringify(text.slice(0, 200))}`)[0];
const isOn: Check = ({ checked }) => (checked[0] === true ? undefined : "is not on");
const number: Check = ({ values, text, inputs }) => ([...values, text, ...inputs].some((one) => one.includes(String(ANSWERED))) ? undefined : `does not show ${ANSWERED} in ${JSON.stringify([values, text, inputs])}`);
const marked: Check = ({ marks }) => (marks > 0 ? undefined : "has no mark on the map");
const something: Check = ({ parts, text }) => (parts > 0 || text.trim() !== "" ? undefined : "is empty");

/** What the types of a class must show, by their names; the first that fits is meant. */
const CHECKS: readonly (readonly [RegExp, Check])[] = [
  [/^(map|image_map|trip_map|route_map)$|^maps_v2\.|markers_placement/, marked],
  [/^(time_series_chart|(line|bar|point|state)_chart|bar_chart_with_labels|charts\.(basic_timeseries|timeseries_bars_flot|state_chart))$|range_chart/, drawn],
  [/aggregated_value_card|chart_card/, both(first, course)],
  [/^((horizontal_)?(pie|doughnut)|bars|polar_area|radar)$|^charts\./, each],
  [/_tank$/, ({ shares }) => (isNear(String((shares[0] ?? -1) * 100), STORED.k0) ? undefined : `is filled by ${shares[0]}`)],
  [/^(battery_level|signal_strength)$|progress_bar|wind_speed_and_direction/, first],
  [/^label_card|[._]label_card/, each],
  [/gauge|_justgage$|^analogue_|compass|^digital_gauges\./, first],
  [/^cards\.(timeseries_table|entities_table|attributes_card)$/, each],
  [/_admin_table$/, each],
  [/^cards\.entities_hierarchy$/, says(DEVICE)],
  [/^entity_count$/, ({ values }) => (values.includes("1") ? undefined : `counts ${values.join()}`)],
  [/^alarm_count$/, ({ values }) => (values.includes("0") ? undefined : `counts ${values.join()}`)],
  [/^alarm_widgets\./, says("No alarms")],
  [/^status_widget$/, ({ values }) => (values.includes("On") ? undefined : `shows ${values.join()}`)],
  [/^single_switch$|^control_widgets\.(switch_control|slide_toggle_control|round_switch)$/, isOn],
  [/^(slider|value_stepper)$|^control_widgets\.knob_control$/, number],
  [/^(?!navigation_|cards\.(html|markdown)|gateway).*_card(_with_background)?$/, first],
  [/^/, something],
];

function problemsOf(widgets: readonly TypedWidget[], seen: Record<string, Seen>): string[] {
  return widgets.flatMap((widget, n) => {
    const { fqn } = widget;
    const one = seen[`w${n}`];
    if (one === undefined) {
      return [`${fqn} is not on the page`];
    }
    if (fqn in NOT_DRAWN) {
      return one.text.includes("can't be drawn yet") ? [] : [`${fqn} is drawn now, and no exception any more`];
    }
    const problem = one.waits ? "waits" : one.alerts.length > 0 ? `tells ${one.alerts.join()}` : FAILS.test(one.text) ? `says ${JSON.stringify(one.text.slice(0, 200))}` : one.size.some((side) => side < 20) ? `is ${one.size.join(" × ")} in size` : CHECKS.find(([names]) => names.test(fqn))?.[1](one, widget);
    return problem === undefined ? [] : [`${fqn} ${problem}`];
  });
}

/** Returns the symbols whose frames have no drawing of any size. */
async function bareSymbols(page: Page, widgets: readonly TypedWidget[]): Promise<string[]> {
  const symbols = widgets.filter(({ fqn }) => fqn.endsWith(".svg"));
  const bare = await Promise.all(
    symbols.map(async ({ fqn }) => {
      const drawing = await (await page.$(`iframe[title="${fqn}"]`))?.contentFrame();
      return (await drawing?.evaluate(() => [...document.querySelectorAll("svg *")].filter((part) => part.getBoundingClientRect().width + part.getBoundingClientRect().height > 0).length)) ?? 0;
    }),
  );
  return symbols.flatMap(({ fqn }, n) => ((bare[n] ?? 0) < 1 ? [`${fqn} draws ${bare[n] ?? 0} parts`] : []));
}

async function boardOf(program: Program, title: string, widgets: readonly TypedWidget[]): Promise<string> {
  const alias = (id: string, name: string): object => ({ id, alias: id, filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: name, resolveMultiple: true } });
  const places = Object.fromEntries(widgets.map((_, n) => [`w${n}`, { col: (n % COLUMNS) * 8, row: Math.floor(n / COLUMNS) * 8, sizeX: 8, sizeY: 8 }]));
  const { id } = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", {
    title,
    configuration: {
      widgets: Object.fromEntries(widgets.map(({ widget, config }, n) => [`w${n}`, { ...widget, config: { ...config, useDashboardTimewindow: true } }])),
      states: { default: { name: title, root: true, layouts: { main: { widgets: places, gridSettings: { columns: 48 } } } } },
      entityAliases: { a: alias("a", DEVICE), numbers: alias("numbers", NUMBERS) },
      timewindow: { selectedTab: 0, realtime: { realtimeType: 0, timewindowMs: 3_600_000, interval: 1_000 }, aggregation: { type: "NONE", limit: 1_000 } },
    },
  });
  return id.id;
}

/** What devices say when a control asks them. */
const answers = (state: unknown) => ({ method }: { method: string }): unknown =>
  method === "getGpioStatus" ? { 1: true, 2: false } : method === "getTermInfo" ? { ok: true, platform: "linux", type: "linux", release: "1", cwd: "/" } : state;

interface Library {
  what: string;
  make: (program: Program) => TypedWidget[] | Promise<TypedWidget[]>;
  /** The variable that names its folder, if it is none of the product's own. */
  variable?: string;
}

const LIBRARIES: readonly Library[] = [
  { what: "type that is drawn here", make: ownKinds },
  { what: "type of a folder", make: (program) => typesOf(program, TYPES ?? ""), variable: "SHIPPED_TYPES" },
  { what: "symbol of a folder", make: (program) => symbolsOf(program, SYMBOLS ?? ""), variable: "SHIPPED_SYMBOLS" },
];

for (const { what, make, variable } of LIBRARIES) {
  test(`every ${what} shows what is stored`, async ({ page, program }) => {
    test.skip(variable !== undefined && process.env[variable] === undefined, `${variable ?? ""} names no folder`);
    // Hundreds of widgets, each with what it asks for.
    test.setTimeout(600_000);
    const all = await make(program);
    const said = await watch(page, program);
    const devices = await Promise.all([program.device("A1_TEST_TOKEN", answers(true)), program.device("A2_TEST_TOKEN", answers(ANSWERED))]);
    for (const [device, values] of [[DEVICE, { ...STORED, ...SYMBOL_STATE }], [NUMBERS, { target: ANSWERED }]] as const) {
      const { id } = await program.call<{ id: { id: string } }>("TENANT_ADMIN", `/api/tenant/devices?deviceName=${encodeURIComponent(device)}`);
      await program.save(`/api/plugins/telemetry/DEVICE/${id.id}/SHARED_SCOPE`, values);
    }
    const past = Object.fromEntries(Object.entries(STORED).map(([key, value]) => [key, value * 0.9]));
    await devices[0].send({ ts: Date.now() - 120_000, values: past });
    await devices[0].send({ ...STORED, ...SYMBOL_VALUES, on: true });
    await page.setViewportSize({ width: 2_560, height: 2_300 });
    await logIn(page, program, "TENANT_ADMIN");
    const problems: string[] = [];
    for (let from = 0; from < all.length; from += IN_ONE) {
      const widgets = all.slice(from, from + IN_ONE);
      const title = `${what} ${from / IN_ONE}`;
      await page.goto(`${program.url}/dashboards/${await boardOf(program, title, widgets)}`);
      await expect(page.locator("[data-widget]")).toHaveCount(widgets.length);
      problems.push(...(await settled(page, async () => [...problemsOf(widgets, await look(page)), ...(await bareSymbols(page, widgets))], title)));
    }
    expect(problems).toEqual([]);
    expect(said).toEqual([]);
  });
}
