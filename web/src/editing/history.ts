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

export function apply<T>(history: History<T>, next: T): History<T> {
  return next === history.present ? history : { past: [...history.past, history.present].slice(-MOST), present: next, future: [] };
}

export function undo<T>({ past, present, future }: History<T>): History<T> {
  const former = past.at(-1);
  return former === undefined ? { past, present, future } : { past: past.slice(0, -1), present: former, future: [present, ...future] };
}

export function redo<T>({ past, present, future }: History<T>): History<T> {
  const [next, ...rest] = future;
  return next === undefined ? { past, present, future } : { past: [...past, present], present: next, future: rest };
}
