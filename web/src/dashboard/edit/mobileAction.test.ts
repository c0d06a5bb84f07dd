import { expect, test } from "vitest";
import { readMobile } from "../mobile";
import { MOBILE_TYPES, settleAction, settleMobile } from "./mobileAction";

const NAMED = { id: "1", name: "Photo", icon: "send", buttonColor: "#123456" };

test("another type of action has its own fields, and what is unheard of stays", () => {
  const before = { ...NAMED, type: "openDashboardState", targetDashboardStateId: "two", setEntityId: true, openInPopover: true, popoverStyle: {}, custom: 1 };
  expect(settleAction({ ...before, type: "mobileAction" }, before)).toEqual({ ...NAMED, type: "mobileAction", custom: 1 });
  expect(settleAction({ ...before, type: "updateDashboardState" }, before)).toEqual({ ...NAMED, type: "updateDashboardState", targetDashboardStateId: "two", setEntityId: true, custom: 1 });
  // A change of anything else changes nothing besides.
  expect(settleAction({ ...before, name: "New" }, before)).toEqual({ ...before, name: "New" });
  // Nobody knows what types of elsewhere store.
  expect(settleAction({ ...before, type: "placeMapItem" }, before)).toEqual({ ...before, type: "placeMapItem" });
});

test("a mobile action begins with what ThingsBoard stores for its type", () => {
  const before = { ...NAMED, type: "mobileAction" };
  const photo = settleAction({ ...before, mobileAction: { type: "takePhoto" } }, before)["mobileAction"];
  expect(Object.keys(photo as object).sort()).toEqual(["handleEmptyResultFunction", "handleErrorFunction", "handleNonMobileFallbackFunction", "processImageFunction", "saveToGallery", "type"]);
  expect(photo).toMatchObject({ type: "takePhoto", saveToGallery: false });
  expect(settleMobile({ type: "deviceProvision" })).toMatchObject({ provisionType: "auto", handleProvisionSuccessFunction: expect.stringContaining("deviceName") });
  for (const { type } of MOBILE_TYPES) {
    const made = settleMobile({ type });
    expect(readMobile(made)?.type).toBe(type);
    // Examples can be run as they are.
    for (const body of Object.values(readMobile(made)?.functions ?? {})) {
      expect(() => new Function(body)).not.toThrow();
    }
  }
});

test("another mobile type keeps common functions and drops those of the other one", () => {
  const before = { type: "mobileAction", mobileAction: { type: "takePhoto", processImageFunction: "mine(imageUrl)", saveToGallery: true, handleErrorFunction: { body: "log(error)", modules: {} }, own: 1 } };
  const after = settleAction({ ...before, mobileAction: { ...before.mobileAction, type: "getLocation" } }, before)["mobileAction"];
  expect(after).toMatchObject({ type: "getLocation", handleErrorFunction: { body: "log(error)", modules: {} }, own: 1, processLocationFunction: expect.stringContaining("latitude") });
  expect(after).not.toHaveProperty("processImageFunction");
  expect(after).not.toHaveProperty("saveToGallery");
  const screenshot = settleAction({ ...before, mobileAction: { ...before.mobileAction, type: "takeScreenshot" } }, before)["mobileAction"];
  expect(screenshot).toMatchObject({ processImageFunction: "mine(imageUrl)", saveToGallery: true });
});
