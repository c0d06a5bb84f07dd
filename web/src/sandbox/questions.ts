// Questions that code of a dashboard brings before people, one after the other.

import { create } from "zustand";

export interface Question {
  kind: "consent" | "confirm" | "alert";
  title: string;
  text: string;
  yes: string;
  no: string | undefined;
}

/** A question that waits for its answer. */
export interface Asked extends Question {
  /** Tells one question from the next, however alike they look. */
  id: number;
  answer: (yes: boolean) => void;
}

/** More questions than these at once are answered with no. */
const MOST = 3;
let nextId = 1;

export const useQuestions = create<{ asked: readonly Asked[] }>(() => ({ asked: [] }));

/** Asks something, and returns whether the answer was yes. */
export function question(one: Question): Promise<boolean> {
  return new Promise((resolve) => {
    if (useQuestions.getState().asked.length >= MOST) {
      resolve(false);
      return;
    }
    const asked: Asked = {
      ...one,
      id: nextId++,
      answer: (yes) => {
        useQuestions.setState((state) => ({ asked: state.asked.filter((other) => other !== asked) }));
        resolve(yes);
      },
    };
    useQuestions.setState((state) => ({ asked: [...state.asked, asked] }));
  });
}
