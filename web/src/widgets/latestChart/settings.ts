// The settings of shares, by the names of today whichever type they are of.

import { number, object, type Json } from "@/dashboard/json";

/** What old types call otherwise; what they store under the names of today stays. */
const OLDER: readonly [names: RegExp, read: (settings: Json) => Json][] = [
  [
    /charts\.pie$/,
    (settings) => {
      const [radius, stroke] = [number(settings["radius"]), object(settings["stroke"])];
      return {
        // A share of the room; more than the whole of it were pixels of another drawing.
        radius: radius === undefined || radius > 1 ? 100 : radius * 100,
        innerRadius: (number(settings["innerRadius"]) ?? 0) * 100,
        showLabel: settings["showLabels"] === true,
        borderWidth: stroke["width"],
        borderColor: stroke["color"],
        showLegend: object(settings["legend"])["show"],
      };
    },
  ],
  [/charts\.doughnut_chart_js$/, (settings) => ({ showLegend: object(settings["legend"])["display"], legendLabelColor: object(settings["legend"])["labelsFontColor"] })],
];

/** Returns the settings of a type of shares by the names of today. */
export function latestSettings(fqn: string, settings: Json): Json {
  const read = OLDER.find(([names]) => names.test(fqn))?.[1];
  return read === undefined ? settings : { ...settings, ...read(settings) };
}
