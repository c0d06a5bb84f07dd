// Placing, moving, drawing and removing things of a map, where its settings and the role permit it.

import { Button, Select, Text } from "@mantine/core";
import { useEffect, useMemo, useRef, useState, type ReactElement } from "react";
import { t } from "@/i18n";
import { notify } from "@/ui/feedback";
import { Drawing, Handles } from "./drawing";
import { isPlaced, type MapItem } from "./items";
import type { MapView } from "./MapView";
import type { MapModel } from "./model";
import { savePlace, type Drawn, type EditState } from "./saving";
import classes from "./map.module.css";

function useSaving(onDone: () => void): (item: MapItem, drawn: Drawn, done: string) => void {
  return (item, drawn, done) => {
    savePlace(item, drawn).then(() => {
      notify.ok(done);
      onDone();
    }, notify.error);
  };
}

interface Props {
  view: MapView;
  model: MapModel;
  items: readonly MapItem[];
  state: EditState;
  onState: (state: EditState | undefined) => void;
}

function DrawBar({ view, item, onState }: { view: MapView; item: MapItem; onState: Props["onState"] }): ReactElement {
  const [points, setPoints] = useState(0);
  const drawing = useRef<Drawing>(undefined);
  const back = useRef(() => onState({ doing: "idle" }));
  const save = useSaving(back.current);
  const newest = useRef(save);
  newest.current = save;
  const { kind } = item.layer;
  useEffect(() => {
    const made = new Drawing(view, kind, (drawn) => newest.current(item, drawn, t("{name} has a place now.", { name: item.entity.name })), setPoints);
    drawing.current = made;
    const cancel = (event: KeyboardEvent): void => {
      if (event.key === "Escape") {
        back.current();
      }
    };
    addEventListener("keydown", cancel);
    return () => {
      removeEventListener("keydown", cancel);
      made.end();
    };
  }, [view, item, kind]);
  const hint = {
    markers: t("Click where {name} is.", { name: item.entity.name }),
    trips: "",
    circles: t("Click the middle of the circle, then its edge."),
    polygons: t("Click the corners, and the last one twice."),
    polylines: t("Click the points of the line, and the last one twice."),
  }[kind];
  return (
    <>
      <Text size="sm">{hint}</Text>
      <Button size="compact-sm" variant="default" onClick={() => drawing.current?.addMiddle()}>
        {t("Take the middle of the map")}
      </Button>
      {(kind === "polygons" || kind === "polylines") && (
        <Button size="compact-sm" disabled={points < (kind === "polygons" ? 3 : 2)} onClick={() => drawing.current?.finish()}>
          {t("Finish")}
        </Button>
      )}
      <Button size="compact-sm" variant="subtle" onClick={() => onState({ doing: "idle" })}>
        {t("Cancel")}
      </Button>
    </>
  );
}

function SelectBar({ view, item, onState }: { view: MapView; item: MapItem; onState: Props["onState"] }): ReactElement {
  const save = useSaving(() => onState({ doing: "idle" }));
  const newest = useRef(save);
  newest.current = save;
  const { actions } = item.layer.edit;
  const isShape = item.line !== undefined || item.circle !== undefined;
  useEffect(() => {
    if (!isShape) {
      return undefined;
    }
    const names = { corner: t("Corner; double click removes it"), hole: t("Corner of a hole; double click removes it"), middle: t("Side; drag for a new corner"), move: t("Moves the whole"), radius: t("Radius") };
    const made = new Handles(view, item, names, (drawn) => newest.current(item, drawn, t("{name} was changed.", { name: item.entity.name })));
    return () => made.end();
  }, [view, item, isShape]);
  return (
    <>
      <Text size="sm" fw={600}>
        {item.entity.name}
      </Text>
      {actions.has("remove") && (
        <Button size="compact-sm" color="red" onClick={() => save(item, undefined, t("{name} was taken off the map.", { name: item.entity.name }))}>
          {t("Take off the map")}
        </Button>
      )}
      {actions.has("move") && (
        <Button size="compact-sm" variant="default" onClick={() => onState({ doing: "draw", item })}>
          {isShape ? t("Draw anew") : t("Place anew")}
        </Button>
      )}
      <Button size="compact-sm" variant="subtle" onClick={() => onState({ doing: "idle" })}>
        {t("Done")}
      </Button>
    </>
  );
}

export default function MapEdit({ view, model, items, state, onState }: Props): ReactElement {
  const addable = useMemo(() => items.filter((item) => item.layer.edit.actions.has("add") && item.layer.kind !== "trips" && !isPlaced(item)), [items]);
  const named = { markers: t("Marker"), trips: "", circles: t("Circle"), polygons: t("Area"), polylines: t("Line") };
  const kinds = new Set(model.layers.filter((layer) => layer.edit.actions.has("add")).map((layer) => layer.kind));
  // Values that came since are those of the selected thing.
  const current = state.doing === "idle" ? undefined : (items.find(({ id }) => id === state.item.id) ?? state.item);
  return (
    <div className={classes["bar"]} role="toolbar" aria-label={t("Edit map")}>
      {state.doing === "idle" && kinds.size > 0 && (
        <Select
          size="xs"
          w={230}
          searchable
          aria-label={t("Place something")}
          placeholder={addable.length === 0 ? t("Everything has a place") : t("Place something")}
          disabled={addable.length === 0}
          data={addable.slice(0, 1_000).map((item) => ({ value: item.id, label: kinds.size > 1 ? `${item.entity.name} (${named[item.layer.kind]})` : item.entity.name }))}
          limit={50}
          value={null}
          onChange={(id) => {
            const item = addable.find((one) => one.id === id);
            if (item !== undefined) {
              onState({ doing: "draw", item });
            }
          }}
        />
      )}
      {state.doing === "idle" && <Text size="sm">{t("Drag markers, or click something to change it.")}</Text>}
      {state.doing === "draw" && <DrawBar key={state.item.id} view={view} item={state.item} onState={onState} />}
      {state.doing === "select" && current !== undefined && <SelectBar key={current.id} view={view} item={current} onState={onState} />}
    </div>
  );
}
