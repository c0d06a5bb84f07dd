// Where each widget lies, in pixels: the cells are square, nothing is moved up, and gaps stay.

import type { Grid, Layout, WidgetPlace } from "./model";

export interface Rect {
  id: string;
  left: number;
  top: number;
  width: number;
  height: number;
}

export interface Arrangement {
  rects: Rect[];
  height: number;
}

/** Narrower pages show the widgets in one column. */
export const MOBILE_PX = 960;

/** Cells of a grid. */
export interface Place {
  col: number;
  row: number;
  sizeX: number;
  sizeY: number;
}

type Placed = WidgetPlace & Place;

const overlap = (a: Place, b: Place): boolean =>
  a.col < b.col + b.sizeX && b.col < a.col + a.sizeX && a.row < b.row + b.sizeY && b.row < a.row + a.sizeY;

/** Gives each widget its cells. One that has none, or lies on an earlier one, takes the first free cells. */
export function placed(places: WidgetPlace[], columns: number): Placed[] {
  const order = [...places].sort((a, b) => (a.row ?? Infinity) - (b.row ?? Infinity) || (a.col ?? Infinity) - (b.col ?? Infinity) || 0);
  const done: Placed[] = [];
  for (const place of order) {
    const wanted: Placed = { ...place, col: place.col ?? 0, row: place.row ?? 0 };
    const fits = (candidate: Placed): boolean => done.every((other) => !overlap(candidate, other));
    if (place.col === undefined || place.row === undefined || !fits(wanted)) {
      const lowest = Math.max(0, ...done.map((other) => other.row + other.sizeY));
      search: for (let row = 0; row <= lowest; row++) {
        for (let col = 0; col <= Math.max(0, columns - place.sizeX); col++) {
          if (fits({ ...wanted, col, row })) {
            Object.assign(wanted, { col, row });
            break search;
          }
        }
      }
    }
    done.push(wanted);
  }
  return done;
}

/** Returns how many columns a layout has, and the distance of two of them in pixels on a page of this width. */
export function gridOf({ places, grid }: Layout, width: number): { columns: number; pitch: number } {
  const columns = Math.max(grid.columns, ...places.filter((place) => !place.desktopHide).map((place) => (place.col ?? 0) + place.sizeX));
  return { columns, pitch: (grid.outerMargin ? width - grid.margin : width + grid.margin) / columns };
}

/** Arranges a layout in columns and rows, however narrow the page is. */
export function desktop(layout: Layout, width: number, height: number): Arrangement {
  const { places, grid } = layout;
  const { columns, pitch } = gridOf(layout, width);
  const cells = placed(
    places.filter((place) => !place.desktopHide),
    columns,
  );
  const margin = grid.margin;
  const outer = grid.outerMargin ? margin : 0;
  const rows = Math.max(1, ...cells.map((cell) => cell.row + cell.sizeY));
  const rowPitch = grid.autoFillHeight ? (grid.outerMargin ? height - margin : height + margin) / rows : pitch;
  const rects = cells.map((cell) => ({
    id: cell.id,
    left: outer + cell.col * pitch,
    top: outer + cell.row * rowPitch,
    width: cell.sizeX * pitch - margin,
    height: cell.sizeY * rowPitch - margin,
  }));
  return { rects, height: rows * rowPitch - margin + 2 * outer };
}

/** Returns how many rows of the list a widget is high. */
export function rowsOnPhone(place: WidgetPlace, grid: Grid): number {
  return Math.max(1, Math.floor(place.mobileHeight ?? (place.sizeY * 24) / grid.columns));
}

/** Returns the widgets of the list in their order, those that phones don't show left out. */
export function phoneOrder(places: WidgetPlace[]): WidgetPlace[] {
  const order = (place: WidgetPlace): number => (place.mobileOrder !== undefined && place.mobileOrder >= 0 ? place.mobileOrder : Infinity);
  return places
    .filter((place) => !place.mobileHide)
    .sort((a, b) => (order(a) === order(b) ? (a.row ?? 0) - (b.row ?? 0) || (a.col ?? 0) - (b.col ?? 0) : order(a) - order(b)));
}

/** Arranges a layout as a list of one column. */
export function phone({ places, grid }: Layout, width: number, height: number): Arrangement {
  const shown = phoneOrder(places);
  const outer = grid.outerMargin ? grid.margin : 0;
  const total = shown.reduce((sum, place) => sum + rowsOnPhone(place, grid), 0);
  const fill = grid.isList ? grid.autoFillHeight : grid.mobileAutoFillHeight;
  const rowHeight = fill && total > 0 ? Math.max(20, (height - 2 * outer + grid.margin) / total - grid.margin) : grid.isList ? grid.rowHeight : grid.mobileRowHeight;
  let top = outer;
  const rects = shown.map((place) => {
    const rows = rowsOnPhone(place, grid);
    const rect = { id: place.id, left: outer, top, width: width - 2 * outer, height: rows * rowHeight + (rows - 1) * grid.margin };
    top += rect.height + grid.margin;
    return rect;
  });
  return { rects, height: top - grid.margin + outer };
}

/**
 * Arranges a layout in an area of this size. A narrow page shows a list, unless the layout was made for its width or draws a plant,
 * whose symbols lie where they lie.
 */
export function arrange(layout: Layout, width: number, height: number, narrow: boolean = width < MOBILE_PX): Arrangement {
  const asList = layout.grid.isList || (narrow && layout.grid.type !== "scada");
  return asList ? phone(layout, width, height) : desktop(layout, width, height);
}
