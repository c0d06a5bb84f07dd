// The form of a tenant's own type of widget, made of what its descriptor declares.

import { list, text, type Json } from "@/dashboard/json";
import type { WidgetForm } from "./forms";
import { schemaProperties } from "./oldSchema";
import { propertyBeginnings, propertyFields } from "./symbol/symbolForm";

/** Returns the properties that a descriptor declares for a purpose, such as `settings`. Those of old types follow from a schema. */
function declared(descriptor: Json, purpose: string): unknown[] {
  const own = list(descriptor[`${purpose}Form`]);
  // A form that a program draws itself is none that can be drawn here.
  return own.length > 0 || text(descriptor[`${purpose}Directive`]) !== undefined ? own : schemaProperties(descriptor[`${purpose}Schema`]);
}

/** Returns the form that a descriptor declares; none where it declares nothing. */
export function formOfType(descriptor: Json): WidgetForm | undefined {
  const settings = declared(descriptor, "settings");
  const keys = declared(descriptor, "dataKeySettings");
  const form = { settings: propertyFields(settings), keys: propertyFields(keys), latestKeys: propertyFields(declared(descriptor, "latestDataKeySettings")) };
  return Object.values(form).every((fields) => fields.length === 0) ? undefined : { names: /^/, ...form, begin: propertyBeginnings(settings), newKey: { settings: propertyBeginnings(keys) } };
}
