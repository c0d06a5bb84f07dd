// Calls of the REST API with the token of whoever is logged in.

import { ApiError, errorOf, UNREACHABLE } from "./errors";
import { bringsLogIn, clearTokens, getToken, loginPath, renewToken, SessionEnded } from "./session";

export { ApiError, errorFrom, errorOf } from "./errors";

export type Query = Record<string, string | number | boolean | undefined>;

export function withQuery(path: string, query?: Query): string {
  const entries = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== "");
  const text = new URLSearchParams(entries.map(([name, value]) => [name, String(value)])).toString();
  return text === "" ? path : `${path}${path.includes("?") ? "&" : "?"}${text}`;
}

/** Asks for a log-in that leads back to the present page. */
export function goToLogin(): void {
  clearTokens();
  const path = loginPath(location.pathname + location.search);
  if (bringsLogIn(new URLSearchParams(location.search))) {
    // What the address brings to log in with must not stay one step back.
    location.replace(path);
  } else {
    location.assign(path);
  }
}

/** Ends what is being done, since the session has ended. */
function leave(): never {
  goToLogin();
  throw new SessionEnded();
}

async function send(method: string, path: string, body: string | undefined, signal: AbortSignal | null = null, range?: string): Promise<Response> {
  const once = (token: string): Promise<Response> => {
    const headers: Record<string, string> = { "X-Authorization": `Bearer ${token}`, Accept: "application/json" };
    if (range !== undefined) {
      // The browser's cache would let one request of an address through at a time.
      return fetch(path, { method, headers: { ...headers, Accept: "*/*", Range: range }, signal, cache: "no-store" });
    }
    return body === undefined
      ? fetch(path, { method, headers, signal })
      : fetch(path, { method, headers: { ...headers, "Content-Type": "application/json" }, body, signal });
  };
  try {
    const token = await getToken();
    const answer = await once(token);
    return answer.status === 401 ? await once(await renewToken(token)) : answer;
  } catch (error) {
    if (error instanceof SessionEnded) {
      leave();
    }
    throw error instanceof TypeError ? new ApiError(0, UNREACHABLE) : error;
  }
}

async function call<T>(method: string, path: string, query?: Query, body?: unknown, signal?: AbortSignal): Promise<T> {
  const answer = await send(method, withQuery(path, query), body === undefined ? undefined : JSON.stringify(body), signal);
  if (answer.status === 401) {
    leave();
  }
  if (!answer.ok) {
    throw await errorOf(answer);
  }
  const content = await answer.text();
  const isJson = answer.headers.get("Content-Type")?.includes("json") ?? false;
  return (content === "" ? undefined : isJson ? JSON.parse(content) : content) as T;
}

/** Gets a file, which no other tab of the browser could: it needs the token. */
async function blob(path: string): Promise<Blob> {
  const answer = await send("GET", path, undefined);
  if (answer.status === 401) {
    leave();
  }
  if (!answer.ok) {
    throw await errorOf(answer);
  }
  return answer.blob();
}

/** Gets some bytes of a file, with the tag of its version. */
async function part(path: string, from: number, length: number, signal?: AbortSignal): Promise<{ data: ArrayBuffer; tag: string | undefined }> {
  const answer = await send("GET", path, undefined, signal, `bytes=${from}-${from + length - 1}`);
  if (answer.status === 401) {
    leave();
  }
  if (answer.status !== 206) {
    if (!answer.ok) {
      throw await errorOf(answer);
    }
    // All of it may be very much.
    await answer.body?.cancel();
    throw new ApiError(answer.status, "A part of a file was asked for, and all of it came.");
  }
  return { data: await answer.arrayBuffer(), tag: answer.headers.get("ETag") ?? undefined };
}

export const api = {
  blob,
  part,
  get: <T>(path: string, query?: Query): Promise<T> => call<T>("GET", path, query),
  /** A signal closes the connection, which ends what the server does for it. */
  post: <T>(path: string, body?: unknown, query?: Query, signal?: AbortSignal): Promise<T> => call<T>("POST", path, query, body, signal),
  put: <T>(path: string, body?: unknown): Promise<T> => call<T>("PUT", path, undefined, body),
  delete: <T>(path: string, query?: Query): Promise<T> => call<T>("DELETE", path, query),
};
