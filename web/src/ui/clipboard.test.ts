import { afterEach, expect, test, vi } from "vitest";
import { copiedText, copyText } from "./clipboard";

afterEach(() => vi.unstubAllGlobals());

const page = (isSecureContext: boolean, clipboard?: object): void => {
  vi.stubGlobal("navigator", { clipboard });
  vi.stubGlobal("isSecureContext", isSecureContext);
};

test("a page without a clipboard pastes what was copied in it", async () => {
  page(false);
  expect(await copiedText()).toBe("");
  expect(await copyText("one")).toBe(false);
  expect(await copiedText()).toBe("one");
});

test("the clipboard of the browser comes first, and one that may not be read is made up for", async () => {
  let held = "";
  page(true, { writeText: (text: string) => ((held = text), Promise.resolve()), readText: () => Promise.resolve(`${held} elsewhere`) });
  expect(await copyText("two")).toBe(true);
  expect(await copiedText()).toBe("two elsewhere");
  page(true, { readText: () => Promise.reject(new Error("denied")) });
  expect(await copiedText()).toBe("two");
});
