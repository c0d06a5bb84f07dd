import { expect, test } from "vitest";
import { actionsOf, pathAfter, safeUrl } from "./actions";

const entity = { id: { entityType: "DEVICE", id: "7" }, name: "Boiler", latest: new Map(), points: new Map() };

test("declared actions lead to states, code is left out", () => {
  const config = { actions: { rowClick: [{ type: "custom", customFunction: "alert(1)" }, { name: "open", type: "openDashboardState", targetDashboardStateId: "room", stateEntityParamName: "boiler" }] } };
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
