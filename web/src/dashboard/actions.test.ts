import { expect, test } from "vitest";
import { actionsOf, isOwnAddress, pathAfter, safeUrl } from "./actions";

const entity = { id: { entityType: "DEVICE", id: "7" }, name: "Boiler", latest: new Map(), points: new Map() };

test("declared actions lead to states", () => {
  const config = { actions: { rowClick: [{ type: "unheardOf" }, { name: "open", type: "openDashboardState", targetDashboardStateId: "room", stateEntityParamName: "boiler" }] } };
  const [action, ...others] = actionsOf(config, "rowClick");
  expect(others).toEqual([]);
  const path = [{ id: "default", params: { a: 1 } }];
  if (action === undefined) {
    throw new Error("the action is not read");
  }
  const boiler = { entityId: entity.id, entityName: "Boiler" };
  expect(pathAfter(action, path, entity)).toEqual([...path, { id: "room", params: { a: 1, boiler, targetEntityParamName: "boiler" } }]);
  expect(pathAfter({ ...action, type: "updateDashboardState", paramName: undefined }, path, entity)).toEqual([{ id: "room", params: { a: 1, ...boiler } }]);
});

test("an address that runs code is not opened", () => {
  expect(safeUrl("https://example.org/x")).toBe("https://example.org/x");
  expect(safeUrl("/dashboards")).toBe("/dashboards");
  for (const bad of ["javascript:alert(1)", "data:text/html,x", undefined]) {
    expect(safeUrl(bad)).toBeUndefined();
  }
});

test("code of actions is read as code, and odd sizes of popovers are not taken", () => {
  const config = { actions: { click: [{ type: "customPretty", name: "own", customFunction: { body: "x();" }, customHtml: "<p>", useShowWidgetActionFunction: true, showWidgetActionFunction: "return true;" }, { type: "openDashboardState", openInPopover: true, popoverWidth: "calc(1px)", popoverHeight: "50vh", popoverPreferredPlacement: "rightTop", popoverHideOnClickOutside: false }] } };
  const [own, popover] = actionsOf(config, "click");
  expect(own).toMatchObject({ code: { body: "x();", html: "<p>", css: "" }, showBody: "return true;" });
  expect(popover?.overlay).toMatchObject({ kind: "popover", placement: "right-start", width: "25vw", height: "50vh", closesOutside: false });
  expect(actionsOf({ actions: { click: [{ type: "openDashboardState", openInPopover: true }] } }, "click")[0]?.overlay).toMatchObject({ closesOutside: true });
});

test("only addresses of the page's own origin may replace the page", () => {
  const own = (url: string): boolean => isOwnAddress(url, "https://here.example/dashboards/1");
  expect(["/dashboards", "x?y", "https://here.example/"].every(own)).toBe(true);
  expect(["//evil.example", "/\\evil.example", "/\t/evil.example", "https://here.example.evil.example/", "http://here.example/"].filter(own)).toEqual([]);
});
