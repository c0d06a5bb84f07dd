// The forms of the kinds of entities, apart from the declarations that the menu needs, so that they load with the first form.

import type { FormField } from "@/ui/form/values";
import { ALARM_RULE_FORM } from "./forms/alarmRule";
import { ASSET_PROFILE_FORM, DEVICE_PROFILE_FORM } from "./forms/profiles";
import { CALCULATED_FIELD_FORM } from "./forms/calculatedField";
import { QUEUE_FORM, TENANT_PROFILE_FORM } from "./forms/system";
import { ASSET_FORM, CUSTOMER_FORM, DASHBOARD_FORM, DEVICE_FORM, ENTITY_VIEW_FORM, OTA_PACKAGE_FORM, TENANT_FORM, USER_FORM, WIDGET_TYPE_FORM, WIDGETS_BUNDLE_FORM } from "./forms/things";
import type { EntityKind } from "./kinds";

const FORMS: Record<string, readonly FormField[]> = {
  ALARM_RULE: ALARM_RULE_FORM,
  ASSET: ASSET_FORM,
  ASSET_PROFILE: ASSET_PROFILE_FORM,
  CALCULATED_FIELD: CALCULATED_FIELD_FORM,
  CUSTOMER: CUSTOMER_FORM,
  DASHBOARD: DASHBOARD_FORM,
  DEVICE: DEVICE_FORM,
  DEVICE_PROFILE: DEVICE_PROFILE_FORM,
  ENTITY_VIEW: ENTITY_VIEW_FORM,
  OTA_PACKAGE: OTA_PACKAGE_FORM,
  QUEUE: QUEUE_FORM,
  TENANT: TENANT_FORM,
  TENANT_PROFILE: TENANT_PROFILE_FORM,
  USER: USER_FORM,
  WIDGET_TYPE: WIDGET_TYPE_FORM,
  WIDGETS_BUNDLE: WIDGETS_BUNDLE_FORM,
};

/** Returns the fields of a kind: all of them for a new entity, else those that can still be changed. */
export function formOf(kind: EntityKind, isNew: boolean): readonly FormField[] {
  return (FORMS[kind.type] ?? kind.fields).filter((field) => isNew || field.once !== true);
}
