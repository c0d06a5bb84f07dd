// Where the forms of calculated fields and alarm rules have scripts, and with which arguments these can be tried.

import { valueAt, type FormValues } from "@/ui/form/values";

/** One expression or script of a form. */
export interface FormScript {
  path: string;
  label: string;
  /** A mathematical expression, or a TBEL script. */
  language: "MATH" | "TBEL";
}

const object = (value: unknown): FormValues => (typeof value === "object" && value !== null ? (value as FormValues) : {});

export function scriptsOf(type: string, values: FormValues): FormScript[] {
  if (type === "ALARM_RULE") {
    const severities = Object.keys(object(valueAt(values, "configuration.createRules")));
    const places = [
      ...severities.map((severity) => ({ at: `configuration.createRules.${severity}`, label: severity })),
      ...(values["hasClearRule"] === true ? [{ at: "configuration.clearRule", label: "Clears" }] : []),
    ];
    return places
      .filter(({ at }) => valueAt(values, `${at}.condition.expression.type`) === "TBEL")
      .map(({ at, label }) => ({ path: `${at}.condition.expression.expression`, label, language: "TBEL" }));
  }
  if (type !== "CALCULATED_FIELD") {
    return [];
  }
  const kind = values["type"];
  if (kind === "SIMPLE") {
    return [{ path: "configuration.expression", label: "Expression", language: "MATH" }];
  }
  if (kind === "SCRIPT" || (kind === "PROPAGATION" && valueAt(values, "configuration.applyExpressionToResolvedArguments") === true)) {
    return [{ path: "configuration.expression", label: "Script", language: "TBEL" }];
  }
  return [];
}

const ROLLING_POINTS = 3;

/** Reads a default value as the server does: numbers, true and false have their type. */
function defaultOf(text: unknown): unknown {
  const trimmed = typeof text === "string" ? text.trim() : "";
  return trimmed === "true" || trimmed === "false" ? trimmed === "true" : trimmed !== "" && Number.isFinite(Number(trimmed)) ? Number(trimmed) : (text ?? 0);
}

/** Makes arguments of the declared kinds, to be changed by hand. */
export function argumentsOf(values: FormValues, now: number): Record<string, FormValues> {
  return Object.fromEntries(
    Object.entries(object(valueAt(values, "configuration.arguments"))).map(([name, declared]): [string, FormValues] => {
      if (valueAt(declared, "refEntityKey.type") !== "TS_ROLLING") {
        return [name, { type: "SINGLE_VALUE", ts: now, value: defaultOf(valueAt(declared, "defaultValue")) }];
      }
      const window = Number(valueAt(declared, "timeWindow")) || 3_600_000;
      const points = Array.from({ length: ROLLING_POINTS }, (_, n) => ({ ts: now - Math.round((window * (ROLLING_POINTS - 1 - n)) / ROLLING_POINTS), value: 0 }));
      return [name, { type: "TS_ROLLING", timeWindow: { startTs: now - window, endTs: now }, values: points }];
    }),
  );
}

/** Puts the arguments of a debug event, which have no types, in the place of those of the same name. */
export function withLast(made: Record<string, FormValues>, last: FormValues): Record<string, FormValues> {
  return Object.fromEntries(
    Object.entries(made).map(([name, argument]): [string, FormValues] => {
      const known = object(last[name]);
      if (argument["type"] === "TS_ROLLING") {
        return [name, Array.isArray(known["values"]) ? { ...argument, values: known["values"] } : argument];
      }
      return [name, "value" in known ? { ...argument, ts: known["ts"] ?? argument["ts"], value: known["value"] } : argument];
    }),
  );
}
