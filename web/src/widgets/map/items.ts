// The things on a map: an entity on a layer, with its place, colour and texts.

import { useEffect, useMemo, useRef, useState } from "react";
import type { DataKey, Datasource, Json } from "@/dashboard/model";
import { latestOf, type EntityValues, type SourceValues } from "@/dashboard/source";
import { callInSandbox } from "@/sandbox/calls";
import tinycolor from "@/sandbox/tinycolor.js?raw";
import { plainImageUrl, storedImagePath } from "@/ui/images";
import { rangeColor, safeColor } from "../color";
import { fillMarkup, formatted } from "./formatted";
import { isPlace, placeOf, readCircle, readLine, stepsOf, type Circle, type Nested, type Place, type Step } from "./geometry";
import type { LayerColor, MapLayer, Written } from "./layer";
import type { MapModel } from "./model";

export interface MapItem {
  id: string;
  layer: MapLayer;
  entity: EntityValues;
  data: Json;
  place: Place | undefined;
  line: Nested[] | undefined;
  circle: Circle | undefined;
  steps: Step[];
  /** Colour of the marker, or of the filling. */
  color: string;
  stroke: string;
  /** Markup that is not clean yet. */
  label: string | undefined;
  image: string;
  imageSize: number;
}

const NO_STEPS: Step[] = [];
const NOTHING: readonly Json[] = [];

/** Whether an item has a place to be drawn at. */
export function isPlaced(item: MapItem): boolean {
  return item.place !== undefined || item.line !== undefined || item.circle !== undefined;
}

function colorFor(color: LayerColor, entity: EntityValues): string {
  const value = color.rangeKey === undefined ? undefined : latestOf(entity, color.rangeKey)?.value;
  return (value === undefined ? undefined : rangeColor(color.range, Number(value))) ?? color.color;
}

function mainColor(layer: MapLayer): LayerColor {
  return layer.kind === "markers" || layer.kind === "trips" ? layer.marker.color : layer.shape.fill;
}

function strokeColor(layer: MapLayer): LayerColor {
  return layer.kind === "trips" ? layer.trip.pathColor : layer.shape.stroke;
}

function shapeText(layer: MapLayer, entity: EntityValues): string | undefined {
  const key: DataKey | undefined = layer.x[0];
  return key === undefined ? undefined : latestOf(entity, key)?.value;
}

/** An item as its layer says it is. Texts are made when somebody reads them: of ten thousand things few are near enough to show theirs. */
class EntityItem implements MapItem {
  readonly place: Place | undefined;
  readonly line: Nested[] | undefined;
  readonly circle: Circle | undefined;
  readonly steps: Step[];
  readonly color: string;
  readonly stroke: string;
  readonly image: string;
  readonly imageSize: number;
  private known: Json | undefined;
  private written: string | undefined;
  private named: string | undefined;

  constructor(
    readonly layer: MapLayer,
    readonly entity: EntityValues,
    private readonly source: Datasource | undefined,
    private readonly index: number,
    kind: "geo" | "image",
  ) {
    this.steps = layer.kind === "trips" ? stepsOf(layer, entity, kind) : NO_STEPS;
    this.place = layer.kind === "markers" ? placeOf(layer, entity, kind) : this.steps.at(-1)?.place;
    this.line = layer.kind === "polygons" || layer.kind === "polylines" ? readLine(shapeText(layer, entity), layer.kind === "polygons") : undefined;
    this.circle = layer.kind === "circles" ? readCircle(shapeText(layer, entity)) : undefined;
    this.color = colorFor(mainColor(layer), entity);
    this.stroke = colorFor(strokeColor(layer), entity);
    this.image = layer.marker.type === "image" ? layer.marker.image : "";
    this.imageSize = layer.marker.size;
  }

  get id(): string {
    this.named ??= `${this.layer.id}/${this.entity.id.id}`;
    return this.named;
  }

  get data(): Json {
    this.known ??= formatted(this.entity, this.layer.keys, this.source, this.index);
    return this.known;
  }

  get label(): string | undefined {
    const { show, pattern } = this.layer.label;
    this.written ??= show ? fillMarkup(pattern, this.data, this.layer.keys) : undefined;
    return this.written;
  }
}

/** Makes the items of a map; those whose entity hasn't changed stay the same objects. */
export class ItemMaker {
  /** What each layer has made of its entities. */
  private made = new Map<MapLayer, MapItem[]>();

  constructor(private readonly model: MapModel) {}

  make(sources: readonly SourceValues[]): MapItem[] {
    return this.model.layers.flatMap((layer) => {
      const known = new Map(this.made.get(layer)?.map((item) => [item.entity, item]));
      const make = (place: number): MapItem[] => {
        const { entities, source } = sources[place] ?? { entities: [], source: undefined };
        return entities.map((entity, n) => known.get(entity) ?? new EntityItem(layer, entity, source, n, this.model.kind));
      };
      const own = make(layer.source);
      // Of two sources with the same entity, the first one counts.
      const items = layer.moreSources.length === 0 ? own : [...new Map([...layer.moreSources.toReversed().flatMap(make), ...own].map((item) => [item.id, item])).values()];
      this.made.set(layer, items);
      return items;
    });
  }
}

const NAMES = ["data", "dsData", "dsIndex", "ctx"];

/** Runs one function for many items in one call. */
async function results(body: string | undefined, items: readonly MapItem[], all: Json[], names = NAMES, args = (item: MapItem): unknown[] => [item.data, all, item.data["dsIndex"], {}]): Promise<unknown[]> {
  if (body === undefined || items.length === 0) {
    return [];
  }
  const done = await callInSandbox({ body: body.includes("tinycolor") ? `${tinycolor}\n${body}` : body, names, calls: items.map(args) });
  return done.map(({ value, error }) => (error === undefined ? value : undefined));
}

function hasFunctions({ label, marker, shape, trip, positionBody, kind }: MapLayer): boolean {
  const colors = kind === "markers" ? [marker.color] : kind === "trips" ? [marker.color, trip.pathColor] : [shape.fill, shape.stroke];
  return [label.show ? label.body : undefined, marker.imageBody, positionBody, ...colors.map(({ body }) => body)].some((body) => body !== undefined);
}

/** Whether a function may choose a picture: an address of elsewhere that it made could tell values to another server. */
export function isOwnImage(link: string, { image, images }: Pick<MapLayer["marker"], "image" | "images">): boolean {
  return link === image || images.includes(link) || storedImagePath(link) !== undefined || !/^https?:/i.test(plainImageUrl(link) ?? "https:");
}

/** Returns items of one layer with what its functions say. */
async function worked(layer: MapLayer, items: MapItem[], all: Json[], aspect: number): Promise<MapItem[]> {
  const position = ["origXPos", "origYPos", "data", "dsData", "aspect", "dsIndex"];
  const [labels, colors, strokes, images, places] = await Promise.all([
    results(layer.label.show ? layer.label.body : undefined, items, all),
    results(mainColor(layer).body, items, all),
    results(strokeColor(layer).body, items, all),
    results(layer.marker.imageBody, items, all, ["data", "images", "dsData", "dsIndex"], (item) => [item.data, layer.marker.images, all, item.data["dsIndex"]]),
    results(layer.positionBody, items, all, position, (item) => [item.place?.[0], item.place?.[1], item.data, all, aspect, item.data["dsIndex"]]),
  ]);
  return items.map((item, n) => {
    const image = images[n] as { url?: unknown; size?: unknown } | undefined;
    const moved = places[n] as { x?: unknown; y?: unknown } | undefined;
    const place: Place | undefined = typeof moved?.x === "number" && typeof moved.y === "number" ? [moved.x, moved.y] : item.place;
    return {
      ...item,
      id: item.id,
      data: item.data,
      label: typeof labels[n] === "string" ? fillMarkup(labels[n], item.data, layer.keys) : item.label,
      color: safeColor(colors[n]) ?? item.color,
      stroke: safeColor(strokes[n]) ?? item.stroke,
      image: typeof image?.url === "string" && isOwnImage(image.url, layer.marker) ? image.url : item.image,
      imageSize: typeof image?.size === "number" ? Math.min(300, Math.max(8, image.size)) : item.imageSize,
      place: item.place === undefined || place === undefined || !isPlace(place, "image") ? item.place : place,
    };
  });
}

/** Returns the values of entities that are no items, but that functions know. */
export function valuesBeside({ beside }: MapModel, sources: readonly SourceValues[]): readonly Json[] {
  return beside.length === 0 ? NOTHING : beside.flatMap(({ source: place, keys }) => {
    const { entities, source } = sources[place] ?? { entities: [], source: undefined };
    return entities.map((entity, n) => formatted(entity, keys, source, n));
  });
}

/** Follows the items of a map. With functions they come when those are done; until then what was before stays. */
export function useMapItems(model: MapModel, sources: readonly SourceValues[], aspect: number, beside: readonly Json[]): readonly MapItem[] {
  const maker = useMemo(() => new ItemMaker(model), [model]);
  const plain = useMemo(() => maker.make(sources), [maker, sources]);
  const needed = useMemo(() => model.layers.some(hasFunctions), [model]);
  const [made, setMade] = useState<readonly MapItem[]>([]);
  const turn = useRef({ begun: 0, shown: 0 });
  useEffect(() => {
    if (needed) {
      const mine = ++turn.current.begun;
      const all = [...plain.map(({ data }) => data), ...beside];
      const layers = model.layers.map((layer) => {
        const items = plain.filter((item) => item.layer === layer);
        return hasFunctions(layer) ? worked(layer, items, all, aspect) : Promise.resolve(items);
      });
      // A slow answer is shown unless a later one was first: values that change all the time would else never show.
      void Promise.all(layers).then((done) => {
        if (mine > turn.current.shown) {
          turn.current.shown = mine;
          setMade(done.flat());
        }
      });
    }
  }, [plain, needed, model, aspect, beside]);
  return needed ? made : plain;
}

/** Returns the markup of an item's tooltip, which is not clean yet. */
export async function tooltipMarkup(tooltip: Written, item: MapItem, all: () => readonly Json[], more: Json = {}): Promise<string> {
  const data = { ...item.data, ...more };
  const others = tooltip.body === undefined ? [] : [...all()];
  const [made] = await results(tooltip.body, [item], others, NAMES, (one) => [data, others, one.data["dsIndex"], {}]);
  return fillMarkup(typeof made === "string" ? made : tooltip.pattern, data, item.layer.keys);
}
