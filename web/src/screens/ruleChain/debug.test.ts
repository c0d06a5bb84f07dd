import { expect, test } from "vitest";
import { debugChoices, debugOf, debugSettings, minutesLeft } from "./debug";

const NOW = 1_000_000;

test("debug of all messages ends by itself, and what remains is told in minutes", () => {
  const settings = debugSettings("15", NOW);
  expect(settings).toEqual({ failuresEnabled: true, allEnabled: false, allEnabledUntil: NOW + 900_000 });
  expect([debugOf(settings, NOW), minutesLeft(settings, NOW)]).toEqual(["all", 15]);
  expect(minutesLeft(settings, NOW + 840_001)).toBe(1);
  expect([debugOf(settings, NOW + 900_000), minutesLeft(settings, NOW + 900_000)]).toEqual(["failures", undefined]);
  expect(minutesLeft({ allEnabled: true }, NOW)).toBeUndefined();
});

test("a choice is made of what there is, and the present one changes nothing", () => {
  expect(debugChoices("all", "present").map(({ value }) => value)).toEqual(["off", "failures", "5", "15", "60", "all"]);
  expect(debugChoices("off", "present").map(({ value }) => value)).not.toContain("all");
  expect(debugSettings("all")).toBeUndefined();
  expect(debugOf(debugSettings("off", NOW), NOW)).toBe("off");
  expect(debugOf(debugSettings("failures", NOW), NOW)).toBe("failures");
});
