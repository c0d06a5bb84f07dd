// Another state of the same dashboard, drawn within a widget.

import { createContext, useContext, useMemo, type ReactElement } from "react";
import { BoardContext } from "@/dashboard/board";
import { text } from "@/dashboard/model";
import { t } from "@/i18n";
import { EmptyState } from "@/ui/feedback";
import type { WidgetProps } from "../registry";
import classes from "./home.module.css";

/** The states around a widget, so that none is drawn within itself. */
const AroundContext = createContext<readonly string[]>([]);

export default function StateWidget({ widget }: WidgetProps): ReactElement {
  const board = useContext(BoardContext);
  const around = useContext(AroundContext);
  const id = text(widget.settings["stateId"]);
  const inner = useMemo(() => [...around, id ?? ""], [around, id]);
  if (id === undefined) {
    return <EmptyState>{t("No state is chosen for this.")}</EmptyState>;
  }
  if (board === undefined) {
    return <EmptyState>{t("The state {id} is shown here.", { id })}</EmptyState>;
  }
  const current = board.path().at(-1);
  if (around.includes(id) || (around.length === 0 && current?.id === id)) {
    return <EmptyState>{t("The state {id} would be shown within itself.", { id })}</EmptyState>;
  }
  const params = widget.settings["syncParentStateParams"] === false ? {} : (current?.params ?? {});
  const drawn = board.draw({ id, params }, { fill: widget.settings["defaultAutofillLayout"] !== false });
  return (
    <AroundContext value={inner}>
      <div className={classes["embedded"]}>{drawn ?? <EmptyState>{t("This dashboard has no state {id}.", { id })}</EmptyState>}</div>
    </AroundContext>
  );
}
