// The states of a dashboard with their layouts: which widget lies where, and on which width of the page.

import { list, number, object, text, type Json } from "./json";
import { plainWords } from "./words";

export interface WidgetPlace {
  id: string;
  col: number | undefined;
  row: number | undefined;
  sizeX: number;
  sizeY: number;
  mobileOrder: number | undefined;
  mobileHeight: number | undefined;
  mobileHide: boolean;
  desktopHide: boolean;
}

export type LayoutType = "default" | "scada" | "divider";

export interface Grid {
  type: LayoutType;
  columns: number;
  margin: number;
  outerMargin: boolean;
  autoFillHeight: boolean;
  mobileAutoFillHeight: boolean;
  mobileRowHeight: number;
  /** Whether the widgets are a list of one column at any width. */
  isList: boolean;
  /** Height of a row of such a list, pixels. */
  rowHeight: number;
  backgroundColor: string;
  backgroundImage: string | undefined;
  backgroundSize: string;
}

/** Widths of pages that can have a layout of their own. */
export const BREAKPOINTS = [
  { id: "xs", label: "Phones", upTo: 599 },
  { id: "sm", label: "Tablets", upTo: 959 },
  { id: "md", label: "Small screens", upTo: 1_279 },
  { id: "lg", label: "Screens", upTo: 1_919 },
  { id: "xl", label: "Large screens", upTo: 5_000 },
] as const;
export type Breakpoint = (typeof BREAKPOINTS)[number]["id"];

export interface Layout {
  places: WidgetPlace[];
  grid: Grid;
  /** Layouts for some widths; all other widths have this one. */
  breakpoints: ReadonlyMap<Breakpoint, Layout>;
}

/** How the width is shared by the two layouts of a state. */
export type Split = { kind: "percent"; left: number } | { kind: "fixed"; layout: "main" | "right"; width: number };

export interface DashboardState {
  id: string;
  name: string;
  root: boolean;
  main: Layout;
  right: Layout | undefined;
  split: Split;
  /** Whether phones show the right layout first. */
  rightFirst: boolean;
}

/** Sizes that a widget has by itself, for layouts that name none. */
export type OwnSize = { sizeX: number; sizeY: number; row: number | undefined; col: number | undefined };
type Sizes = ReadonlyMap<string, { size: OwnSize; config: Json }>;

/** Neither side of a grid may have more cells. */
export const MOST_CELLS = 3_000;

const floor = (value: number | undefined): number | undefined => (value === undefined ? undefined : Math.floor(value));
const cells = (value: number | undefined, otherwise: number): number => Math.min(MOST_CELLS, Math.max(1, Math.floor(value ?? otherwise)));

function readPlace(id: string, value: unknown, size: OwnSize | undefined): WidgetPlace {
  const place = object(value);
  return {
    id,
    col: floor(number(place["col"])),
    row: floor(number(place["row"])),
    sizeX: cells(number(place["sizeX"]), size?.sizeX ?? 8),
    sizeY: cells(number(place["sizeY"]), size?.sizeY ?? 6),
    mobileOrder: number(place["mobileOrder"]),
    mobileHeight: number(place["mobileHeight"]),
    mobileHide: place["mobileHide"] === true,
    desktopHide: place["desktopHide"] === true,
  };
}

export function readGrid(value: unknown): Grid {
  const grid = object(value);
  const type = (["scada", "divider"] as const).find((one) => one === grid["layoutType"]) ?? "default";
  const scada = type === "scada";
  const margins = list(grid["margins"]);
  return {
    type,
    columns: cells(number(grid["minColumns"]) ?? number(grid["columns"]), 24),
    margin: scada ? 0 : (number(grid["margin"]) ?? number(margins[0]) ?? 10),
    outerMargin: !scada && grid["outerMargin"] !== false,
    autoFillHeight: !scada && grid["autoFillHeight"] === true,
    mobileAutoFillHeight: !scada && grid["mobileAutoFillHeight"] === true,
    mobileRowHeight: Math.max(5, number(grid["mobileRowHeight"]) ?? 70),
    isList: grid["viewFormat"] === "list",
    rowHeight: Math.max(5, number(grid["rowHeight"]) ?? 70),
    backgroundColor: text(grid["backgroundColor"]) ?? "#eeeeee",
    backgroundImage: text(grid["backgroundImageUrl"]),
    backgroundSize: text(grid["backgroundSizeMode"]) ?? "100%",
  };
}

function readLayout(value: unknown, widgets: Sizes, inner = false): Layout {
  const layout = object(value);
  const places = Object.entries(object(layout["widgets"])).filter(([id]) => widgets.has(id));
  const own = object(layout["breakpoints"]);
  const breakpoints = inner ? [] : BREAKPOINTS.filter(({ id }) => own[id] !== undefined && own[id] !== null).map(({ id }): [Breakpoint, Layout] => [id, readLayout(own[id], widgets, true)]);
  return { places: places.map(([id, place]) => readPlace(id, place, widgets.get(id)?.size)), grid: readGrid(layout["gridSettings"]), breakpoints: new Map(breakpoints) };
}

function readSplit(main: unknown, right: unknown): Split {
  const settings = (layout: unknown): Json => object(object(layout)["gridSettings"]);
  const stored = [settings(main)["layoutDimension"], settings(right)["layoutDimension"]].map(object).find((one) => Object.keys(one).length > 0) ?? {};
  const width = number(stored["fixedWidth"]);
  return stored["type"] === "fixed" && width !== undefined
    ? { kind: "fixed", layout: stored["fixedLayout"] === "right" ? "right" : "main", width: Math.min(4_000, Math.max(150, width)) }
    : { kind: "percent", left: Math.min(95, Math.max(5, number(stored["leftWidthPercentage"]) ?? 50)) };
}

/** Reads the states of a dashboard. Old files have none: there the widgets themselves know where they lie. */
export function readStates(configuration: Json, widgets: Sizes): DashboardState[] {
  const states = Object.entries(object(configuration["states"])).map(([id, value]): DashboardState => {
    const state = object(value);
    const { main, right } = object(state["layouts"]);
    return {
      id,
      name: plainWords(text(state["name"]) ?? id),
      root: state["root"] === true,
      main: readLayout(main, widgets),
      right: right === undefined || right === null ? undefined : readLayout(right, widgets),
      split: readSplit(main, right),
      rightFirst: object(object(right)["gridSettings"])["mobileDisplayLayoutFirst"] === true,
    };
  });
  if (states.length === 0) {
    const places = [...widgets].map(([id, { size, config }]) =>
      readPlace(id, { ...size, mobileHeight: config["mobileHeight"], mobileOrder: config["mobileOrder"] }, size),
    );
    const main: Layout = { places, grid: readGrid(configuration["gridSettings"]), breakpoints: new Map() };
    return [{ id: "default", name: "Default", root: true, main, right: undefined, split: { kind: "percent", left: 50 }, rightFirst: false }];
  }
  const root = states.find((state) => state.root) ?? states[0];
  return states.map((state) => ({ ...state, root: state === root }));
}

/** Returns the layout for a page of this width: that of its breakpoint if there is one. Two layouts side by side have no breakpoints. */
export function layoutFor(state: DashboardState, width: number): { layout: Layout; own: boolean } {
  const id = BREAKPOINTS.find(({ upTo }) => width <= upTo)?.id ?? "xl";
  const found = state.right === undefined ? state.main.breakpoints.get(id) : undefined;
  return { layout: found ?? state.main, own: found !== undefined };
}
