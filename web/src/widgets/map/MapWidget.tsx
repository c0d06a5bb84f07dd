// A map: the globe or a picture, with markers, shapes and trips of entities.

import { Button, Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useMemo, useRef, useState, type ReactElement } from "react";
import { ask } from "@/api/typed";
import { latestOf } from "@/dashboard/source";
import { Icon } from "@/icons/Icon";
import { plural, t, useLanguage } from "@/i18n";
import { EmptyState, notify } from "@/ui/feedback";
import { useImage } from "@/ui/images";
import { inkColor } from "../color";
import type { WidgetProps } from "../registry";
import { useScheme } from "../useScheme";
import { useMapItems, isPlaced, valuesBeside } from "./items";
import { actionSource } from "./layer";
import { MapView } from "./MapView";
import { readMap, type MapModel } from "./model";
import type { OwnLook } from "./ownMap";
import { mayEdit, savePlace, type EditState } from "./saving";
import { NOTHING_AMISS } from "./tiles";
import classes from "./map.module.css";

const MapEdit = lazy(() => import("./MapEdit"));
const MapGroups = lazy(() => import("./MapGroups"));
const MapList = lazy(() => import("./MapList"));
const MapTimeline = lazy(() => import("./MapTimeline"));

/** Tiles wait no longer than this for what the map will be fitted to: of where nothing is they would be loaded in vain. Milliseconds. */
const TILES_WAIT_MS = 1_000;
/** How much of a map its list covers, pixels. */
const LIST_WIDTH = 240;

/** Loads the picture of an image map, and learns its shape. */
function usePicture(model: MapModel, sources: WidgetProps["sources"]): { url: string; aspect: number } | "failed" | undefined {
  const entity = sources[model.image.source]?.entities[0];
  const stored = model.image.key === undefined || entity === undefined ? undefined : latestOf(entity, model.image.key)?.value;
  const { url, failed } = useImage(model.kind === "image" ? (stored ?? model.image.url) : undefined);
  const [loaded, setLoaded] = useState<{ url: string; aspect: number } | "failed">();
  useEffect(() => {
    if (url === undefined) {
      return;
    }
    const image = new Image();
    // A drawing may say nothing of its size.
    image.onload = () => setLoaded({ url, aspect: image.naturalHeight > 0 ? image.naturalWidth / image.naturalHeight : 1.5 });
    image.onerror = () => setLoaded("failed");
    image.src = url;
  }, [url]);
  return failed ? "failed" : loaded;
}

/** How the server's own map is drawn, where there is one; unknown until it has answered. */
function useOwnLook(widget: WidgetProps["widget"], isGeo: boolean): { isKnown: boolean; look: OwnLook | undefined } {
  const { data, isPending } = useQuery({ queryKey: ["system params"], queryFn: () => ask("GET /api/system/params"), enabled: isGeo, staleTime: Infinity, retry: false });
  const scheme = useScheme(widget);
  const language = useLanguage();
  const has = data?.hasMapFile === true;
  return { isKnown: !isPending, look: useMemo(() => (has ? { scheme, language } : undefined), [has, scheme, language]) };
}

export default function MapWidget({ widget, sources, act }: WidgetProps): ReactElement {
  const model = useMemo(() => readMap(widget.fqn, widget.config), [widget]);
  const host = useRef<HTMLDivElement>(null);
  const [drawn, setDrawn] = useState<MapView>();
  // With other settings the map before is gone until there is one for them.
  const view = drawn?.model === model ? drawn : undefined;
  const [background, setBackground] = useState(NOTHING_AMISS);
  const own = useOwnLook(widget, model.kind === "geo");
  const [tile, setTile] = useState(0);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [listed, setListed] = useState(false);
  const [editing, setEditing] = useState<EditState>();
  const picture = usePicture(model, sources);
  const beside = useMemo(() => valuesBeside(model, sources), [model, sources]);
  const items = useMapItems(model, sources, typeof picture === "object" ? picture.aspect : 1, beside);
  const groups = useMemo(() => [...new Set(model.layers.flatMap((layer) => layer.groups))], [model]);
  const shown = useMemo(() => items.filter(({ layer }) => layer.groups.length === 0 || layer.groups.some((group) => !hidden.has(group))), [items, hidden]);
  const newest = useRef({ act, editing });
  newest.current = { act, editing };

  useEffect(() => {
    if (host.current === null) {
      return undefined;
    }
    const made = new MapView(host.current, model, {
      click: (item) => {
        if (newest.current.editing !== undefined) {
          setEditing({ doing: "select", item });
        } else {
          newest.current.act(actionSource(item.layer.id, "click"), item.entity);
        }
      },
      tag: (item, name) => newest.current.act(actionSource(item.layer.id, "tag"), item.entity, name),
      moved: (item, to) => void savePlace(item, { place: made.plane.toPlace(to) }).then(() => notify.ok(t("{name} was moved.", { name: item.entity.name })), notify.error),
      background: setBackground,
    });
    setDrawn(made);
    return () => made.destroy();
  }, [model]);
  useEffect(() => {
    if (view !== undefined && typeof picture === "object") {
      view.showPicture(picture.url, picture.aspect);
    }
  }, [view, picture]);
  useEffect(() => view?.setItems(shown, editing !== undefined, beside), [view, shown, editing, beside]);
  const isComing = model.fit && model.center === undefined && sources.some(({ waiting }) => waiting === true);
  // After what the map is fitted to.
  useEffect(() => {
    const choice = model.tiles[tile] ?? model.tiles[0];
    if (view === undefined || choice === undefined || !own.isKnown) {
      return undefined;
    }
    const timer = setTimeout(() => view.showTiles(choice, own.look), isComing ? TILES_WAIT_MS : 0);
    return () => clearTimeout(timer);
  }, [view, model, tile, isComing, own.isKnown, own.look]);

  const cut = sources.find(({ source, entities, total }) => source.pageSize !== undefined && entities.length >= source.pageSize && total > entities.length);
  const notes = [
    ...(cut === undefined ? [] : [`${t("{n} of {total} entities are shown", { n: cut.entities.length, total: cut.total })}.`]),
    ...(background.missing ? [t("The map's pictures can't be loaded. Places are right.")] : []),
    ...(background.replaced ? [t("The map's pictures can't be loaded. This is the server's own map.")] : []),
    ...(background.approximated && !background.missing && !background.replaced ? [t("The chosen map needs a program of its own. This is the nearest one without.")] : []),
  ];
  const editable = mayEdit(model);
  const placed = shown.filter(isPlaced).length;
  const hasPicture = model.kind === "geo" || typeof picture === "object";
  return (
    <div className={classes["shell"]}>
      <div className={classes["area"]}>
        <div ref={host} className={classes["pane"]} dir="ltr" role="application" aria-label={plural(placed, "{title}: map with {n} thing", "{title}: map with {n} things", { title: widget.title })} data-placed={placed} />
        {!hasPicture && (picture === "failed" || (model.image.url === "" && model.image.key === undefined)) && (
          <EmptyState>{picture === "failed" ? t("The picture of this map can't be loaded.") : t("This map has no picture yet.")}</EmptyState>
        )}
        <div className={classes["tools"]}>
          {model.kind === "geo" && model.tiles.length > 1 && (
            <Select
              size="xs"
              w={130}
              aria-label={t("Background")}
              allowDeselect={false}
              data={model.tiles.map(({ label, layerType, provider }, n) => ({ value: String(n), label: label || layerType || provider }))}
              value={String(tile)}
              onChange={(value) => setTile(Number(value))}
            />
          )}
          {groups.length > 0 && (
            <Suspense>
              <MapGroups groups={groups} hidden={hidden} onChange={setHidden} />
            </Suspense>
          )}
          {model.buttons.map(({ label, icon, name, color, source }) => (
            <Button key={source} size="compact-sm" variant="default" aria-label={name} title={name} {...(color === undefined ? {} : { style: { color: inkColor(color) } })} onClick={() => act(source, undefined)}>
              <Icon name={icon} /> {label}
            </Button>
          ))}
          <Button size="compact-sm" variant="default" onClick={() => view?.fitAll()}>
            {t("Show all")}
          </Button>
          {editable && (
            <Button size="compact-sm" variant={editing === undefined ? "default" : "filled"} aria-pressed={editing !== undefined} onClick={() => setEditing(editing === undefined ? { doing: "idle" } : undefined)}>
              {t("Edit map")}
            </Button>
          )}
          <Button size="compact-sm" variant={listed ? "filled" : "default"} aria-expanded={listed} onClick={() => setListed(!listed)}>
            {t("List")}
          </Button>
        </div>
        <Suspense>
          {listed && <MapList items={shown} onChoose={(item) => view?.goTo(item, LIST_WIDTH)} onClose={() => setListed(false)} />}
          {view !== undefined && editing !== undefined && <MapEdit view={view} model={model} items={items} state={editing} onState={setEditing} />}
        </Suspense>
        {notes.length > 0 && (
          <div className={classes["note"]} role="status">
            {notes.join(" ")}
          </div>
        )}
      </div>
      {view !== undefined && model.timeline !== undefined && (
        <Suspense>
          <MapTimeline timeline={model.timeline} items={shown} onMoment={view.trips.at} />
        </Suspense>
      )}
    </div>
  );
}
