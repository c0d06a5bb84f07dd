import { afterEach, expect, test, vi } from "vitest";
import { keepDraft } from "./keptDraft";

afterEach(() => vi.unstubAllGlobals());

test("where the storage is full the older draft goes, too", () => {
  const kept = new Map<string, string>();
  const most = 20;
  vi.stubGlobal("localStorage", {
    setItem: (key: string, text: string) => {
      if (text.length > most) {
        throw new DOMException("full", "QuotaExceededError");
      }
      kept.set(key, text);
    },
    removeItem: (key: string) => kept.delete(key),
  });
  keepDraft("chain", { a: 1 });
  expect(kept.get("chain")).toBe('{"a":1}');
  keepDraft("chain", { a: "x".repeat(most) });
  expect([...kept]).toEqual([]);
});
