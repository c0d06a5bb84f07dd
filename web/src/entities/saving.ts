// Loading and saving entities of kinds whose stored form differs from what their form shows.

import { api } from "@/api/client";
import { currentClaims } from "@/api/session";
import type { Entity } from "@/api/types";
import { hasTarget } from "./columns";
import { completeAlarmRule } from "./forms/alarmRule";
import { changeSources, withSource } from "./forms/argument";
import { completeField } from "./forms/calculatedField";
import { ALARMS, shownAlarms } from "./forms/profileAlarms";
import { completeDeviceProfile } from "./forms/profiles";
import { completeQueue, completeTenantProfile } from "./forms/system";
import { isObject, valueAt, withValue, type FormValues } from "@/ui/form/values";
import type { EntityKind } from "./kinds";

const COMPLETE: Record<string, (values: FormValues, tenantId?: string) => FormValues> = {
  ALARM_RULE: completeAlarmRule,
  CALCULATED_FIELD: completeField,
  DEVICE_PROFILE: completeDeviceProfile,
  QUEUE: completeQueue,
  TENANT_PROFILE: completeTenantProfile,
  WIDGET_TYPE: completeWidgetType,
  USER: (values) => ({ authority: "CUSTOMER_USER", ...values }),
};

const NEW_CODE = {
  templateHtml: '<div class="card"><span class="name"></span><strong class="value"></strong></div>',
  templateCss: ".card { display: grid; gap: 8px; padding: 12px; }\n.value { font-size: 28px; }",
  controllerScript:
    "self.onInit = function () {\n  self.onDataUpdated();\n};\n\nself.onDataUpdated = function () {\n  const first = self.ctx.data[0];\n" +
    "  if (first === undefined || first.data.length === 0) {\n    return;\n  }\n  const [card] = self.ctx.$container;\n" +
    "  card.querySelector('.name').textContent = first.dataKey.label;\n  card.querySelector('.value').textContent = first.data[first.data.length - 1][1];\n};\n",
};

/** A new widget type begins with code that shows its first value. */
function completeWidgetType(values: FormValues): FormValues {
  const descriptor = (values["descriptor"] ?? {}) as FormValues;
  return { ...values, descriptor: { sizeX: 6, sizeY: 4, resources: [], defaultConfig: "{}", ...NEW_CODE, ...descriptor } };
}

/** What a request to save needs besides the entity. */
const QUERY: Record<string, Record<string, string>> = { QUEUE: { serviceType: "TB_RULE_ENGINE" }, USER: { sendActivationMail: "false" } };

export function formValues(kind: EntityKind, entity: Entity): FormValues {
  const alarms = valueAt(entity, ALARMS);
  if (kind.type === "DEVICE_PROFILE" && alarms !== undefined) {
    return withValue(entity, ALARMS, shownAlarms(alarms));
  }
  const configuration = entity["configuration"];
  if (!hasTarget(kind.type) || !isObject(configuration)) {
    return entity;
  }
  const shown = { ...entity, configuration: changeSources(configuration, withSource, withSource) };
  return kind.type === "ALARM_RULE" ? { ...shown, hasClearRule: (configuration["clearRule"] ?? null) !== null } : shown;
}

/** Returns the values of a form as the server takes them. */
export function storedForm(kind: EntityKind, values: FormValues): FormValues {
  const { owner: _owner, ...stored } = COMPLETE[kind.type]?.(values, currentClaims()?.tenantId) ?? values;
  return stored;
}

export async function saveEntity(kind: EntityKind, values: FormValues): Promise<Entity> {
  return await api.post<Entity>(kind.one, storedForm(kind, values), QUERY[kind.type]);
}
