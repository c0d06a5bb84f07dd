import { expect, test } from "vitest";
import { ApiError, errorFrom } from "@/api/errors";
import german from "@/i18n/de.json";
import { adviceOn, mayPass, messageOf } from "./errors";

const said = (status: number, text: string): [string, string | undefined] => {
  const error = errorFrom(status, text);
  return [messageOf(error), adviceOn(error)];
};

test("the words of the server come first, and what to do about each status after them", () => {
  const body = (message: string, errorCode: number): string => JSON.stringify({ message, errorCode });
  expect(said(403, body("You don't have permission to perform this operation!", 20))).toEqual(["You don't have permission to perform this operation!", "Ask your administrator if you need to do this."]);
  expect(said(403, body("Devices limit reached", 41))[1]).toContain("raise the limit");
  expect(said(404, body("Device with id [1] is not found", 32))[1]).toContain("deleted meanwhile");
  expect(said(409, body("Device was already changed by someone else", 35))[1]).toContain("Load the page again");
  expect(said(429, body("Too many requests for current tenant!", 33))[1]).toContain("Wait a moment");
  // A wrong value is named by the server itself.
  expect(said(400, body("Device name should be specified!", 31))).toEqual(["Device name should be specified!", undefined]);
});

test("an answer without words, or the page of a proxy, gets words of its status", () => {
  expect(said(502, "<html><body>502 Bad Gateway</body></html>")).toEqual(["The server does not answer at the moment.", "The server is starting, or has too much to do. Try again in a moment."]);
  expect(said(500, "")[0]).toBe("The server has failed.");
  expect(said(599, "null")).toEqual(["The server has failed.", expect.stringContaining("Try again.")]);
  expect(said(418, "")[0]).toBe("The server did not accept this.");
});

test("parts of the page that do not come are told in plain words, and own messages as they are", () => {
  expect(messageOf(new TypeError("Failed to fetch dynamically imported module: http://x/assets/A-1.js"))).toContain("A part of the page could not be loaded");
  expect([messageOf(new Error("This file is no JSON.")), adviceOn(new Error("x")), messageOf("plain")]).toEqual(["This file is no JSON.", undefined, "plain"]);
});

test("trying again is offered where it may help", () => {
  expect([0, 400, 403, 404, 429, 500, 503].map((status) => mayPass(new ApiError(status, "")))).toEqual([true, false, false, false, true, true, true]);
});

test("all words of statuses, and all advice, have their German", () => {
  const english = [0, 400, 401, 403, 404, 409, 413, 429, 500, 502, 503, 504].flatMap((status) => said(status, "")).filter((text) => text !== undefined && text !== "");
  expect(english.filter((text) => !(text !== undefined && text in german))).toEqual([]);
});
