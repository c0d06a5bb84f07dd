import { expect, test } from "vitest";
import { plainTemplate } from "./angular";

test("a template keeps its text, and its bindings leave no traces", () => {
  expect(plainTemplate(`<b>{{ 'device.devices' | translate }}</b><mat-icon class="x">add</mat-icon> {{ctx.x}} \${level}`)).toBe("<b>Devices</b>  ${level}");
  expect(plainTemplate(`{{ 'widgets.activity.title' | translate:{count: 1} }}`)).not.toContain("{{");
  expect(plainTemplate("{i18n:alarm.alarms}: ${x}")).toBe("Alarms: ${x}");
  expect(plainTemplate("plain { text }")).toBe("plain { text }");
});
