// The dashboard that a widget stands on, for what a click changes on it. It stays the same object while states change.

import { createContext, type ReactNode } from "react";
import type { Action, ActionOrigin, OverlayLook } from "./actions";
import type { Dashboard } from "./model";
import type { PartChoice } from "./part";
import type { EntityValues } from "./source";
import type { OpenState } from "./state";

/** How a state is drawn within a widget. */
export interface Embedded {
  /** Whether its rows are as high as fit, whatever its own grid says. */
  fill: boolean;
}

export interface Board {
  id: string;
  /** Name of the dashboard. */
  title: string;
  model: () => Dashboard;
  /** All that the dashboard is made of, as text: consent to its code is for exactly this. */
  code: () => string;
  path: () => OpenState[];
  go: (path: OpenState[]) => void;
  part: PartChoice;
  /** Opens a state over the page. */
  openOver: (state: OpenState, look: OverlayLook) => void;
  /** Draws a state within a widget; nothing if there is no such state. */
  draw: (state: OpenState, embedded: Embedded) => ReactNode;
  openDashboard: (id: string | undefined, state: OpenState | undefined, newTab: boolean) => void;
  /** Runs the code of an action in the sandbox. */
  runCode: (action: Action, entity: EntityValues | undefined, origin: ActionOrigin) => void;
}

/** None while a dashboard is edited: clicks do nothing then. */
export const BoardContext = createContext<Board | undefined>(undefined);
