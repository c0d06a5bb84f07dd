import { beforeEach, expect, test, vi } from "vitest";
import { isSearchWished, keepSearchWish, takeSearchWish } from "./searchWish";

let page: EventTarget;

/** Presses a key; true if the browser was kept from doing something of its own. */
function press(key: string, more: Partial<KeyboardEvent> = {}): boolean {
  return !page.dispatchEvent(Object.assign(new Event("keydown", { cancelable: true }), { key, ctrlKey: true, metaKey: false, altKey: false, shiftKey: false, ...more }));
}

beforeEach(() => {
  page = new EventTarget();
  vi.stubGlobal("addEventListener", page.addEventListener.bind(page));
  vi.stubGlobal("removeEventListener", page.removeEventListener.bind(page));
  vi.stubGlobal("location", { pathname: "/home" });
});

test("Ctrl+K before the search is there is kept for it, once", () => {
  keepSearchWish();
  keepSearchWish();
  expect([isSearchWished(), press("k"), isSearchWished()]).toEqual([false, true, true]);
  takeSearchWish();
  // The search has keys of its own from then on.
  expect([isSearchWished(), press("k"), isSearchWished()]).toEqual([false, false, false]);
});

test("what is typed after it is kept, too, and Escape takes all of it back", () => {
  keepSearchWish();
  const type = (keys: string[]): boolean[] => keys.map((key) => press(key, { ctrlKey: false }));
  expect(type(["x"])).toEqual([false]);
  press("K", { ctrlKey: false, metaKey: true });
  expect(type(["p", "u", "n", "Backspace", "m", "p", "Tab"])).toEqual([true, true, true, false, true, true, false]);
  expect(takeSearchWish()).toBe("pump");
  keepSearchWish();
  press("k");
  type(["p", "Escape", "q"]);
  expect([isSearchWished(), takeSearchWish()]).toEqual([false, ""]);
});

test("other keys are no wish, nor is any where a dashboard stands alone", () => {
  keepSearchWish();
  expect([press("k", { ctrlKey: false }), press("k", { shiftKey: true }), press("k", { altKey: true }), press("j"), isSearchWished()]).toEqual([false, false, false, false, false]);
  vi.stubGlobal("location", { pathname: "/dashboard/1" });
  expect([press("k"), isSearchWished()]).toEqual([false, false]);
});

test("keys that compose a character are none of what is typed", () => {
  keepSearchWish();
  press("k");
  expect([press("n", { ctrlKey: false, isComposing: true }), press("k", { isComposing: true })]).toEqual([false, false]);
  expect(takeSearchWish()).toBe("");
});
