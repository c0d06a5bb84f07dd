// What a dashboard shows first, asked for before its widgets are there: what draws them, and their values. Until they are drawn, a page needs
// more time than a server to answer.

import { layoutFor } from "@/dashboard/grid";
import { arrange, MOBILE_PX } from "@/dashboard/layout";
import { readDashboard, type Dashboard, type Datasource, type Json, type Widget } from "@/dashboard/model";
import { planOf } from "@/dashboard/plan";
import { identityOf } from "@/dashboard/source";
import { beginAhead } from "@/dashboard/sharedSource";
import { readStatePath } from "@/dashboard/state";
import { readAddress } from "@/dashboard/time/address";
import { serverNow } from "@/dashboard/time/clock";
import { readTimeWindow } from "@/dashboard/timeWindow";
import { asChosen, readChoices, readValues } from "@/dashboard/viewer";
import { rendererOf, type Renderer } from "./registry";
import { systemOf } from "./units";
import { widgetInSystem } from "./unitSettings";

/** Returns the sources of a widget: tables of alarms have one that they ask themselves. */
export function sourcesOf(widget: Widget, renderer: Renderer): Datasource[] {
  return widget.alarmSource !== undefined && renderer.asksItself ? [widget.alarmSource] : widget.datasources;
}

/** Returns the widgets that a page of this size shows without being scrolled. */
function firstWidgets(model: Dashboard, stateId: string | undefined, width: number, height: number): Widget[] {
  const state = model.states.find(({ id }) => id === stateId);
  if (state === undefined) {
    return [];
  }
  const { layout, own } = layoutFor(state, width);
  const narrow = width < MOBILE_PX && !own;
  const layouts = state.right === undefined ? [layout] : narrow ? [state.rightFirst ? state.right : layout] : [layout, state.right];
  return layouts.flatMap((one) => {
    const { rects } = arrange(one, width, height, narrow);
    return rects.filter(({ top }) => top < height).flatMap(({ id }) => model.widgets.get(id) ?? []);
  });
}

/** What tells which values a page shows first. */
export interface Page {
  search: string;
  width: number;
  height: number;
  /** The system of units that the user has chosen. */
  units: unknown;
  language: string;
}

/** Returns what the widgets ask for that a page shows first. */
export function firstRequests(stored: Dashboard, page: Page): string[] {
  const search = new URLSearchParams(page.search);
  const model = asChosen(stored, readChoices(search, stored), readValues(search, stored));
  const open = readStatePath(search.get("state"), model).at(-1);
  const params: Json = open?.params ?? {};
  const shared = readAddress(search, readTimeWindow(model.timeWindow));
  const system = systemOf(page.units, page.language);
  const asked = firstWidgets(model, open?.id, page.width, page.height).flatMap((one) => {
    const widget = widgetInSystem(one, system);
    const renderer = rendererOf(widget.fqn);
    const window = widget.timeWindow === undefined ? shared : readTimeWindow(widget.timeWindow);
    return renderer.asksItself ? [] : planOf(widget, model, params, window, serverNow(), renderer, sourcesOf(widget, renderer));
  });
  return [...new Set(asked.flatMap(({ request }) => (request === undefined ? [] : [identityOf(request)])))];
}

/** Begins to load what draws the widgets that a dashboard shows first, and to follow their values. */
export function loadDashboard(configuration: unknown, page: Page): void {
  const model = readDashboard(configuration);
  const root = model.states.find((state) => state.root);
  const places = [...(root?.main.places ?? []), ...(root?.right?.places ?? [])];
  const loads = new Set(places.flatMap(({ id }) => { const widget = model.widgets.get(id); return widget === undefined ? [] : [rendererOf(widget.fqn).part.load]; }));
  firstRequests(model, page).forEach(beginAhead);
  // A part that can't be loaded is asked for again by its widget, which says so.
  loads.forEach((load) => void load().catch(() => undefined));
}
