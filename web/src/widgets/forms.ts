// The main settings of widget types as declared forms, for the panel beside a widget that is edited.

import type { Json } from "@/dashboard/model";
import type { FormField, FormValues } from "@/ui/form/values";
import { begunWith } from "./beginnings";
import { CONTROL_FORMS } from "./control/forms";
import { FURTHER_CONTROL_FORMS } from "./control/furtherForms";
import { CARD_FORMS } from "./form/cards";
import { CHART_FORMS } from "./form/charts";
import { TABLE_FORMS } from "./form/tables";
import { HOME_FORMS } from "./home/forms";
import { INDICATOR_FORMS } from "./indicator/forms";
import { INPUT_FORMS } from "./input/forms";
import { LATEST_CHART_FORMS } from "./latestChart/forms";
import { OLD_MAP_FORMS } from "./map/form/oldMaps";

/** What can be set for the types whose names fit. */
export interface WidgetForm {
  names: RegExp;
  /** Fields of `config.settings`. */
  settings: readonly FormField[];
  /** What the settings begin with, of types that say so themselves. */
  begin?: Json;
  /** Fields of `config` itself. */
  config?: readonly FormField[];
  /** Fields of the `settings` of each of its keys. */
  keys?: readonly FormField[];
  /** Fields of the `settings` of each key whose latest value stands beside a course. */
  latestKeys?: readonly FormField[];
  /** What a new key begins with. */
  newKey?: Json;
  /** Brings the rest of a key in line with its settings. */
  settle?: (key: Json) => Json;
}

const FORMS: readonly WidgetForm[] = [
  ...CONTROL_FORMS, ...FURTHER_CONTROL_FORMS, ...INPUT_FORMS, ...HOME_FORMS, ...CHART_FORMS, ...LATEST_CHART_FORMS, ...TABLE_FORMS, ...INDICATOR_FORMS, ...CARD_FORMS, ...OLD_MAP_FORMS,
];

/** Returns the declared form of a widget type; none where only JSON says more. */
export function formOf(fqn: string): WidgetForm | undefined {
  const name = fqn.replace(/^system\./, "");
  return FORMS.find((form) => form.names.test(name));
}

/** Returns settings with what the form's type begins with where nothing is stored. */
export function withBeginnings({ begin }: WidgetForm, settings: FormValues): FormValues {
  return begin === undefined ? settings : begunWith(begin, settings);
}
