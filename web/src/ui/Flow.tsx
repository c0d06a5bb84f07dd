// Holds a table of few rows, whose cells follow each other like words where there is no room for columns.

import type { ReactElement, ReactNode } from "react";
import classes from "./flow.module.css";

export function Flow({ children }: { children: ReactNode }): ReactElement {
  return <div className={classes["flow"]}>{children}</div>;
}
