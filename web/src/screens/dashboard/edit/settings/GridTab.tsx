// The grid of the layout that is edited.

import { ColorInput, NumberInput, Select, Stack, Switch, Text } from "@mantine/core";
import type { ReactElement } from "react";
import { changeGrid } from "@/dashboard/edit/document";
import type { Json } from "@/dashboard/model";
import { t } from "@/i18n";
import { ImageField } from "@/ui/form/ImageField";
import type { DashboardEditor } from "../editor";

const SIZES = [
  { value: "100%", label: "as wide as the page" },
  { value: "auto 100%", label: "as high as the page" },
  { value: "cover", label: "filling the page" },
  { value: "contain", label: "whole, within the page" },
  { value: "auto", label: "as it is" },
];

export function GridTab({ editor }: { editor: DashboardEditor }): ReactElement | null {
  const { state, layout, at, edit } = editor;
  if (state === undefined || layout === undefined) {
    return null;
  }
  const { grid } = layout;
  const change = (next: Json): void => edit((before) => changeGrid(before, at, next));
  const sizes = SIZES.some(({ value }) => value === grid.backgroundSize) ? SIZES : [...SIZES, { value: grid.backgroundSize, label: grid.backgroundSize }];
  return (
    <Stack maw={400} gap="sm">
      {at.breakpoint !== undefined && <Text size="sm">{t("These settings are those of the layout that you edit: {name}", { name: at.breakpoint })}</Text>}
      {state.right === undefined && at.breakpoint === undefined && (
        <Select
          label={t("Kind of layout")}
          allowDeselect={false}
          data={[{ value: "default", label: t("Cards on a grid") }, { value: "scada", label: t("Drawing of a plant, without margins") }]}
          value={grid.type === "scada" ? "scada" : "default"}
          onChange={(layoutType) => change({ layoutType })}
        />
      )}
      {at.breakpoint !== undefined && (
        <Select
          label={t("Widgets are")}
          allowDeselect={false}
          data={[{ value: "grid", label: t("on the cells of the grid") }, { value: "list", label: t("a list of one column") }]}
          value={grid.isList ? "list" : "grid"}
          onChange={(viewFormat) => change({ viewFormat })}
        />
      )}
      {grid.isList ? (
        <NumberInput label={t("Height of a row, pixels")} min={5} max={200} value={grid.rowHeight} onChange={(value) => change({ rowHeight: Number(value) || 70 })} />
      ) : (
        <NumberInput label={t("Columns")} min={10} max={3000} value={grid.columns} onChange={(value) => change({ columns: Number(value) || 24, minColumns: Number(value) || 24 })} />
      )}
      {grid.type !== "scada" && (
        <>
          <NumberInput label={t("Margin between widgets, pixels")} min={0} max={50} value={grid.margin} onChange={(value) => change({ margin: Number(value) || 0 })} />
          <Switch label={t("Margin around all of them")} checked={grid.outerMargin} onChange={(event) => change({ outerMargin: event.currentTarget.checked })} />
          <Switch label={t("Fill the height of the page")} checked={grid.autoFillHeight} onChange={(event) => change({ autoFillHeight: event.currentTarget.checked })} />
        </>
      )}
      {at.breakpoint === undefined && grid.type !== "scada" && (
        <>
          <NumberInput label={t("Height of a row on phones, pixels")} min={5} max={200} value={grid.mobileRowHeight} onChange={(value) => change({ mobileRowHeight: Number(value) || 70 })} />
          <Switch label={t("Fill the height of phones")} checked={grid.mobileAutoFillHeight} onChange={(event) => change({ mobileAutoFillHeight: event.currentTarget.checked })} />
        </>
      )}
      <ColorInput label={t("Background")} value={grid.backgroundColor} onChange={(backgroundColor) => change({ backgroundColor })} eyeDropperButtonProps={{ "aria-label": t("Pick a color from the screen") }} />
      <ImageField label={t("Background picture")} value={grid.backgroundImage ?? ""} onChange={(backgroundImageUrl) => change({ backgroundImageUrl })} />
      {grid.backgroundImage !== undefined && (
        <Select label={t("Its size")} allowDeselect={false} data={sizes.map(({ value, label }) => ({ value, label: t(label) }))} value={grid.backgroundSize} onChange={(backgroundSizeMode) => change({ backgroundSizeMode })} />
      )}
    </Stack>
  );
}
