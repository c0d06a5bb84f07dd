// The grid of a dashboard that is edited: widgets are moved and resized on its cells by pointer and keyboard.

import { useElementSize } from "@mantine/hooks";
import { useMemo, useRef, useState, type KeyboardEvent, type MouseEvent, type PointerEvent, type ReactElement } from "react";
import { fits, movePlaces, placesOf } from "@/dashboard/edit/document";
import { BREAKPOINTS } from "@/dashboard/grid";
import { desktop, gridOf, type Place } from "@/dashboard/layout";
import { readTimeWindow } from "@/dashboard/timeWindow";
import { t } from "@/i18n";
import { useBackground } from "../Board";
import { WidgetFrame } from "../WidgetFrame";
import type { DashboardEditor } from "./editor";
import board from "../dashboard.module.css";
import classes from "./edit.module.css";

const HANDLES = ["n", "s", "w", "e", "nw", "ne", "sw", "se"] as const;
type Handle = (typeof HANDLES)[number];

/** Returns a place that a handle was dragged from by so many cells; without a handle the whole place moves. */
export function dragged({ col, row, sizeX, sizeY }: Place, handle: Handle | undefined, dx: number, dy: number): Place {
  if (handle === undefined) {
    return { col: col + dx, row: row + dy, sizeX, sizeY };
  }
  const [west, east, north, south] = ["w", "e", "n", "s"].map((side) => handle.includes(side)) as [boolean, boolean, boolean, boolean];
  const left = west ? Math.min(dx, sizeX - 1) : 0;
  const top = north ? Math.min(dy, sizeY - 1) : 0;
  return {
    col: col + left,
    row: row + top,
    sizeX: Math.max(1, sizeX - left + (east ? dx : 0)),
    sizeY: Math.max(1, sizeY - top + (south ? dy : 0)),
  };
}

const ARROWS: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** Clicks do nothing while a dashboard is edited. */
const NOTHING = (): void => undefined;

interface Drag {
  ids: ReadonlySet<string>;
  handle: Handle | undefined;
  x: number;
  y: number;
  dx: number;
  dy: number;
}

interface EditGridProps {
  editor: DashboardEditor;
  /** Opens what can be done with the chosen widgets at a place of the page. */
  onMenu: (event: MouseEvent) => void;
}

export function EditGrid({ editor, onMenu }: EditGridProps): ReactElement | null {
  const { document, model, at, params, layout: stored, selected, select, edit } = editor;
  const { ref, width, height } = useElementSize();
  const [drag, setDrag] = useState<Drag>();
  const window = useMemo(() => readTimeWindow(model.timeWindow), [model.timeWindow]);
  const grid = useRef<HTMLDivElement>(null);
  const { state, layout: part, breakpoint } = at;
  const { places } = useMemo(() => placesOf(document, { state, layout: part, breakpoint }), [document, state, part, breakpoint]);
  const background = useBackground(stored);
  if (stored === undefined) {
    return null;
  }
  const layout = { ...stored, grid: { ...stored.grid, autoFillHeight: false } };
  const narrowest = BREAKPOINTS.find(({ id, upTo }) => id === breakpoint && upTo < 1_300)?.upTo;
  const { pitch } = gridOf(layout, width);
  const { rects, height: total } = desktop(layout, width, height);
  const moved = (current: Drag): Map<string, Place> =>
    new Map([...current.ids].flatMap((id) => {
      const place = places.get(id);
      return place === undefined ? [] : [[id, dragged(place, current.handle, current.dx, current.dy)]];
    }));
  const targets = drag === undefined || (drag.dx === 0 && drag.dy === 0) ? undefined : moved(drag);
  const possible = targets !== undefined && fits(document, at, targets);
  const outer = layout.grid.outerMargin ? layout.grid.margin : 0;

  const start = (event: PointerEvent<HTMLElement>, id: string, handle?: Handle): void => {
    if (event.button !== 0) {
      return;
    }
    event.stopPropagation();
    const several = event.shiftKey || event.ctrlKey || event.metaKey;
    const next = several ? new Set(selected.has(id) ? [...selected].filter((one) => one !== id) : [...selected, id]) : selected.has(id) ? selected : new Set([id]);
    select(next);
    if (!several) {
      event.currentTarget.setPointerCapture(event.pointerId);
      setDrag({ ids: handle === undefined ? next : new Set([id]), handle, x: event.clientX, y: event.clientY, dx: 0, dy: 0 });
    }
  };
  const follow = (event: PointerEvent): void => {
    if (drag !== undefined) {
      setDrag({ ...drag, dx: Math.round((event.clientX - drag.x) / pitch), dy: Math.round((event.clientY - drag.y) / pitch) });
    }
  };
  const drop = (): void => {
    if (targets !== undefined) {
      edit((before) => movePlaces(before, at, targets));
    }
    setDrag(undefined);
  };
  const keys = (event: KeyboardEvent, id: string): void => {
    const arrow = ARROWS[event.key];
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      select(new Set([id]));
    } else if (arrow !== undefined && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      const ids = selected.has(id) ? selected : new Set([id]);
      select(ids);
      const step: Drag = { ids: event.shiftKey ? new Set([id]) : ids, handle: event.shiftKey ? "se" : undefined, x: 0, y: 0, dx: arrow[0], dy: arrow[1] };
      edit((before) => movePlaces(before, at, moved(step)));
    }
  };

  return (
    <div
      ref={ref}
      className={board["grid"]}
      style={{ ...background, ...(narrowest === undefined ? {} : { maxWidth: narrowest, margin: "0 auto" }) }}
      data-plant={layout.grid.type === "scada" || undefined}
      onPointerDown={(event) => event.button === 0 && select(new Set())}
      onContextMenu={onMenu}
    >
      <div ref={grid} className={classes["cells"]} style={{ height: total + 8 * pitch, ["--pitch" as string]: `${pitch}px` }}>
        {rects.map(({ id, ...rect }) => {
          const widget = model.widgets.get(id);
          const place = places.get(id);
          if (widget === undefined || place === undefined) {
            return null;
          }
          const label = t("{title}: column {col}, row {row}, {sizeX} × {sizeY}", { title: widget.title || widget.fqn, col: place.col, row: place.row, sizeX: place.sizeX, sizeY: place.sizeY });
          return (
            <div key={id} className={board["place"]} style={rect} data-widget={id}>
              <div inert className={classes["content"]}>
                <WidgetFrame widget={widget} model={model} params={params} window={window} act={NOTHING} />
              </div>
              <button
                type="button"
                className={classes["cover"]}
                aria-label={label}
                aria-pressed={selected.has(id)}
                onPointerDown={(event) => start(event, id)}
                onPointerMove={follow}
                onPointerUp={drop}
                onPointerCancel={() => setDrag(undefined)}
                onKeyDown={(event) => keys(event, id)}
                onContextMenu={() => select(selected.has(id) ? selected : new Set([id]))}
              />
              {selected.has(id) &&
                HANDLES.map((handle) => (
                  <div
                    key={handle}
                    className={classes["handle"]}
                    data-handle={handle}
                    onPointerDown={(event) => start(event, id, handle)}
                    onPointerMove={follow}
                    onPointerUp={drop}
                    onPointerCancel={() => setDrag(undefined)}
                  />
                ))}
            </div>
          );
        })}
        {targets !== undefined &&
          [...targets].map(([id, place]) => (
            <div
              key={id}
              className={classes["target"]}
              data-possible={possible}
              style={{ left: outer + place.col * pitch, top: outer + place.row * pitch, width: place.sizeX * pitch - layout.grid.margin, height: place.sizeY * pitch - layout.grid.margin }}
            />
          ))}
      </div>
    </div>
  );
}
