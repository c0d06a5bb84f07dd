import { expect, test } from "vitest";
import { valueAt, withValue, type FormField, type FormValues } from "@/ui/form/values";
import { formOf } from "../../forms";
import { readMap } from "../model";

/** A type of each sort, under the names that dashboards have. */
const TYPES = ["google_maps", "openstreetmap", "here_map", "tencent_maps", "image_map", "route_map", "route_map_openstreetmap", "route_map_tencent_maps", "test"].map((name) => `system.maps_v2.${name}`);
const KEYS = ["latitude", "longitude", "xPos", "yPos", "perimeter", "other"].map((name) => ({ name, label: name, type: "timeseries" }));
const offered = (fields: readonly FormField[], values: FormValues): FormField[] => fields.filter((field) => field.name !== "" && (field.when?.(values) ?? true));

function another(field: FormField, before: unknown): unknown {
  switch (field.type) {
    case "boolean":
      return !(before ?? field.otherwise ?? false);
    case "number":
      return before === 9 ? 10 : 9;
    case "select":
      return field.options?.map((option) => (typeof option === "string" ? option : option.value)).findLast((value) => value !== (before ?? field.otherwise)) ?? "other";
    case "texts":
      return ["tb-image;/api/images/tenant/one"];
    case "color":
      return "#123456";
    case "code":
      return "return 1;";
    default:
      return /KeyName$/.test(field.name) ? "other" : field.name === "defaultCenterPosition" ? "1,2" : "https://tiles.example/{z}/{x}/{y}";
  }
}

/** What a map is drawn by, as text. */
const drawn = (fqn: string, settings: FormValues): string => JSON.stringify(readMap(fqn, { settings, datasources: [{ type: "entity", entityAliasId: "a", dataKeys: KEYS }] }), (_, value: unknown) => (value instanceof Set ? [...value] : value));

test("each setting of an old map that is offered changes what is drawn", () => {
  for (const fqn of [...TYPES, "system.input_widgets.markers_placement_openstreetmap", "system.input_widgets.markers_placement_image_map"]) {
    const fields = formOf(fqn)?.settings ?? [];
    expect(fields.length, fqn).toBeGreaterThan(30);
    const working = new Set<string>();
    const seen = new Set<string>();
    // Some hold only with others: all switches on, or off, with each of the providers.
    for (const on of [true, false]) {
      for (const provider of ["openstreet-map", "google-map", "here", "tencent-map", "image-map"]) {
        let values: FormValues = { provider, imageEntityAlias: "Pumps" };
        for (const { name, type } of fields.filter((field) => field.type === "boolean" || field.type === "code")) {
          values = withValue(values, name, type === "code" ? "return 2;" : /^show|^useDefault/.test(name) || (on && name !== "useMarkerImageFunction"));
        }
        for (const image of [{}, { useMarkerImageFunction: true }, { markerImage: "tb-image;/api/images/tenant/marker" }]) {
          const base = { ...values, ...image };
          const before = drawn(fqn, base);
          for (const field of offered(fields, base)) {
            seen.add(field.name);
            if (!working.has(field.name) && before !== drawn(fqn, withValue(base, field.name, another(field, valueAt(base, field.name))))) {
              working.add(field.name);
            }
          }
        }
      }
    }
    expect([...seen].filter((name) => !working.has(name)), fqn).toEqual([]);
  }
});

test("a type of one provider begins with it, and the stored one counts", () => {
  const provider = (name: string): FormField | undefined => formOf(`system.${name}`)?.settings.find((field) => field.name === "provider");
  expect(["maps_v2.google_maps", "maps_v2.image_map", "input_widgets.markers_placement_google_maps", "maps_v2.openstreetmap"].map((name) => provider(name)?.otherwise)).toEqual(["google-map", "image-map", "google-map", "openstreet-map"]);
  expect(readMap("system.maps_v2.image_map", { settings: {} }).kind).toBe("image");
  expect(readMap("system.maps_v2.image_map", { settings: { provider: "here" } }).kind).toBe("geo");
});
