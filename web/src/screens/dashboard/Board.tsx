// The widgets of a state: one layout or two side by side, as the width of the page permits.

import { useElementSize } from "@mantine/hooks";
import { lazy, Suspense, useContext, useEffect, useMemo, useState, type CSSProperties, type ReactElement, type ReactNode } from "react";
import type { Act } from "@/dashboard/actions";
import { BoardContext, type Embedded } from "@/dashboard/board";
import { layoutFor, type DashboardState, type Layout, type Split } from "@/dashboard/grid";
import { arrange, MOBILE_PX } from "@/dashboard/layout";
import type { Dashboard } from "@/dashboard/model";
import { PlaceContext } from "@/dashboard/place";
import type { OpenState } from "@/dashboard/state";
import type { TimeWindow } from "@/dashboard/timeWindow";
import { cssUrl, useImage } from "@/ui/images";
import { isImplicitGray, safeColor } from "@/widgets/color";
import { actOn } from "./actions/run";
import { WidgetFrame } from "./WidgetFrame";
import classes from "./dashboard.module.css";

const PartChoice = lazy(() => import("./PartChoice"));

export interface BoardProps {
  model: Dashboard;
  state: DashboardState;
  open: OpenState;
  window: TimeWindow;
  /** How it is drawn within a widget. */
  embedded?: Embedded;
}

const NOTHING: Act = () => undefined;

/** Returns the background that a grid has, as far as it differs from the usual one, which follows the theme. */
export function useBackground(layout: Layout | undefined): CSSProperties {
  const grid = layout?.grid;
  const { url } = useImage(grid?.backgroundImage);
  const color = grid === undefined || isImplicitGray(grid.backgroundColor) ? undefined : safeColor(grid.backgroundColor);
  return {
    ...(color === undefined ? {} : { backgroundColor: color }),
    ...(url === undefined ? {} : { backgroundImage: cssUrl(url), backgroundSize: grid?.backgroundSize, backgroundPosition: "center", backgroundRepeat: "no-repeat" }),
  };
}

interface GridProps extends Omit<BoardProps, "state" | "embedded"> {
  layout: Layout;
  /** Whether the page is so narrow that widgets are a list. */
  narrow: boolean;
  style: CSSProperties;
}

function WidgetGrid({ model, layout, narrow, open, window, style }: GridProps): ReactElement {
  const board = useContext(BoardContext);
  const act = useMemo(() => (board === undefined ? NOTHING : actOn(board)), [board]);
  const { ref, width, height } = useElementSize();
  const background = useBackground(layout);
  const place = useMemo(() => ({ state: open, editing: board === undefined }), [open, board]);
  const arrangement = useMemo(() => (width === 0 ? undefined : arrange(layout, width, height, narrow)), [layout, width, height, narrow]);
  return (
    <div ref={ref} className={classes["grid"]} style={{ ...background, ...style }} data-plant={layout.grid.type === "scada" || undefined}>
      <PlaceContext value={place}>
        <div style={{ position: "relative", height: arrangement?.height ?? 0 }}>
          {arrangement?.rects.map(({ id, ...rect }) => {
            const widget = model.widgets.get(id);
            return widget === undefined ? null : (
              <div key={id} className={classes["place"]} style={rect} data-widget={id}>
                <WidgetFrame widget={widget} model={model} params={open.params} window={window} act={act} />
              </div>
            );
          })}
        </div>
      </PlaceContext>
    </div>
  );
}

/** Returns the widths of both layouts. */
export function widthsOf(split: Split): [CSSProperties, CSSProperties] {
  if (split.kind === "percent") {
    return [{ flex: `${split.left} 1 0` }, { flex: `${100 - split.left} 1 0` }];
  }
  const fixed = { flex: `0 1 ${split.width}px` };
  return split.layout === "main" ? [fixed, { flex: "1 1 0" }] : [{ flex: "1 1 0" }, fixed];
}

export function Board({ model, state, open, window, embedded }: BoardProps): ReactElement {
  const { ref, width } = useElementSize();
  const part = useContext(BoardContext)?.part;
  const asked = (): "right" | undefined => (part?.isRight(state.id) === true ? "right" : undefined);
  const [picked, setPicked] = useState<"main" | "right" | undefined>(asked);
  useEffect(() => part?.subscribe(() => part.isRight(state.id) && setPicked("right")), [part, state.id]);
  const found = layoutFor(state, width);
  const { own } = found;
  const layout = useMemo(() => (embedded?.fill === true ? { ...found.layout, grid: { ...found.layout.grid, margin: 0, outerMargin: false, autoFillHeight: true, mobileAutoFillHeight: true } } : found.layout), [found.layout, embedded?.fill]);
  const narrow = width < MOBILE_PX && !own;
  const common = { model, open, window, narrow };
  const [left, right] = widthsOf(state.split);
  const shown = picked ?? (state.rightFirst ? "right" : "main");
  const isSplit = state.right !== undefined;
  return (
    <div ref={ref} className={classes["layouts"]} data-narrow={narrow || undefined}>
      {isSplit && narrow && width > 0 && (
        <Suspense>
          <PartChoice shown={shown} onChoose={setPicked} />
        </Suspense>
      )}
      {(!isSplit || !narrow || shown === "main") && <WidgetGrid key={`${state.id} main`} {...common} layout={layout} style={isSplit && !narrow ? left : {}} />}
      {state.right !== undefined && (!narrow || shown === "right") && <WidgetGrid key={`${state.id} right`} {...common} layout={state.right} style={narrow ? {} : right} />}
    </div>
  );
}

/** Draws the layouts of a state; nothing if there is no such state. */
export type DrawState = (state: OpenState, embedded?: Embedded) => ReactNode;

/** Returns what draws states of a dashboard with a window of time. */
export function drawOn(model: Dashboard, window: TimeWindow): DrawState {
  return (open, embedded) => {
    const state = model.states.find((one) => one.id === open.id);
    return state === undefined ? null : <Board key={open.id} model={model} state={state} open={open} window={window} {...(embedded === undefined ? {} : { embedded })} />;
  };
}
