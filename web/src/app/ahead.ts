// What a page needs first, asked for at once and together: before the application is there, for that takes longer to come than all of this.

import type { QueryClient } from "@tanstack/react-query";
import { api } from "@/api/client";
import { currentClaims } from "@/api/session";
import type { User } from "@/api/types";
import { live } from "@/live/socket";
import { Coming } from "@/ui/coming";

/** The screen of dashboards, which is loaded together with its dashboard. */
export const dashboardScreen = new Coming<{ id: string }>(() => import("@/screens/dashboard/Dashboard"));

interface Stored {
  configuration?: unknown;
}

interface Ahead {
  user: Promise<User>;
  /** The dashboard that the address names. */
  board?: { id: string; stored: Promise<Stored> };
}

const askUser = (): Promise<User> => api.get<User>("/api/auth/user");
const askDashboard = (id: string): Promise<Stored> => api.get<Stored>(`/api/dashboard/${id}`);

let asked: { ahead: Ahead | undefined } | undefined;

/** Asks for who uses this page, and for all that the dashboard needs which its address names. Visitors have no session yet, so that they wait. */
export function askAhead(path: string, search: string): Ahead | undefined {
  asked ??= { ahead: begin(path, search) };
  return asked.ahead;
}

function begin(path: string, search: string): Ahead | undefined {
  const claims = currentClaims();
  if (claims === undefined || claims.isPublic === true || new URLSearchParams(search).has("publicId")) {
    return undefined;
  }
  const user = askUser();
  // The shell asks again, and says what is wrong.
  user.catch(() => undefined);
  const id = /^\/dashboards?\/([\w-]{36})$/.exec(path)?.[1];
  if (id === undefined) {
    return { user };
  }
  const stored = askDashboard(id);
  live.prepare();
  // What draws, and values, are asked for before the screen is drawn: that takes the page a while, during which they come. The screen asks
  // again where this fails, and says what is wrong.
  loadBoard(user, stored, search).catch(() => undefined);
  return { user, board: { id, stored } };
}

async function loadBoard(user: Promise<User>, stored: Promise<Stored>, search: string): Promise<void> {
  // A browser loads few files at a time, and those that have been asked for above are needed first.
  await Promise.resolve();
  const later = import("@/widgets/ahead");
  dashboardScreen.load().catch(() => undefined);
  const [{ configuration }, { additionalInfo }, { loadDashboard }] = await Promise.all([stored, user, later]);
  loadDashboard(configuration, { search, width: innerWidth, height: innerHeight, units: additionalInfo?.unitSystem, language: navigator.language });
}

/** Returns what gives what is coming, and asks again after that. */
function once<T>(coming: Promise<T>, again: () => Promise<T>): () => Promise<T> {
  let isTaken = false;
  return () => {
    const given = isTaken ? again() : coming;
    isTaken = true;
    return given;
  };
}

/** Hands what was asked for ahead to the application, which asks again where that failed, and says what is wrong. */
export function takeAhead(queries: QueryClient, path: string, search: string): void {
  const ahead = askAhead(path, search);
  if (ahead !== undefined) {
    const { user, board } = ahead;
    void queries.prefetchQuery({ queryKey: ["own user"], queryFn: once(user, askUser) });
    if (board !== undefined) {
      void queries.prefetchQuery({ queryKey: ["dashboard", board.id], queryFn: once(board.stored, () => askDashboard(board.id)) });
    }
  }
}
