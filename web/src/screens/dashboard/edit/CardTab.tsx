// How the card around a widget looks, whose time it shows, and on which pages it is.

import { ColorInput, Fieldset, Group, NumberInput, Stack, Switch, TextInput } from "@mantine/core";
import type { ReactElement } from "react";
import { changeWidget } from "@/dashboard/edit/document";
import { changePlace } from "@/dashboard/edit/layouts";
import { number, object, text, type Json } from "@/dashboard/model";
import { EVERYTHING } from "@/dashboard/time/rules";
import { readTimeWindow, writeTimeWindow } from "@/dashboard/timeWindow";
import { t } from "@/i18n";
import { WindowForm } from "../time/WindowForm";
import type { DashboardEditor } from "./editor";

export default function CardTab({ editor, id }: { editor: DashboardEditor; id: string }): ReactElement {
  const { document, model, layout, at, edit } = editor;
  const widget = object(object(document["widgets"])[id]);
  const config = object(widget["config"]);
  const font = object(config["titleFont"]);
  const place = layout?.places.find((one) => one.id === id);
  const put = (change: Json): void => edit((before) => {
    const current = object(object(before["widgets"])[id]);
    return changeWidget(before, id, { ...current, config: { ...object(current["config"]), ...change } });
  });
  const color = (label: string, name: string): ReactElement => (
    <ColorInput label={label} value={text(config[name]) ?? ""} onChange={(value) => put({ [name]: value === "" ? null : value })} eyeDropperButtonProps={{ "aria-label": t("Pick a color from the screen") }} />
  );
  const pixels = (label: string, name: string): ReactElement => (
    <NumberInput label={label} min={0} max={100} suffix=" px" value={number(text(config[name])?.replace("px", "")) ?? ""} onChange={(value) => put({ [name]: value === "" ? null : `${Number(value)}px` })} />
  );
  const ownTime = config["useDashboardTimewindow"] === false;
  const stored = object(config["timewindow"]);
  return (
    <Stack gap="sm">
      <Fieldset legend={t("Card")} p="xs">
        <Stack gap={6}>
          <Group grow>
            {color(t("Background"), "backgroundColor")}
            {color(t("Text"), "color")}
          </Group>
          <Group grow>
            {pixels(t("Padding"), "padding")}
            {pixels(t("Margin"), "margin")}
            {pixels(t("Corners"), "borderRadius")}
          </Group>
          <Switch label={t("Shadow")} checked={config["dropShadow"] !== false} onChange={(event) => put({ dropShadow: event.currentTarget.checked })} />
          <Switch label={t("May fill the screen")} checked={config["enableFullscreen"] !== false} onChange={(event) => put({ enableFullscreen: event.currentTarget.checked })} />
        </Stack>
      </Fieldset>
      <Fieldset legend={t("Title")} p="xs">
        <Group grow align="end">
          <NumberInput label={t("Size")} min={8} max={72} suffix=" px" value={number(font["size"]) ?? ""} onChange={(value) => put({ titleFont: value === "" ? null : { sizeUnit: "px", weight: "500", ...font, size: Number(value) } })} />
          {color(t("Color"), "titleColor")}
        </Group>
        <TextInput label={t("Hint at the title")} value={text(config["titleTooltip"]) ?? ""} onChange={(event) => put({ titleTooltip: event.currentTarget.value })} />
      </Fieldset>
      <Fieldset legend={t("Time")} p="xs">
        <Switch
          label={t("The time of the dashboard")}
          checked={!ownTime}
          onChange={(event) => put(event.currentTarget.checked ? { useDashboardTimewindow: true } : { useDashboardTimewindow: false, displayTimewindow: true, timewindow: Object.keys(stored).length > 0 ? stored : object(model.timeWindow) })}
        />
        {ownTime && <WindowForm window={readTimeWindow(stored)} rules={EVERYTHING} onChange={(window) => put({ timewindow: writeTimeWindow(window, stored) })} />}
      </Fieldset>
      {place !== undefined && (
        <Fieldset legend={t("Pages that show it")} p="xs">
          <Switch label={t("In the list on phones")} checked={!place.mobileHide} onChange={(event) => {
            const hidden = !event.currentTarget.checked;
            edit((before) => changePlace(before, at, id, { mobileHide: hidden }));
          }} />
          <Switch label={t("On the grid")} description={t("One that is not there is chosen in the list on phones.")} checked={!place.desktopHide} onChange={(event) => {
            const hidden = !event.currentTarget.checked;
            edit((before) => changePlace(before, at, id, { desktopHide: hidden }));
          }} />
        </Fieldset>
      )}
    </Stack>
  );
}
