// The screens that a person has chosen for quick access, as a widget.

import type { ReactElement } from "react";
import { number } from "@/dashboard/json";
import type { WidgetProps } from "../registry";
import LinkList from "./LinkList";

export default function QuickLinks({ widget }: WidgetProps): ReactElement {
  return <LinkList columns={Math.min(4, number(widget.settings["columns"]) ?? 2)} />;
}
