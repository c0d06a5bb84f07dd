// What the toolbar of a dashboard shows, its logo and its styles.

import { ColorInput, Select, Stack, Switch, Textarea } from "@mantine/core";
import type { ReactElement } from "react";
import { changeSettings } from "@/dashboard/edit/layouts";
import { object, text, type Json } from "@/dashboard/model";
import { t } from "@/i18n";
import { ImageField } from "@/ui/form/ImageField";
import type { DashboardEditor } from "../editor";

export function ToolbarTab({ editor }: { editor: DashboardEditor }): ReactElement {
  const { document, model, edit } = editor;
  const { settings } = model;
  const stored = object(document["settings"]);
  const change = (next: Json): void => edit((before) => changeSettings(before, next));
  const flag = (label: string, name: string, checked: boolean): ReactElement => <Switch label={label} checked={checked} onChange={(event) => change({ [name]: event.currentTarget.checked })} />;
  return (
    <Stack maw={400} gap="sm">
      {flag(t("Hide the toolbar"), "hideToolbar", settings.hideToolbar)}
      {!settings.hideToolbar && flag(t("Toolbar always open"), "toolbarAlwaysOpen", !settings.isToolbarFolded)}
      {flag(t("Choice of entities"), "showEntitiesSelect", settings.showEntitiesSelect)}
      {flag(t("Values of filters"), "showFilters", settings.showFilters)}
      {flag(t("Time window"), "showDashboardTimewindow", settings.showTimeWindow)}
      {flag(t("Choice of other dashboards"), "showDashboardsSelect", settings.showDashboardsSelect)}
      {flag(t("Export"), "showDashboardExport", settings.showExport)}
      {flag(t("Title in a color of its own"), "showTitle", settings.showTitle)}
      {settings.showTitle && <ColorInput label={t("Color of the title")} value={settings.titleColor ?? ""} onChange={(titleColor) => change({ titleColor })} eyeDropperButtonProps={{ "aria-label": t("Pick a color from the screen") }} />}
      {flag(t("Logo"), "showDashboardLogo", stored["showDashboardLogo"] === true)}
      {stored["showDashboardLogo"] === true && (
        <ImageField label={t("Picture of the logo")} value={text(stored["dashboardLogoUrl"]) ?? ""} onChange={(dashboardLogoUrl) => change({ dashboardLogoUrl })} />
      )}
      <Select
        label={t("Opening a state")}
        allowDeselect={false}
        data={[{ value: "entity", label: t("goes one deeper, with a way back") }, { value: "default", label: t("replaces the one before") }]}
        value={settings.isFlat ? "default" : "entity"}
        onChange={(stateControllerId) => change({ stateControllerId })}
      />
      <Textarea label={t("Styles (CSS)")} description={t("They hold within this dashboard alone.")} autosize minRows={3} maxRows={16} ff="monospace" value={settings.css} onChange={(event) => change({ dashboardCss: event.currentTarget.value })} />
    </Stack>
  );
}
