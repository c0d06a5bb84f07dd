// The tokens of the person who is logged in, under the names that ThingsBoard's own UI uses in local storage.

import { errorOf } from "./errors";

const ACCESS = "jwt_token";
const REFRESH = "refresh_token";
/** A token that ends within this time is renewed before it is used. */
const MARGIN_MS = 30_000;

export interface TokenPair {
  token: string;
  refreshToken: string;
}

export interface TokenClaims {
  userId: string;
  tenantId?: string;
  sub: string;
  scopes: string[];
  exp: number;
  isPublic?: boolean;
}

/** The session has ended: the server refuses the refresh token, or there is none. */
export class SessionEnded extends Error {}

export function saveTokens(pair: TokenPair): void {
  localStorage.setItem(ACCESS, pair.token);
  localStorage.setItem(REFRESH, pair.refreshToken);
}

export function clearTokens(): void {
  localStorage.removeItem(ACCESS);
  localStorage.removeItem(REFRESH);
}

/** The tokens of a visitor who came by a public link. They are this page's alone, so that nobody who is logged in is logged out. */
let visitor: TokenPair | undefined;

async function pairFrom(path: string, body: object): Promise<TokenPair> {
  const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  if (answer.status === 401 || answer.status === 400) {
    throw new SessionEnded();
  }
  if (!answer.ok) {
    throw await errorOf(answer);
  }
  return (await answer.json()) as TokenPair;
}

/** Begins a session of somebody who has a public link and no account. */
export async function enterAsVisitor(publicId: string): Promise<void> {
  visitor = await pairFrom("/api/auth/login/public", { publicId });
}

/** Reads the claims of a token without checking its signature, which only the server can. */
export function claimsOf(token: string): TokenClaims | undefined {
  const payload = token.split(".")[1];
  if (payload === undefined) {
    return undefined;
  }
  try {
    const bytes = Uint8Array.from(atob(payload.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes)) as TokenClaims;
  } catch {
    return undefined;
  }
}

export function currentClaims(): TokenClaims | undefined {
  const token = visitor?.token ?? localStorage.getItem(ACCESS);
  return token === null ? undefined : claimsOf(token);
}

/** Returns an access token that is valid for a while, renewed if need be. */
export async function getToken(now: number = Date.now()): Promise<string> {
  const token = visitor?.token ?? localStorage.getItem(ACCESS);
  const claims = token === null ? undefined : claimsOf(token);
  return token !== null && claims !== undefined && claims.exp * 1000 - MARGIN_MS > now ? token : renewToken(token);
}

/** Renews the access token. Of several tabs one asks the server; the others find what it stored. */
export async function renewToken(refused: string | null): Promise<string> {
  if (visitor !== undefined) {
    visitor = visitor.token === refused ? await pairFrom("/api/auth/token", { refreshToken: visitor.refreshToken }) : visitor;
    return visitor.token;
  }
  const renew = async (): Promise<string> => {
    const stored = localStorage.getItem(ACCESS);
    if (stored !== null && stored !== refused) {
      return stored;
    }
    const refreshToken = localStorage.getItem(REFRESH);
    if (refreshToken === null) {
      throw new SessionEnded();
    }
    const pair = await pairFrom("/api/auth/token", { refreshToken });
    saveTokens(pair);
    return pair.token;
  };
  // Pages over plain HTTP on another host than localhost have no locks.
  return "locks" in navigator ? await navigator.locks.request("fieldline-token", renew) : await renew();
}

/** Returns the log-in page that leads back to a path of this site. */
export function loginPath(next: string): string {
  return next === "/" || next === "/home" ? "/login" : `/login?next=${encodeURIComponent(next)}`;
}

/** Where the server leads those whose link from a mail is too old, and what they are told. */
export const EXPIRED_LINKS: Readonly<Record<string, string>> = {
  "/activationLinkExpired": "This activation link is too old. Ask your administrator for a new one.",
  "/passwordResetLinkExpired": "This link is too old. Ask for a new one below.",
};

/** Accepts a path to return to only if it stays on this site. */
export function safeNext(next: string | null): string {
  return next !== null && !(next in EXPIRED_LINKS) && /^\/(?![/\\])/.test(next) ? next : "/";
}

/** Returns the address of this site that a log-in leads to. It is a whole one: a path that begins with two slashes alone would be that of another site. */
export function landingOf(next: string | null, origin: string): URL {
  const landing = new URL(safeNext(next), origin);
  return landing.origin === origin ? landing : new URL(origin);
}

/** What links that embed dashboards may bring to log in with. */
export const LOG_IN = ["accessToken", "refreshToken", "username", "password"] as const;

export const bringsLogIn = (params: URLSearchParams): boolean => LOG_IN.some((name) => params.has(name));

/** Returns an address of this site without what it brings to log in with, also in the way back that it names. */
export function withoutLogIn(address: string): URL {
  const url = new URL(address);
  if (bringsLogIn(url.searchParams)) {
    LOG_IN.forEach((name) => url.searchParams.delete(name));
  }
  const next = landingOf(url.searchParams.get("next"), url.origin);
  if (bringsLogIn(next.searchParams)) {
    url.searchParams.set("next", withoutLogIn(next.href).href.slice(url.origin.length));
  }
  return url;
}
