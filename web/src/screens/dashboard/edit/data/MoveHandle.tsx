// What a row is moved by: with the pointer or the arrow keys.

import type { HTMLAttributes, ReactElement } from "react";
import { t } from "@/i18n";
import classes from "./data.module.css";

interface Props {
  name: string;
  n: number;
  total: number;
  events: HTMLAttributes<HTMLElement>;
}

export function MoveHandle({ name, n, total, events }: Props): ReactElement {
  return (
    // No element of buttons: Firefox drags none.
    <span role="button" tabIndex={0} className={classes["handle"]} title={t("Drag it, or move it with the arrow keys")} aria-label={t("{name}: place {n} of {total}", { name, n: n + 1, total })} {...events}>
      ⠿
    </span>
  );
}
