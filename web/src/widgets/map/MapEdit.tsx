// Placing, moving, drawing and removing things of a map, where its settings and the role permit it.

import { Button, Select, Text } from "@mantine/core";
import { useEffect, useMemo, useRef, useState, type Dispatch, type ReactElement, type SetStateAction } from "react";
import { t } from "@/i18n";
import { notify } from "@/ui/feedback";
import { Drawing, Handles } from "./drawing";
import { isPlaced, type MapItem } from "./items";
import type { MapView } from "./MapView";
import type { MapModel } from "./model";
import { savePlace, type Drawn, type EditState } from "./saving";
import classes from "./map.module.css";

/** Saves a place, tells whoever edits, and says whether it could be saved. */
async function save(item: MapItem, drawn: Drawn, done: string): Promise<boolean> {
  try {
    await savePlace(item, drawn);
  } catch (error) {
    notify.error(error);
    return false;
  }
  notify.ok(done);
  return true;
}

interface Props {
  view: MapView;
  model: MapModel;
  items: readonly MapItem[];
  state: EditState;
  onState: Dispatch<SetStateAction<EditState | undefined>>;
}

interface BarProps {
  view: MapView;
  item: MapItem;
  /** Ends the editing of this item, and of no other. */
  onLeave: () => void;
}

function DrawBar({ view, item, onLeave }: BarProps): ReactElement {
  const [points, setPoints] = useState(0);
  const drawing = useRef<Drawing>(undefined);
  const newest = useRef(onLeave);
  newest.current = onLeave;
  const { kind } = item.layer;
  useEffect(() => {
    const leave = newest.current;
    const made = new Drawing(view, kind, (drawn) => void save(item, drawn, t("{name} has a place now.", { name: item.entity.name })).then(leave), setPoints);
    drawing.current = made;
    const cancel = (event: KeyboardEvent): void => {
      if (event.key === "Escape") {
        newest.current();
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
      <Button size="compact-sm" variant="subtle" onClick={onLeave}>
        {t("Cancel")}
      </Button>
    </>
  );
}

function SelectBar({ view, item, onLeave, onAnew }: BarProps & { onAnew: () => void }): ReactElement {
  const { id } = item;
  const { actions } = item.layer.edit;
  const isShape = item.line !== undefined || item.circle !== undefined;
  const handles = useRef<Handles>(undefined);
  const newest = useRef(item);
  newest.current = item;
  useEffect(() => {
    if (!isShape) {
      return undefined;
    }
    const names = { corner: t("Corner; double click removes it"), hole: t("Corner of a hole; double click removes it"), middle: t("Side; drag for a new corner"), move: t("Moves the whole"), radius: t("Radius") };
    const made = new Handles(view, newest.current, names, (drawn) => save(newest.current, drawn, t("{name} was changed.", { name: newest.current.entity.name })));
    handles.current = made;
    return () => made.end();
  }, [view, id, isShape]);
  useEffect(() => handles.current?.follow(item), [item]);
  return (
    <>
      <Text size="sm" fw={600}>
        {item.entity.name}
      </Text>
      {actions.has("remove") && (
        <Button size="compact-sm" color="red" onClick={() => void save(item, undefined, t("{name} was taken off the map.", { name: item.entity.name })).then((isSaved) => isSaved && onLeave())}>
          {t("Take off the map")}
        </Button>
      )}
      {actions.has("move") && (
        <Button size="compact-sm" variant="default" onClick={onAnew}>
          {isShape ? t("Draw anew") : t("Place anew")}
        </Button>
      )}
      <Button size="compact-sm" variant="subtle" onClick={onLeave}>
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
  // Whoever has begun something else meanwhile stays at it.
  const leave = (): void => onState((now) => (now === state ? { doing: "idle" } : now));
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
      {state.doing === "draw" && <DrawBar key={state.item.id} view={view} item={state.item} onLeave={leave} />}
      {state.doing === "select" && current !== undefined && <SelectBar key={current.id} view={view} item={current} onLeave={leave} onAnew={() => onState({ doing: "draw", item: current })} />}
    </div>
  );
}
