import { expect, test } from "vitest";
import { actionProgram } from "@/sandbox/program";
import { mapAddress, mobileCall, phoneAddress, phoneFrom, placeFrom, readMobile } from "./mobile";

test("what an action asks of a device is read, with the functions that it has", () => {
  const action = readMobile({ type: "takePhoto", saveToGallery: true, processImageFunction: "widgetContext.customDialog.x(imageUrl)", handleErrorFunction: { body: "log(error)", modules: { log: "tb-resource;/api/resource/js_module/tenant/a.js" } }, handleEmptyResultFunction: " ", other: "x" });
  expect(action).toMatchObject({ type: "takePhoto", saveToGallery: true });
  expect(Object.keys(action?.functions ?? {})).toEqual(["processImageFunction", "handleErrorFunction"]);
  expect(action?.functions.handleErrorFunction).toContain("/api/resource/js_module/tenant/a.js");
  expect(readMobile({ type: "selfDestruct" })).toBeUndefined();
});

test("functions are called with what they are about before the rest", () => {
  const action = readMobile({ type: "getLocation", processLocationFunction: "return latitude;", handleNonMobileFallbackFunction: "let entityId = 1;" });
  if (action === undefined) {
    throw new Error("no action");
  }
  expect(mobileCall(action, "processLocationFunction", { latitude: 1 })).toEqual({ body: "return latitude;", names: ["latitude", "longitude", "$event", "widgetContext", "entityId", "entityName", "additionalParams", "entityLabel"], values: { latitude: 1 }, draws: false });
  // It is known to get these two alone, so it may have names of its own.
  expect(mobileCall(action, "handleNonMobileFallbackFunction")?.names).toEqual(["$event", "widgetContext"]);
  expect(mobileCall(action, "handleErrorFunction")).toBeUndefined();
});

test("what the program of a function returns is told, promises and observables too", async () => {
  const run = async (body: string): Promise<unknown> => {
    const told: { kind: string; value?: unknown }[] = [];
    const code = actionProgram(body, true, [], { names: ["latitude", "$event", "widgetContext"], returns: true });
    const program = code.slice(code.indexOf("const modules = ["));
    new Function("ctx", "given", "parent", program)({}, { latitude: 4 }, { postMessage: (message: { kind: string }) => told.push(message) });
    await new Promise((resolve) => setTimeout(resolve));
    return told.find(({ kind }) => kind === "result")?.value;
  };
  expect(await run("return [latitude, 2];")).toEqual([4, 2]);
  expect(await run("return Promise.resolve('+49');")).toBe("+49");
  expect(await run("return { subscribe(next) { next([5, 6]); } };")).toEqual([5, 6]);
  expect(await run("latitude;")).toBeNull();
});

test("places and numbers are taken if they are such", () => {
  expect(placeFrom([48.1, 11.5])).toEqual([48.1, 11.5]);
  for (const wrong of [undefined, "48,11", [48], ["48", "11"], [91, 0], [NaN, 0]]) {
    expect(() => placeFrom(wrong)).toThrow();
  }
  expect(phoneAddress(phoneFrom(" +49 (89) 123-45 "))).toBe("tel:+498912345");
  expect(phoneFrom(112)).toBe("112");
  for (const wrong of ["*#06#", "javascript:1", "", null, "+", "12;ext=3"]) {
    expect(() => phoneFrom(wrong)).toThrow();
  }
  expect(mapAddress("mapLocation", [48, -11])).toBe("https://www.openstreetmap.org/?mlat=48&mlon=-11#map=16/48/-11");
  expect(mapAddress("mapDirection", [48, -11])).toContain("directions?route=%3B48%2C-11");
});
