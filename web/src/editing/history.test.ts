import { expect, test } from "vitest";
import { apply, begin, goesOn, redo, taken, undo } from "./history";

test("a word that is typed is one step, and a pause or another field begins the next", () => {
  const [name, note] = [{ matches: () => true }, { matches: () => true }] as unknown as Element[];
  const steps: [string, Element | undefined, number][] = [["a", name, 0], ["ab", name, 300], ["abc", name, 900], ["abcd", name, 9_000], ["abcde", note, 9_100]];
  const typed = steps.reduce((history, [text, field, at]) => apply(history, text, goesOn(field ?? null, at)), begin(""));
  expect(typed.past).toEqual(["", "abc", "abcd"]);
  const back = undo(undo(typed));
  expect(back.present).toBe("abc");
  expect(redo(back).present).toBe("abcd");
});

test("what is done elsewhere, or after an undo, is a step of its own", () => {
  const box = { matches: () => false } as unknown as Element;
  expect(goesOn(box, 0) || goesOn(box, 1)).toBe(false);
  expect(apply(undo(apply(begin(1), 2)), 3, true)).toEqual({ past: [1], present: 3, future: [] });
});

test("what is saved in another form than it was sent from is a step, and what was changed meanwhile is joined to it", () => {
  const join = (base: string, mine: string, theirs: string): string => `${base}, ${mine}, ${theirs}`;
  const edited = apply(begin("base"), "sent");
  expect(taken(edited, "sent", "sent", join)).toBe(edited);
  expect(taken(edited, "sent", "both", join)).toEqual({ past: ["base", "sent"], present: "both", future: [] });
  expect(taken(apply(edited, "later"), "sent", "sent", join).present).toBe("later");
  expect(taken(apply(edited, "later"), "sent", "both", join)).toEqual({ past: ["base", "sent", "later"], present: "sent, later, both", future: [] });
});
