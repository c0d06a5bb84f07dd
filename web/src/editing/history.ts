// Undo and redo over documents that are never changed in place.

export interface History<T> {
  past: T[];
  present: T;
  future: T[];
}

const MOST = 200;

export function begin<T>(present: T): History<T> {
  return { past: [], present, future: [] };
}

/** `goesOn` makes it part of the step before. */
export function apply<T>(history: History<T>, next: T, goesOn = false): History<T> {
  if (goesOn && history.past.length > 0 && history.future.length === 0) {
    return { ...history, present: next };
  }
  return next === history.present ? history : { past: [...history.past, history.present].slice(-MOST), present: next, future: [] };
}

/** Typing that pauses for longer begins another step, milliseconds. */
const PAUSE_MS = 1_500;
let typed: { field: Element | null; at: number } = { field: null, at: 0 };

/** Whether the same field is typed into as a moment ago: a word is one step, not each of its letters. */
export function goesOn(field: Element | null = document.activeElement, now = Date.now()): boolean {
  const isText = field?.matches("input:not([type=checkbox], [type=radio]), textarea, [contenteditable=true]") === true;
  const same = isText && field === typed.field && now - typed.at < PAUSE_MS;
  typed = { field, at: now };
  return same;
}

/** Takes into a history what was saved of `sent`, which `join` may have made something else of. What was changed while it was saved stays a change. */
export function taken<T>(history: History<T>, sent: T, saved: T, join: (base: T, mine: T, theirs: T) => T): History<T> {
  return saved === sent ? history : apply(history, history.present === sent ? saved : join(sent, history.present, saved));
}

export function undo<T>({ past, present, future }: History<T>): History<T> {
  const former = past.at(-1);
  return former === undefined ? { past, present, future } : { past: past.slice(0, -1), present: former, future: [present, ...future] };
}

export function redo<T>({ past, present, future }: History<T>): History<T> {
  const [next, ...rest] = future;
  return next === undefined ? { past, present, future } : { past: [...past, present], present: next, future: rest };
}
