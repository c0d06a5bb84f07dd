// Where in a dashboard a widget is shown, for the few widgets that ask.

import { createContext, useContext } from "react";
import type { OpenState } from "./state";

export interface DashboardPlace {
  /** The state that is open, and its parameters. */
  state: OpenState;
  /** Whether the dashboard is being edited, so that widgets send nothing. */
  editing: boolean;
}

/** Widgets that are shown outside of a state are those of the editor. */
export const PlaceContext = createContext<DashboardPlace>({ state: { id: "default", params: {} }, editing: true });

export function usePlace(): DashboardPlace {
  return useContext(PlaceContext);
}
