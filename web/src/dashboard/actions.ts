// What a click in a widget does: what is declared for it, and the code that it may have, which runs in the sandbox alone.

import { withModules } from "@/sandbox/moduleNames";
import { list, number, object, text, type Json, type Widget } from "./model";
import type { OpenState } from "./state";
import type { EntityValues, SourceValues } from "./source";

const TYPES = ["openDashboardState", "updateDashboardState", "openDashboard", "openURL", "custom", "customPretty", "mobileAction"] as const;

export type ActionType = (typeof TYPES)[number];

export type Side = "top" | "right" | "bottom" | "left";
export type Placement = Side | `${Side}-${"start" | "end"}`;

/** A state that is opened over the page instead of in its place. */
export interface OverlayLook {
  /** In the middle of the page, or on this side of what was clicked. */
  kind: "dialog" | "popover";
  placement: Placement;
  title: string | undefined;
  /** Size with its unit. */
  width: string;
  height: string;
  hideToolbar: boolean;
  /** Whether a click elsewhere closes a popover. */
  closesOutside: boolean;
}

export interface Action {
  name: string;
  type: ActionType;
  /** Name of a Material icon. */
  icon: string | undefined;
  stateId: string | undefined;
  dashboardId: string | undefined;
  url: string | undefined;
  setEntity: boolean;
  paramName: string | undefined;
  newTab: boolean;
  rightLayout: boolean;
  overlay: OverlayLook | undefined;
  /** The function of a custom action with its template. */
  code: { body: string; html: string; css: string } | undefined;
  /** What it asks of a phone, with its functions. */
  mobile: unknown;
  /** A function that decides whether the action is offered. */
  showBody: string | undefined;
  /** Column that a click on a cell is about; any without one. */
  column: number | undefined;
}

/** Where an action was asked for: what its code gets to know. */
export interface ActionOrigin {
  widget: Widget;
  sources: readonly SourceValues[];
  /** What further arguments the code gets, such as a row of a table. */
  extra?: unknown;
}

export type Act = (action: Action, entity: EntityValues | undefined, origin: ActionOrigin) => void;

/** Returns the body of a stored function, which is a text, or an object that has one and names the modules that it needs. */
export function bodyOf(value: unknown): string | undefined {
  const body = text(object(value)["body"]);
  return text(value) ?? (body === undefined ? undefined : withModules(body, object(value)["modules"]));
}

/** Sizes of popovers are CSS lengths; anything else becomes the usual one. */
function cssLength(value: unknown, usual: string): string {
  const length = text(value);
  return length !== undefined && /^\d+(\.\d+)?(px|vw|vh|%|rem|em)$/.test(length) ? length : usual;
}

/** Reads a side of what was clicked, such as `topLeft`: above it, and beginning where it begins. */
function placementOf(value: unknown): Placement {
  const [, side, end] = /^(top|right|bottom|left)(Left|Right|Top|Bottom)?(?:Only)?$/.exec(text(value) ?? "") ?? [];
  return side === undefined ? "top" : end === undefined ? (side as Side) : `${side as Side}-${end === "Left" || end === "Top" ? "start" : "end"}`;
}

function overlayOf(action: Json): OverlayLook | undefined {
  if (action["openInSeparateDialog"] === true) {
    const percent = (name: string, most: string): string => `${Math.min(100, Math.max(10, number(action[name]) ?? 80))}${most}`;
    return { kind: "dialog", placement: "top", title: text(action["dialogTitle"]), width: percent("dialogWidth", "vw"), height: percent("dialogHeight", "vh"), hideToolbar: action["dialogHideDashboardToolbar"] !== false, closesOutside: true };
  }
  return action["openInPopover"] === true
    ? { kind: "popover", placement: placementOf(action["popoverPreferredPlacement"]), title: undefined, width: cssLength(action["popoverWidth"], "25vw"), height: cssLength(action["popoverHeight"], "25vh"), hideToolbar: action["popoverHideDashboardToolbar"] !== false, closesOutside: action["popoverHideOnClickOutside"] !== false }
    : undefined;
}

/** Reads one action; none if its type is not known here. */
export function readAction(value: unknown): Action | undefined {
  const action = object(value);
  const type = TYPES.find((one) => one === action["type"]);
  if (type === undefined) {
    return undefined;
  }
  const body = bodyOf(action["customFunction"]);
  return {
    name: text(action["name"]) ?? type,
    type,
    icon: text(action["icon"]),
    stateId: text(action["targetDashboardStateId"]),
    dashboardId: text(action["targetDashboardId"]),
    url: text(action["url"]),
    setEntity: action["setEntityId"] !== false,
    paramName: text(action["stateEntityParamName"]),
    newTab: action["openNewBrowserTab"] === true,
    rightLayout: action["openRightLayout"] === true,
    overlay: overlayOf(action),
    code: body === undefined ? undefined : { body, html: text(action["customHtml"]) ?? "", css: text(action["customCss"]) ?? "" },
    mobile: action["mobileAction"],
    showBody: action["useShowWidgetActionFunction"] === true ? bodyOf(action["showWidgetActionFunction"]) : undefined,
    column: number(action["columnIndex"]),
  };
}

/** Reads the actions of one source, such as `rowClick`; those that do nothing are left out. */
export function actionsOf(config: Json, source: string): Action[] {
  return list(object(config["actions"])[source]).flatMap((value) => readAction(value) ?? []);
}

function labelOf(entity: EntityValues): string {
  return entity.latest.get("ENTITY_FIELD/label")?.value ?? "";
}

function paramsFor(action: Action, entity: EntityValues | undefined, before: Json): Json {
  if (!action.setEntity || entity === undefined) {
    return before;
  }
  const label = labelOf(entity);
  const named = { entityId: entity.id, entityName: entity.name, ...(label === "" ? {} : { entityLabel: label }) };
  return action.paramName === undefined ? { ...before, ...named } : { ...before, [action.paramName]: named, targetEntityParamName: action.paramName };
}

/** Returns the state that an action opens, with its parameters. */
export function stateAfter(action: Action, current: OpenState | undefined, entity: EntityValues | undefined): OpenState {
  const params = current?.params ?? {};
  return { id: action.stateId ?? current?.id ?? "default", params: paramsFor(action, entity, params) };
}

/** Returns the path of states after an action: opening goes one deeper, updating stays as deep. */
export function pathAfter(action: Action, path: OpenState[], entity: EntityValues | undefined): OpenState[] {
  const next = stateAfter(action, path.at(-1), entity);
  return action.type === "openDashboardState" ? [...path, next] : [...path.slice(0, -1), next];
}

/** Returns an address that an action may open: pages of the web, nothing that runs. */
export function safeUrl(url: string | undefined): string | undefined {
  try {
    const parsed = new URL(url ?? "", "https://fieldline.invalid/");
    return url !== undefined && ["http:", "https:"].includes(parsed.protocol) ? url : undefined;
  } catch {
    return undefined;
  }
}

/** Whether an address is one of the page's own origin; `//example.org` looks like a path and is none. */
export function isOwnAddress(url: string, base: string): boolean {
  return new URL(url, base).origin === new URL(base).origin;
}
