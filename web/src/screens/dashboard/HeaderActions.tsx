// The buttons in the head of a widget, with those that a function of the dashboard hides.

import { useMemo, type ReactElement } from "react";
import { actionsOf } from "@/dashboard/actions";
import type { Widget } from "@/dashboard/model";
import type { SourceValues } from "@/dashboard/source";
import { plainWords } from "@/dashboard/words";
import { t } from "@/i18n";
import { useFunctions } from "@/sandbox/functions";
import { Icon } from "@/icons/Icon";
import { contextData } from "@/widgets/contextData";
import { functionContext } from "@/widgets/table/cells";
import classes from "./dashboard.module.css";

interface HeaderProps {
  widget: Widget;
  values: readonly SourceValues[];
  /** Called with the name of an action, or without one for a click on the card as a whole. */
  run: (name: string | undefined) => void;
}

export function HeaderActions({ widget, values, run }: HeaderProps): ReactElement {
  const { ask } = useFunctions(useMemo(() => functionContext(widget), [widget]));
  const actions = actionsOf(widget.config, "headerButton");
  const isConditional = actions.some(({ showBody }) => showBody !== undefined);
  const data = isConditional ? contextData([...values]) : [];
  // One that is not known yet to be shown is not shown.
  const shown = actions.filter(({ showBody }) => showBody === undefined || ask(showBody, ["data"], [data])?.value === true);
  return (
    <>
      {actionsOf(widget.config, "cardClick").length > 0 && (
        <button type="button" className={classes["open"]} onClick={() => run(undefined)}>
          {t("Open")}
        </button>
      )}
      {shown.map(({ name, icon }) => (
        <button key={name} type="button" className={classes["open"]} onClick={() => run(name)}>
          <Icon name={icon ?? ""} size="1em" /> {plainWords(name)}
        </button>
      ))}
    </>
  );
}
