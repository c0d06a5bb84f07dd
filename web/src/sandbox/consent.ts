// Whether somebody has allowed the code of a dashboard to act with their rights. It holds for exactly the code that was allowed.

import { create } from "zustand";
import type { Right } from "./services";

/** Counts what is allowed and withdrawn, so that what shows it is drawn again. */
export const useConsents = create<{ changes: number }>(() => ({ changes: 0 }));
const changed = (): void => useConsents.setState(({ changes }) => ({ changes: changes + 1 }));

const STORED = "fieldline_consent";

interface Consent {
  code: string;
  right: Right;
}

/** What was allowed in this page, where it can't be kept. */
const held = new Map<string, Consent>();

async function fingerprint(code: string): Promise<string | undefined> {
  // Pages over plain HTTP on another host than localhost have no digests; a weaker one could be forged.
  if (!("subtle" in crypto)) {
    return undefined;
  }
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(code)));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function load(): Record<string, Consent> {
  try {
    return JSON.parse(localStorage.getItem(STORED) ?? "{}") as Record<string, Consent>;
  } catch {
    return {};
  }
}

/** Whose consent is meant, to what. */
export interface ConsentSubject {
  userId: string;
  dashboardId: string;
  /** All code that the consent is to. */
  code: string;
}

/** Returns a short name for code, to keep consents apart. What a consent is to is compared by the code itself, so that it needn't be beyond forging. */
export function placeOfCode(code: string): string {
  let [one, other] = [0x811c9dc5, 0x1b873593];
  for (let n = 0; n < code.length; n++) {
    one = Math.imul(one ^ code.charCodeAt(n), 0x01000193);
    other = Math.imul(other ^ code.charCodeAt(n), 0x85ebca6b);
  }
  return [one, other].map((part) => (part >>> 0).toString(16).padStart(8, "0")).join("");
}

const placeOf = ({ userId, dashboardId }: ConsentSubject): string => `${userId}/${dashboardId}`;
const covers = (given: Right, wanted: Right): boolean => given === "change" || wanted === "read";

export async function isAllowed(subject: ConsentSubject, right: Right): Promise<boolean> {
  const place = placeOf(subject);
  const now = held.get(place);
  if (now?.code === subject.code && covers(now.right, right)) {
    return true;
  }
  const kept = load()[place];
  return kept !== undefined && kept.code === (await fingerprint(subject.code)) && covers(kept.right, right);
}

/** Keeps what somebody has allowed. */
export async function allow(subject: ConsentSubject, right: Right): Promise<void> {
  const place = placeOf(subject);
  held.set(place, { code: subject.code, right });
  const code = await fingerprint(subject.code);
  if (code !== undefined) {
    localStorage.setItem(STORED, JSON.stringify({ ...load(), [place]: { code, right } }));
  }
  changed();
}


/** Whether anything has been allowed in this browser. */
export function hasConsents(): boolean {
  return held.size > 0 || Object.keys(load()).length > 0;
}

/** Returns what was allowed to a dashboard as it is now, and to the widgets of tenants on it. */
export async function allowedTo(subject: ConsentSubject): Promise<Right | undefined> {
  const widgets = `${placeOf(subject)} `;
  const rights = [...held, ...Object.entries(load())].flatMap(([place, { right }]) => (place.startsWith(widgets) ? [right] : []));
  if (rights.includes("change") || (await isAllowed(subject, "change"))) {
    return "change";
  }
  return rights.length > 0 || (await isAllowed(subject, "read")) ? "read" : undefined;
}

/** Forgets what was allowed to a dashboard, and to the widgets of tenants on it. */
export function withdraw({ userId, dashboardId }: Pick<ConsentSubject, "userId" | "dashboardId">): void {
  const own = (place: string): boolean => place === `${userId}/${dashboardId}` || place.startsWith(`${userId}/${dashboardId} `);
  [...held.keys()].filter(own).forEach((place) => held.delete(place));
  localStorage.setItem(STORED, JSON.stringify(Object.fromEntries(Object.entries(load()).filter(([place]) => !own(place)))));
  changed();
}
