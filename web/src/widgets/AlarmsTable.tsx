// All alarms that the user sees, with what can be done about them. The source of the widget does not narrow them yet.

import type { ReactElement } from "react";
import { AlarmsTab } from "@/entities/RecordTabs";

export default function AlarmsTable(): ReactElement {
  return <AlarmsTab />;
}
