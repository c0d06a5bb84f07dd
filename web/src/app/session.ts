// Who uses this tab; known to every screen below the shell.

import { createContext, useContext } from "react";
import type { Authority, User } from "@/api/types";

export interface Session {
  user: User;
  authority: Authority;
  /** The customer that the user belongs to; the null id for users without one. */
  customerId: string;
}

export const SessionContext = createContext<Session | undefined>(undefined);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === undefined) {
    throw new Error("a screen is shown outside the shell");
  }
  return session;
}
