// Loading and saving entities of kinds whose stored form differs from what their form shows.

import { api } from "@/api/client";
import type { Entity } from "@/api/types";
import { completeAlarmRule } from "./forms/alarmRule";
import { completeField } from "./forms/calculatedField";
import { completeDeviceProfile } from "./forms/profiles";
import type { FormValues } from "@/ui/form/values";
import type { EntityKind } from "./kinds";

const COMPLETE: Record<string, (values: FormValues) => FormValues> = {
  ALARM_RULE: completeAlarmRule,
  CALCULATED_FIELD: completeField,
  DEVICE_PROFILE: completeDeviceProfile,
  QUEUE: (values) => ({ ...values, topic: values["topic"] || `tb_rule_engine.${String(values["name"]).toLowerCase()}` }),
  USER: (values) => ({ authority: "CUSTOMER_USER", ...values }),
};

/** What a request to save needs besides the entity. */
const QUERY: Record<string, Record<string, string>> = { QUEUE: { serviceType: "TB_RULE_ENGINE" }, USER: { sendActivationMail: "false" } };

export function formValues(kind: EntityKind, entity: Entity): FormValues {
  const configuration = entity["configuration"] as { clearRule?: unknown } | undefined;
  return kind.type === "ALARM_RULE" ? { ...entity, hasClearRule: (configuration?.clearRule ?? null) !== null } : entity;
}

export async function saveEntity(kind: EntityKind, values: FormValues): Promise<Entity> {
  const { owner: _owner, ...stored } = COMPLETE[kind.type]?.(values) ?? values;
  return await api.post<Entity>(kind.one, stored, QUERY[kind.type]);
}
