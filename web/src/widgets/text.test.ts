import { expect, test } from "vitest";
import type { EntityValues } from "@/dashboard/source";
import { readDashboard } from "@/dashboard/model";
import { fillPattern, shownValue } from "./text";

test("values have their decimals and units, and text stays", () => {
  expect(shownValue("21.456", { decimals: 1, units: "°C" })).toBe("21.5 °C");
  expect(shownValue("21.0", { decimals: 2, units: undefined })).toBe("21");
  expect(shownValue("open", { decimals: 1, units: undefined })).toBe("open");
});

test("patterns are filled from the entity", () => {
  const keys = readDashboard({ widgets: { w: { config: { datasources: [{ dataKeys: [{ name: "t", label: "Temp", type: "timeseries", decimals: 0 }] }] } } } }).widgets.get("w")?.datasources[0]?.dataKeys ?? [];
  const entity: EntityValues = { id: { entityType: "DEVICE", id: "1" }, name: "Boiler", latest: new Map([["TIME_SERIES/t", { ts: 1, value: "21.46" }]]), points: new Map() };
  expect(fillPattern("${entityName}: ${Temp:1}, ${t}, ${none}.", entity, keys)).toBe("Boiler: 21.5, 21, .");
});
