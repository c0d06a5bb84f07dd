// The form of a tenant's own type of widget, made of what its descriptor declares.

import { list, type Json } from "@/dashboard/json";
import type { WidgetForm } from "./forms";
import { propertyBeginnings, propertyFields } from "./symbol/symbolForm";

/** Returns the form that a descriptor declares; none where it declares nothing. */
export function formOfType(descriptor: Json): WidgetForm | undefined {
  const properties = (name: string): unknown[] => list(descriptor[name]);
  const keys = properties("dataKeySettingsForm");
  const form = { settings: propertyFields(properties("settingsForm")), keys: propertyFields(keys), latestKeys: propertyFields(properties("latestDataKeySettingsForm")) };
  return Object.values(form).every((fields) => fields.length === 0) ? undefined : { names: /^/, ...form, newKey: { settings: propertyBeginnings(keys) } };
}
