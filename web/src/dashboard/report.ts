// What of a dashboard is drawn as it was made, what only nearly, which code it brings along, and what nobody here can draw.

import { isKnown } from "@/widgets/registry";
import { list, object, text, type Json } from "./json";
import { readDashboard, type Widget } from "./model";

export type Verdict = "native" | "approximated" | "code" | "unknown";

/** Code that a widget brings along. */
export interface WidgetCode {
  /** Where it stands: `dataKeys › temperature › postFuncBody`. */
  where: string;
  runs: boolean;
  /** What it asks its context for, as far as its text says. */
  asks: string[];
}

export interface WidgetReport {
  id: string;
  title: string;
  fqn: string;
  verdict: Verdict;
  /** What is not as it was made, for people; keys of translations. */
  notes: string[];
  code: WidgetCode[];
}

/** Old types, drawn by what came after them. */
const FORMER =
  /^system\.(charts\.(basic_timeseries|timeseries_bars_flot|state_chart|bars|pie|\w+_chart_js)|cards\.simple_card|maps_v2\.|input_widgets\.markers_placement_|input_widgets\.update_\w+_(attribute|timeseries)$|control_widgets\.(rpcbutton|switch_control|slide_toggle_control|round_switch|update_attributes)|entity_admin_widgets\.)/;
/** Types whose looks are settings of another library. */
const OTHER_LOOK = /gauge|_justgage|canvas|compass|speedometer|thermometer/;
const FUNCTION = /(Function|FuncBody|^funcBody|FunctionBody|Formatter|Generator|controllerScript)$/;
/** Functions that run here, in the sandbox; a test finds those that nobody runs any more. */
export const RUNNING: ReadonlySet<string> = new Set([
  "postFuncBody", "funcBody", "customFunction", "showWidgetActionFunction", "cellStyleFunction", "cellContentFunction", "rowStyleFunction", "controllerScript", "qrCodeTextFunction",
  "tooltipValueFormatter", "ticksFormatter", "ticksGenerator", "colorFunction", "labelFunction", "tooltipFunction", "patternFunction", "markerImageFunction", "imageFunction", "positionFunction",
  "dataToValueFunction", "valueToDataFunction", "parseValueFunction", "convertValueFunction", "getValueFunctionBody", "setValueFunctionBody", "stateRenderFunction",
  "markdownTextFunction", "nodeRelationQueryFunction", "nodeHasChildrenFunction", "nodeOpenedFunction", "nodeDisabledFunction", "nodeIconFunction", "nodeTextFunction", "nodesSortFunction",
]);

const ASKS: readonly [RegExp, string][] = [
  [/attributeService|saveEntityAttributes|getEntityAttributes/, "attributes of entities"],
  [/(device|asset|entityView|customer|user|dashboard|edge|entity)Service\b/, "entities"],
  [/entityRelationService/, "relations"],
  [/alarmService/, "alarms"],
  [/controlApi|sendOneWayCommand|sendTwoWayCommand|RPC/i, "commands to devices"],
  [/\bhttp(Client)?\b|\bfetch\(|XMLHttpRequest|\$\.(ajax|get|post)\(/, "the network"],
  [/customDialog|dialogs\.|openDialog/, "dialogs"],
  [/stateController|openState|updateState/, "states of the dashboard"],
  [/localStorage|sessionStorage|document\.cookie/, "storage of the browser"],
  [/window\.(top|parent|open|location)|\bparent\.|router\.navigate/, "the page around it"],
  [/showToast|showSuccessToast|showErrorToast/, "messages"],
];

/** Returns what a piece of code asks for. */
export function asksOf(code: string): string[] {
  return ASKS.filter(([pattern]) => pattern.test(code)).map(([, name]) => name);
}

const bodyIn = (value: unknown): string | undefined => text(value)?.trim() || text(object(value)["body"])?.trim();

/** Whether a flag beside a function says that it is not used. */
function isSwitchedOff(holder: Json, name: string): boolean {
  const flag = name === "postFuncBody" ? "usePostProcessing" : `use${name.charAt(0).toUpperCase()}${name.slice(1)}`;
  const chosen = holder["type"];
  return holder[flag] === false || (name === "colorFunction" && chosen !== undefined && chosen !== "function") || (name === "funcBody" && chosen !== "function");
}

/** Finds functions wherever they stand in a configuration. */
export function codeIn(value: unknown, path: string[] = []): WidgetCode[] {
  if (Array.isArray(value)) {
    return value.flatMap((one, n) => codeIn(one, [...path, text(object(one)["label"]) ?? text(object(one)["name"]) ?? String(n + 1)]));
  }
  const holder = object(value);
  return Object.entries(holder).flatMap(([name, stored]) => {
    const body = FUNCTION.test(name) ? bodyIn(stored) : undefined;
    if (body !== undefined) {
      return isSwitchedOff(holder, name) ? [] : [{ where: [...path, name].join(" › "), runs: RUNNING.has(name), asks: asksOf(body) }];
    }
    return typeof stored === "object" && stored !== null ? codeIn(stored, [...path, name]) : [];
  });
}

function notesOf(widget: Widget, isMissing: (icon: string) => boolean): string[] {
  const { config, settings, fqn } = widget;
  const actions = Object.values(object(config["actions"])).flatMap(list).map(object);
  const written = JSON.stringify(settings);
  return [
    ...(FORMER.test(fqn) ? ["An old type: it is drawn by the one that came after it."] : []),
    ...(OTHER_LOOK.test(fqn) ? ["Its values and ranges are kept; the drawing is another one."] : []),
    ...(/\{\{.*\}\}|\*ng(If|For)|<mat-|<tb-|formGroup/.test(written) ? ["Its text is an Angular template: what it translates is shown in English; of its bindings only plain conditions, switches, links and states work."] : []),
    ...(actions.some((action) => action["type"] === "customPretty") ? ["An action opens a form of Angular, of which only plain HTML is shown."] : []),
    ...(actions.some((action) => object(action["mobileAction"])["type"] === "deviceProvision") ? ["An action needs the mobile app."] : []),
    ...(text(config["widgetCss"]) === undefined ? [] : ["Its styles hold here, but what they name may be called otherwise."]),
    ...(config["showTitleIcon"] === true && isMissing(text(config["titleIcon"]) ?? "") ? ["The icon of the title is not drawn."] : []),
  ];
}

function reportOf(widget: Widget, isMissing: (icon: string) => boolean): WidgetReport {
  const isOwn = widget.fqn.startsWith("tenant.");
  const code = codeIn({ dataKeys: [...widget.datasources, ...(widget.alarmSource === undefined ? [] : [widget.alarmSource])].flatMap(({ dataKeys, latestKeys }) => [...dataKeys, ...latestKeys].map(({ raw }) => raw)), actions: widget.config["actions"], settings: widget.settings });
  const notes = notesOf(widget, isMissing);
  const all = isOwn ? [{ where: "controllerScript", runs: true, asks: [] }, ...code] : code;
  const verdict: Verdict = !isOwn && !isKnown(widget.fqn) ? "unknown" : all.length > 0 ? "code" : notes.length > 0 ? "approximated" : "native";
  return { id: widget.id, title: widget.title || widget.fqn, fqn: widget.fqn, verdict, notes: isOwn ? ["A type of its tenant: all its code runs in the sandbox."] : notes, code: all };
}

export const VERDICTS: readonly { id: Verdict; label: string }[] = [
  { id: "unknown", label: "Not drawable" },
  { id: "code", label: "With code" },
  { id: "approximated", label: "Nearly" },
  { id: "native", label: "As it was made" },
];

/** Reports on all widgets of a dashboard, those first that need a look. `isMissing` says which icons no set has. */
export function importReport(configuration: unknown, isMissing: (icon: string) => boolean): WidgetReport[] {
  const order = VERDICTS.map(({ id }) => id);
  return [...readDashboard(configuration).widgets.values()].map((widget) => reportOf(widget, isMissing)).sort((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict) || a.title.localeCompare(b.title));
}

/** Returns how many widgets have each verdict. */
export function countsOf(report: readonly WidgetReport[]): Record<Verdict, number> {
  const counts: Record<Verdict, number> = { native: 0, approximated: 0, code: 0, unknown: 0 };
  report.forEach(({ verdict }) => counts[verdict]++);
  return counts;
}
