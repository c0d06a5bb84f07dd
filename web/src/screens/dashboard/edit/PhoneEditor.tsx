// The list that phones show, edited as it looks there: dragged into order, made higher, hidden.

import { ActionIcon, Button, Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useMemo, useState, type DragEvent, type KeyboardEvent, type PointerEvent, type ReactElement } from "react";
import { changePlace, orderOnPhone, resizeOnPhone } from "@/dashboard/edit/layouts";
import { phone, phoneOrder } from "@/dashboard/layout";
import { readTimeWindow } from "@/dashboard/timeWindow";
import { t } from "@/i18n";
import { useBackground } from "../Board";
import { WidgetFrame } from "../WidgetFrame";
import type { DashboardEditor } from "./editor";
import board from "../dashboard.module.css";
import classes from "./edit.module.css";

/** Sizes of screens that people have, pixels of CSS. */
const DEVICES = [
  { id: "small", label: "Small phone", width: 360, height: 640 },
  { id: "phone", label: "Phone", width: 412, height: 915 },
  { id: "tablet", label: "Tablet", width: 768, height: 1_024 },
] as const;

/** What is around the screen of a device, pixels. */
const BEZEL = 10;

/** Clicks do nothing while a dashboard is edited. */
const NOTHING = (): void => undefined;

interface Pull {
  id: string;
  y: number;
  rows: number;
}

export function PhoneEditor({ editor }: { editor: DashboardEditor }): ReactElement | null {
  const { model, layout, at, params, edit, selected, select } = editor;
  const [deviceId, setDevice] = useState<string>("phone");
  const [dragged, setDragged] = useState<string>();
  const [over, setOver] = useState<string>();
  const [pull, setPull] = useState<Pull>();
  const window = useMemo(() => readTimeWindow(model.timeWindow), [model.timeWindow]);
  const background = useBackground(layout);
  const room = useElementSize();
  const device = DEVICES.find(({ id }) => id === deviceId) ?? DEVICES[1];
  if (layout === undefined) {
    return null;
  }
  // On a phone itself there may be less room than the screen that is shown.
  const width = room.width === 0 ? device.width : Math.min(device.width, room.width - 2 * BEZEL);
  const { rects, height } = phone(layout, width, device.height);
  const order = phoneOrder(layout.places).map(({ id }) => id);
  const hidden = layout.places.filter((place) => place.mobileHide);
  const pitch = (layout.grid.isList ? layout.grid.rowHeight : layout.grid.mobileRowHeight) + layout.grid.margin;
  const nameOf = (id: string): string => {
    const widget = model.widgets.get(id);
    return widget?.title || widget?.fqn || id;
  };
  const move = (id: string, before: string | undefined): void => edit((document) => orderOnPhone(document, at, id, before));
  const drop = (event: DragEvent, before: string | undefined): void => {
    event.preventDefault();
    if (dragged !== undefined && dragged !== before) {
      move(dragged, before);
    }
    setDragged(undefined);
    setOver(undefined);
  };
  const keys = (event: KeyboardEvent, id: string): void => {
    const index = order.indexOf(id);
    if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      event.preventDefault();
      const up = event.key === "ArrowUp";
      if (event.shiftKey) {
        edit((document) => resizeOnPhone(document, at, id, up ? -1 : 1));
      } else if (up && index > 0) {
        move(id, order[index - 1]);
      } else if (!up && index < order.length - 1) {
        move(id, order[index + 2]);
      }
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      select(new Set([id]));
    }
  };
  const follow = (event: PointerEvent): void => {
    const rows = pull === undefined ? 0 : Math.round((event.clientY - pull.y) / pitch);
    if (pull !== undefined && rows !== pull.rows) {
      edit((document) => resizeOnPhone(document, at, pull.id, rows - pull.rows));
      setPull({ ...pull, rows });
    }
  };
  return (
    <Stack ref={room.ref} align="center" gap="xs" flex={1} miw={0}>
      <SegmentedControl aria-label={t("Size of the screen")} value={device.id} onChange={setDevice} data={DEVICES.map(({ id, label }) => ({ value: id, label: t(label) }))} />
      <Text size="sm" c="var(--soft-text)">
        {t("Drag widgets into order; pull their lower edge. Arrows do the same, with Shift for the height.")}
      </Text>
      <div className={classes["device"]} style={{ width: width + 2 * BEZEL, height: device.height + 2 * BEZEL }}>
        <div className={classes["screen"]} style={background}>
          <div style={{ position: "relative", height }} onDragOver={(event) => event.preventDefault()} onDrop={(event) => drop(event, undefined)}>
            {rects.map(({ id, ...rect }) => {
              const widget = model.widgets.get(id);
              return widget === undefined ? null : (
                <div key={id} className={board["place"]} style={rect} data-widget={id} data-over={over === id || undefined}>
                  <div inert className={classes["content"]}>
                    <WidgetFrame widget={widget} model={model} params={params} window={window} act={NOTHING} />
                  </div>
                  <button
                    type="button"
                    className={classes["cover"]}
                    aria-label={t("{title}: place {n} of {total} on phones", { title: nameOf(id), n: order.indexOf(id) + 1, total: order.length })}
                    aria-pressed={selected.has(id)}
                    draggable
                    onClick={() => select(new Set([id]))}
                    onKeyDown={(event) => keys(event, id)}
                    onDragStart={(event) => {
                      event.dataTransfer.effectAllowed = "move";
                      setDragged(id);
                    }}
                    onDragEnd={() => setDragged(undefined)}
                    onDragOver={(event) => {
                      event.preventDefault();
                      setOver(id);
                    }}
                    onDrop={(event) => {
                      event.stopPropagation();
                      drop(event, id);
                    }}
                  />
                  <ActionIcon
                    className={classes["hide"] ?? ""}
                    variant="default"
                    size="sm"
                    aria-label={t("Hide {title} on phones", { title: nameOf(id) })}
                    onClick={() => edit((document) => changePlace(document, at, id, { mobileHide: true }))}
                  >
                    ✕
                  </ActionIcon>
                  <div
                    className={classes["pull"]}
                    onPointerDown={(event) => {
                      event.currentTarget.setPointerCapture(event.pointerId);
                      setPull({ id, y: event.clientY, rows: 0 });
                    }}
                    onPointerMove={follow}
                    onPointerUp={() => setPull(undefined)}
                    onPointerCancel={() => setPull(undefined)}
                  />
                </div>
              );
            })}
          </div>
        </div>
      </div>
      {hidden.length > 0 && (
        <Group gap="xs" justify="center">
          <Text size="sm">{t("Not on phones:")}</Text>
          {hidden.map(({ id }) => (
            <Button key={id} size="compact-sm" variant="default" onClick={() => edit((document) => changePlace(document, at, id, { mobileHide: false }))}>
              {t("Show {title}", { title: nameOf(id) })}
            </Button>
          ))}
        </Group>
      )}
    </Stack>
  );
}
