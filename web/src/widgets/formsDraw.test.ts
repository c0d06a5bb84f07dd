// What a form offers is what its widget is drawn by: each setting changes the drawing, and what a form says to hold where nothing is stored does.

import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createElement, type ReactElement, type ReactNode } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test, vi } from "vitest";
import { SessionContext, type Session } from "@/app/session";
import { list, readDashboard, type Json } from "@/dashboard/model";
import type { EntityValues, SourceValues } from "@/dashboard/source";
import { sourcesOf } from "@/dashboard/target";
import type { FormAround } from "@/ui/form/around";
import { valueAt, withValue, type FormField, type FormValues } from "@/ui/form/values";
import { storedAttributes } from "./control/CommandButton";
import { readBoard } from "./control/Gpio";
import { columnsOf } from "./control/PersistentTable";
import { getterOf, olderCommand, olderGetter, scopeOf } from "./control/settings";
import { switchSettings } from "./control/Switch";
import { formOf, withBeginnings } from "./forms";
import { readFunctions } from "./hierarchy/nodes";
import { planOf } from "./input/olderForms";
import { readCamera } from "./input/pictures";
import { readLabel } from "./LabelCard";
import { rendererOf } from "./registry";
import { claimProblem } from "./input/ClaimForm";
import { ApiError } from "@/api/client";

/** Parts that widgets load later: here they are there before anything is drawn. */
const coming = vi.hoisted((): Promise<unknown>[] => []);
// Nothing is watched here: what is drawn is drawn once.
vi.mock("react", async (original) => {
  const react = await original<typeof import("react")>();
  const lazy = <P extends object>(load: () => Promise<{ default: (props: P) => ReactElement }>) => {
    let Part: ((props: P) => ReactElement) | undefined;
    coming.push(load().then((part) => (Part = part.default)));
    return (props: P): ReactElement | null => (Part === undefined ? null : react.createElement(Part, props));
  };
  return { ...react, lazy, useSyncExternalStore: <T>(_: unknown, now: () => T) => now() };
});
// Icons come by the network; here each has the same drawing, under its name.
vi.mock("@/icons/drawings", () => ({ useDrawings: () => () => ({ path: "M0 0", rule: "nonzero" }) }));

// Widgets ask what this browser keeps, and where it is.
vi.stubGlobal("localStorage", { getItem: () => null });
vi.stubGlobal("location", { pathname: "/", search: "" });

const session = { authority: "CUSTOMER_USER", user: {}, customerId: "" } as unknown as Session;
const PICTURE = "data:image/png;base64,AAAA";
const ENTITY: EntityValues = {
  id: { entityType: "DEVICE", id: "1" },
  name: "Pump",
  latest: new Map(Object.entries({ a: "42.345", b: "20", c: "30", transportMsgCount: "5", transportMsgLimit: "9", on: "true" }).map(([name, value]) => [`TIME_SERIES/${name}`, { ts: 1_700_000_000_000, value }])),
  points: new Map(),
};

/** Returns what a widget is drawn as. */
async function drawnBy(fqn: string, settings: FormValues, keys: readonly string[]): Promise<string> {
  const datasources = [{ type: "entity", entityAliasId: "x", dataKeys: keys.map((name) => ({ name, label: name, type: "timeseries", units: "" })) }];
  const widget = readDashboard({ widgets: { w: { typeFullFqn: `system.${fqn}`, type: "latest", config: { title: "W", settings, datasources } } } }).widgets.get("w");
  if (widget === undefined) {
    throw new Error("no widget");
  }
  const { part } = rendererOf(widget.fqn);
  await part.load();
  await Promise.allSettled(coming);
  const Drawn = part.drawn;
  if (Drawn === undefined) {
    throw new Error(`nothing draws ${fqn}`);
  }
  const sources = widget.datasources.map((source): SourceValues => ({ source, entities: [ENTITY], problem: undefined, total: 1 }));
  const within = (inner: ReactNode): ReactElement =>
    createElement(MantineProvider, null, createElement(QueryClientProvider, { client: new QueryClient() }, createElement(SessionContext, { value: session }, inner)));
  return renderToStaticMarkup(within(createElement(Drawn, { widget, entities: [ENTITY], sources, bounds: [0, 1], requests: [], act: () => undefined })));
}

interface Case {
  fqn: string;
  keys?: readonly string[];
  /** Further settings to begin with: some hold only with others. */
  with?: readonly FormValues[];
  /** What is read of settings for what happens later, such as at a click. */
  reads?: (settings: Json) => unknown;
  /** Settings that nothing here reads, with the reason. */
  elsewhere?: Readonly<Record<string, string>>;
  /** Whether what is drawn can't be without a page. */
  notDrawn?: true;
}

const THREE = ["a", "b", "c"];
const older = (name: string): Case => ({ fqn: `control_widgets.${name}`, reads: (settings) => switchSettings(settings, true), with: [{ requestPersistent: true, retrieveValueMethod: "attribute" }] });
const SAVED = { showResultMessage: "shown after saving" };
const form = (name: string, keys: readonly string[] = ["a"]): Case => ({ fqn: `input_widgets.${name}`, keys, with: [{ labelValue: "Own" }], elsewhere: SAVED, reads: (settings) => JSON.stringify(sourcesFields(`input_widgets.${name}`, settings, keys)) });
const MEASURED = { autoScale: "measured on the page" };
const refused = (status: number, message: string): ApiError => Object.assign(Object.create(ApiError.prototype) as ApiError, { status, message });

/** What a form of values makes of its settings. */
function sourcesFields(fqn: string, settings: Json, keys: readonly string[]): unknown {
  const widget = readDashboard({ widgets: { w: { typeFullFqn: `system.${fqn}`, config: { datasources: [{ type: "entity", dataKeys: keys.map((name) => ({ name, label: name, type: "attribute" })) }] } } } }).widgets.get("w");
  const plan = planOf(`system.${fqn}`, settings);
  return [plan.location, widget?.datasources.map((source) => plan.fieldsOf(source))];
}

const CASES: readonly Case[] = [
  { fqn: "pie", keys: THREE, with: [{ borderWidth: 3 }] },
  { fqn: "doughnut", keys: THREE, with: [{ layout: "with_total" }] },
  { fqn: "horizontal_doughnut", keys: THREE, with: [{ layout: "with_total" }] },
  { fqn: "bars", keys: THREE, with: [{ barSettings: { showBorder: true } }] },
  { fqn: "polar_area", keys: THREE, with: [{ barSettings: { showBorder: true } }] },
  { fqn: "radar", keys: THREE, with: [{ showLabel: true, axisShowTickLabels: true, fillAreaSettings: { type: "opacity" } }] },
  { fqn: "charts.pie", keys: THREE, with: [{ stroke: { width: 3 } }] },
  { fqn: "charts.doughnut_chart_js", keys: THREE, with: [{ borderWidth: 3 }] },
  { fqn: "charts.polar_area_chart_js", keys: THREE },
  { fqn: "battery_level", with: [{ layout: "vertical_divided", autoScaleValueSize: false }, { valueFont: { size: 9 } }] },
  { fqn: "signal_strength", keys: ["c"], with: [{ showDate: true, dateFormat: { lastUpdateAgo: false }, noSignalRssiValue: 50 }] },
  { fqn: "wind_speed_and_direction", keys: ["a", "b"], with: [{ layout: "advanced" }] },
  { fqn: "vertical_cylinder_tank", with: [{ layout: "absolute", units: "L", datasourceUnits: "m³", volumeConstant: 90_000 }] },
  { fqn: "analogue_gauges.analogue_compass" },
  { fqn: "temperature_gauge", with: [{ highlights: [{ from: 0, to: 50, color: "#ff0000" }] }] },
  { fqn: "cards.label_widget", elsewhere: { backgroundImageUrl: "loaded when it is seen" }, notDrawn: true, reads: ({ labels }) => list(labels).map((label) => readLabel(label, (pattern) => pattern, 1)) },
  { fqn: "cards.value_card", elsewhere: MEASURED, with: [{ dateFormat: { lastUpdateAgo: false } }] },
  { fqn: "cards.simple_card" },
  { fqn: "progress_bar" },
  { fqn: "digital_gauges.gauge_justgage" },
  { fqn: "label_card", elsewhere: MEASURED },
  { fqn: "label_value_card", elsewhere: MEASURED },
  { fqn: "cards.entities_hierarchy", notDrawn: true, reads: readFunctions },
  {
    fqn: "status_widget", keys: [], reads: (settings) => [getterOf(settings["initialState"], "state"), getterOf(settings["disabledState"], "state")],
    with: [true, false].flatMap((on) => [true, false].map((disabled) => ({ initialState: { action: "DO_NOTHING", defaultValue: on }, disabledState: { action: "DO_NOTHING", defaultValue: disabled } }))),
  },
  { fqn: "two_segment_button", keys: [], reads: ({ initialState, disabledState, leftButtonClick, rightButtonClick }) => [getterOf(initialState, "state", "DO_NOTHING"), getterOf(disabledState, "state", "DO_NOTHING"), leftButtonClick ?? { type: "doNothing" }, rightButtonClick ?? { type: "doNothing" }], with: [{ appearance: { leftAppearance: { icon: "home" }, rightAppearance: { icon: "home" } } }] },
  {
    fqn: "control_widgets.led_indicator", reads: (settings) => [olderGetter(settings, "attribute"), settings["performCheckStatus"] !== false, settings["checkStatusMethod"] ?? "checkStatus"],
    with: [{ retrieveValueMethod: "none", initialValue: true, requestPersistent: true }],
  },
  older("round_switch"), older("switch_control"), older("slide_toggle_control"),
  { ...older("knob_control"), reads: (settings) => [switchSettings(settings, true), settings["initialState"], settings["valueChange"]], with: [{ getValueMethod: "g", requestPersistent: true, retrieveValueMethod: "attribute" }] },
  { fqn: "control_widgets.rpcbutton", reads: olderCommand, with: [{ requestPersistent: true }] },
  { fqn: "control_widgets.update_attributes", reads: (settings) => [storedAttributes(settings), scopeOf(settings["entityAttributeType"]) ?? "SERVER_SCOPE"] },
  {
    fqn: "control_widgets.persistent_table", notDrawn: true, reads: columnsOf,
    elsewhere: Object.fromEntries(["defaultSortOrder", "enableFilter", "displayDetails", "allowSendRequest", "allowDelete"].map((name) => [name, "of the table, which needs a page"])),
  },
  { fqn: "gpio_widgets.gpio_panel", with: [{ gpioList: [{ pin: 1, label: "One", row: 0, col: 0 }] }], reads: (settings) => readBoard(settings, "led") },
  { fqn: "gpio_widgets.basic_gpio_control", reads: (settings) => readBoard(settings, "switch") },
  form("update_server_string_attribute"), form("update_shared_integer_attribute"), form("update_double_timeseries"), form("update_server_boolean_attribute"), form("update_server_date_attribute"),
  form("update_server_location_attribute", ["latitude", "longitude", "another"]), form("update_json_attribute"),
  { fqn: "input_widgets.update_server_image_attribute", elsewhere: { ...SAVED, displayClearButton: "offered when there is a picture" } },
  { fqn: "input_widgets.web_camera_input", notDrawn: true, reads: readCamera, with: [{ saveToGallery: true }] },
  { fqn: "input_widgets.device_claiming_widget", keys: [], elsewhere: { successfulClaimDevice: "shown after claiming" }, reads: (settings) => [claimProblem(refused(404, ""), "", settings), claimProblem(refused(400, "FAILURE"), "", settings)] },
  { fqn: "api_usage", keys: [], reads: (settings) => sourcesOf({ typeFullFqn: "system.api_usage" }, "api_usage", { settings }), with: [{ dsEntityAliasId: "x" }] },
  { fqn: "navigation_widgets.navigation_cards", with: [{ filterType: "include", filter: ["/dashboards"] }] },
  { fqn: "navigation_widgets.navigation_card", with: [{ path: "/dashboards" }] },
];

const AROUND = (values: FormValues): FormAround => ({ values, names: { aliases: ["Pumps"] }, options: { states: [{ value: "other", label: "Other" }], aliases: [{ value: "y", label: "Pumps" }] } });
const offered = (fields: readonly FormField[], values: FormValues): FormField[] => fields.filter((field) => field.name !== "" && (field.when?.(values) ?? true));

/** Values that a field may get: the first ones that are another than what there is. */
function others(field: FormField, values: FormValues): unknown[] {
  const before = valueAt(values, field.name) ?? field.otherwise;
  const all = ((): unknown[] => {
    switch (field.type) {
      case "boolean":
        return [before !== true];
      case "number":
        return [7, 50, 90, 1_000, 9_000, 2, 1, 0.5, 0.2, 0, 30, -5].filter((one) => one >= (field.least ?? -Infinity) && one <= (field.most ?? Infinity));
      case "select":
      case "several": {
        const options = [...(field.options ?? []).map((option) => (typeof option === "string" ? option : option.value)), ...(field.optionsFrom?.(AROUND(values)) ?? []).map(({ value }) => value)];
        return field.type === "several" ? options.map((one) => [one]) : options;
      }
      case "choice":
        return (field.choicesOf?.(values) ?? []).map(({ value }) => value);
      case "color":
        return ["#123456"];
      case "code":
        return ["return 7;"];
      case "texts":
        return [["#111111", "#ff2222"], ["1", "2", "3", "4", "5", "6", "7", "8"]];
      case "value":
        return [5];
      case "image":
        return [PICTURE];
      default:
        return ["other", "/customers", "300", '{"other":1}', "another"];
    }
  })();
  return all.filter((one) => JSON.stringify(one) !== JSON.stringify(before));
}

/** A row of a list that is seen: what its fields have in common with a value of 42. */
function rowOf(fields: readonly FormField[]): FormValues {
  return fields.reduce<FormValues>((row, { name, initial }) => (initial === undefined ? row : withValue(row, name, initial)), { from: 0, to: 100, color: "#ff0000", pin: 3, label: "L" });
}

/** Settings as they are with another value of a field, or of one in each of its rows; by the name of what is other. */
function changed(field: FormField, values: FormValues): [name: string, settings: FormValues[]][] {
  if (field.type !== "rows") {
    return [[field.name, others(field, values).map((value) => withValue(values, field.name, value))]];
  }
  const row = { ...rowOf(field.fields ?? []), ...(field.begin?.[0] ?? {}) };
  const put = (one: FormValues): FormValues => withValue(values, field.name, [field.settle?.(one, row) ?? one]);
  return [
    [field.name, [put({ ...row, label: "first", color: "#00ff00", pattern: "first" })]],
    ...offered(field.fields ?? [], row).map((inner): [string, FormValues[]] => [`${field.name}[].${inner.name}`, others(inner, row).map((value) => put(withValue(row, inner.name, value)))]),
  ];
}

/** Functions run in the sandbox of the page. */
const inSandbox = (name: string): boolean => name.endsWith(".colorFunction");

async function seen(one: Case, settings: FormValues): Promise<string> {
  return JSON.stringify([one.notDrawn === true ? "" : await drawnBy(one.fqn, settings, one.keys ?? ["a"]), one.reads?.(settings)]);
}

test.each(CASES)("each setting in the form of $fqn changes what it is", async (one) => {
  const declared = formOf(`system.${one.fqn}`);
  expect(declared?.settings.length).toBeGreaterThan(0);
  const fields = declared?.settings ?? [];
  const kinds = fields.filter(({ name, type }) => name.endsWith(".type") && type === "select" && fields.some((field) => field.name === name.replace(/type$/, "gradient.minValue")));
  const colors = ["constant", "range", "gradient"].map((type) => kinds.reduce<FormValues>((values, { name }) => withValue(withValue(withValue(values, name, type), name.replace(/type$/, "gradient"), { gradient: ["#000001", "#ff0000"], minValue: 0, maxValue: 100 }), name.replace(/type$/, "rangeList"), { range: [{ from: 0, to: 100, color: "#ff0000" }] }), {}));
  const gets = fields.filter(({ name, options }) => name.endsWith(".action") && options !== undefined);
  const actions = [...new Set(gets.flatMap(({ options = [] }) => options.map((option) => (typeof option === "string" ? option : option.value))))];
  const states = actions.map((action) => gets.reduce<FormValues>((values, { name }) => {
    const path = name.replace(/\.action$/, "");
    return withValue(withValue(withValue(values, name, action), `${path}.executeRpc.requestPersistent`, true), `${path}.dataToValue`, { type: "FUNCTION", dataToValueFunction: "return data;" });
  }, {}));
  const bases = [{}, ...(one.with ?? []), ...(kinds.length === 0 ? [] : colors.flatMap((color) => [color, ...(one.with ?? []).map((more) => ({ ...color, ...more }))])), ...states];
  const working = new Set<string>();
  const known = new Set<string>();
  for (const base of bases) {
    const values = declared === undefined ? base : withBeginnings(declared, base);
    const before = await seen(one, values);
    for (const field of offered(fields, values)) {
      for (const [name, settings] of changed(field, values)) {
        known.add(name);
        for (const other of settings) {
          if (!working.has(name) && (await seen(one, other)) !== (field.type === "rows" && name !== field.name ? await seen(one, changed(field, values)[0]?.[1][0] ?? values) : before)) {
            working.add(name);
          }
        }
      }
    }
  }
  const elsewhere = Object.keys(one.elsewhere ?? {});
  expect([...known].filter((name) => !working.has(name) && !inSandbox(name) && !elsewhere.includes(name) && !/ButtonClick\.|valueChange\./.test(name))).toEqual([]);
}, 60_000);

test.each(CASES)("what the form of $fqn says to hold where nothing is stored does", async (one) => {
  const declared = formOf(`system.${one.fqn}`);
  const before = await seen(one, {});
  if (declared?.begin !== undefined && one.fqn !== "status_widget") {
    expect(await seen(one, declared.begin)).toBe(before);
  }
  const wrong: string[] = [];
  for (const { name, otherwise } of offered(declared?.settings ?? [], declared?.begin ?? {})) {
    // The usual size of letters is that of the style sheet.
    const isSaid = otherwise !== undefined && valueAt(declared?.begin, name) === undefined && !/Font\.size$/.test(name);
    if (isSaid && (await seen(one, withValue({}, name, otherwise))) !== before) {
      wrong.push(name);
    }
  }
  expect(wrong).toEqual([]);
}, 60_000);
