// The parts that draw the widgets of a dashboard, loaded before the widgets are there.

import { readDashboard } from "@/dashboard/model";
import { rendererOf } from "./registry";

/** Begins to load what draws the widgets that a dashboard shows first. */
export function loadRenderers(configuration: unknown): void {
  const model = readDashboard(configuration);
  const root = model.states.find((state) => state.root);
  const places = [...(root?.main.places ?? []), ...(root?.right?.places ?? [])];
  const loads = new Set(places.flatMap(({ id }) => { const widget = model.widgets.get(id); return widget === undefined ? [] : [rendererOf(widget.fqn).draw.load]; }));
  // A part that can't be loaded is asked for again by its widget, which says so.
  loads.forEach((load) => void load().catch(() => undefined));
}
