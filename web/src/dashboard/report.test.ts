import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { countsOf, importReport, RUNNING } from "./report";

const widget = (typeFullFqn: string, config: object = {}) => ({ typeFullFqn, config: { title: typeFullFqn, ...config } });
const key = (more: object) => ({ datasources: [{ type: "entity", dataKeys: [{ name: "t", type: "timeseries", label: "T", ...more }] }] });

test("a report tells what is native, nearly so, code, or not drawable", () => {
  const report = importReport({
    widgets: {
      plain: widget("system.cards.value_card"),
      old: widget("system.charts.basic_timeseries"),
      counted: widget("system.cards.simple_card", key({ usePostProcessing: true, postFuncBody: "return value * 2;" })),
      unused: widget("system.cards.value_card", key({ usePostProcessing: false, postFuncBody: "return 1;" })),
      clicked: widget("system.cards.value_card", { actions: { cardClick: [{ name: "go", type: "custom", customFunction: "widgetContext.attributeService.saveEntityAttributes(); fetch('x');" }] } }),
      strange: widget("system.gateway_widgets.gateway_connector"),
      own: widget("tenant.mine"),
      odd: widget("system.cards.value_card", { showTitleIcon: true, titleIcon: "nowhere" }),
    },
  }, (icon) => icon === "nowhere");
  const by = new Map(report.map((one) => [one.id, one]));
  const verdicts = Object.fromEntries(report.map(({ id, verdict }) => [id, verdict]));
  expect(verdicts).toEqual({ plain: "native", old: "approximated", counted: "code", unused: "native", clicked: "code", strange: "unknown", own: "code", odd: "approximated" });
  expect(by.get("counted")?.code).toEqual([{ where: "dataKeys › T › postFuncBody", runs: true, asks: [] }]);
  expect(by.get("clicked")?.code[0]).toMatchObject({ where: "actions › cardClick › go › customFunction", asks: ["attributes of entities", "the network"] });
  expect(countsOf(report)).toEqual({ native: 2, approximated: 2, code: 3, unknown: 1 });
  expect(report[0]?.id, "what needs a look comes first").toBe("strange");
});

test("only functions that somebody runs are said to run", () => {
  const root = join(import.meta.dirname, "..");
  const files = readdirSync(root, { recursive: true }).map(String).filter((name) => /\.(tsx?|js)$/.test(name) && !/report|\.test\.|schema/.test(name));
  const source = files.map((name) => readFileSync(join(root, name), "utf8")).join("\n");
  expect([...RUNNING].filter((name) => !source.includes(name))).toEqual([]);
});
