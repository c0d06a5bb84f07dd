import { expect, test } from "vitest";
import { iconRules, plainTemplate } from "./angular";

test("a template keeps its text, and its bindings leave no traces", () => {
  expect(plainTemplate(`<b>{{ 'device.devices' | translate }}</b><mat-icon class="x">add</mat-icon> {{ctx.x}} \${level}`)).toBe('<b>Devices</b><i class="material-icons x">add</i>  ${level}');
  expect(plainTemplate('<tb-icon style="color: red">mdi:gauge</tb-icon>')).toBe('<i class="material-icons" style="color: red">mdi:gauge</i>');
  expect(iconRules(".a > mat-icon, tb-icon { x } .mat-icon-rtl {}")).toBe(".a > .material-icons, .material-icons { x } .mat-icon-rtl {}");
  expect(iconRules(".a:before { font-family: 'Material Icons'; content: 'warning'; color: red } .b { content: 'x' }")).toBe(".a:before { font-family: 'Material Icons'; content: \"\"; color: red } .b { content: 'x' }");
  expect(plainTemplate(`{{ 'widgets.activity.title' | translate:{count: 1} }}`)).not.toContain("{{");
  expect(plainTemplate("{i18n:alarm.alarms}: ${x}")).toBe("Alarms: ${x}");
  expect(plainTemplate("plain { text }")).toBe("plain { text }");
});
