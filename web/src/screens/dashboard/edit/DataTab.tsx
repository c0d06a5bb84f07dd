// What the chosen widget asks for, and what comes, beside its settings.

import { useMemo, type ReactElement } from "react";
import { readTimeWindow, type TimeWindow } from "@/dashboard/timeWindow";
import { planOf } from "@/dashboard/plan";
import { serverNow } from "@/dashboard/time/clock";
import { rendererOf } from "@/widgets/registry";
import DataInspector, { QuestionInspector } from "../DataInspector";
import type { DashboardEditor } from "./editor";

export default function DataTab({ editor, id }: { editor: DashboardEditor; id: string }): ReactElement | null {
  const { model, params } = editor;
  const widget = model.widgets.get(id);
  const window: TimeWindow = useMemo(() => readTimeWindow(widget?.timeWindow ?? model.timeWindow), [widget, model.timeWindow]);
  const plan = useMemo(() => {
    const renderer = widget === undefined ? undefined : rendererOf(widget.fqn);
    if (widget === undefined || renderer === undefined || renderer.asksItself) {
      return undefined;
    }
    return planOf(widget, model, params, window, serverNow(), renderer, widget.datasources);
  }, [widget, model, params, window]);
  if (plan === undefined) {
    return <QuestionInspector widget={id} />;
  }
  return <DataInspector requests={plan.map(({ request }) => request)} sources={plan.map(({ source }) => source)} />;
}
