// What is shown of a dashboard: the stored one, what its reader has chosen on it, and the time.

import { useMemo } from "react";
import type { Choices } from "@/dashboard/aliases";
import type { Dashboard } from "@/dashboard/model";
import type { TimeControl } from "@/dashboard/time/control";
import { asChosen, type FilterValues } from "@/dashboard/viewer";

export interface Shown {
  stored: Dashboard;
  choices: Choices;
  values: FilterValues;
  /** The stored dashboard with what was chosen. */
  model: Dashboard;
  time: TimeControl;
}

export function useShown(stored: Dashboard, choices: Choices, values: FilterValues, time: TimeControl): Shown {
  const model = useMemo(() => asChosen(stored, choices, values), [stored, choices, values]);
  return { stored, choices, values, model, time };
}
