// What can be added to a dashboard: types of the server, kinds that are drawn here, and symbols of the gallery.

import { useInfiniteQuery } from "@tanstack/react-query";
import { api, type Query } from "@/api/client";
import type { Entity, EntityId, PageData } from "@/api/types";
import { object, text, type Json } from "@/dashboard/json";
import { NULL_ID } from "@/entities/kinds";
import { t } from "@/i18n";
import { versionOf, type StoredFile } from "@/screens/resources/model";
import { readFile } from "@/screens/symbols/symbolFile";
import { drawingText, storedImagePath } from "@/ui/images";
import { newWidget, WIDGET_KINDS } from "@/widgets/catalog";
import { widgetOfSymbol, widgetOfType, type NewWidget } from "@/widgets/fromType";
import { FURTHER_KINDS, type DescribedKind } from "@/widgets/furtherKinds";
import { isKnown } from "@/widgets/registry";

export const KINDS = [
  { value: "timeseries", label: "Time series" },
  { value: "latest", label: "Latest values" },
  { value: "rpc", label: "Control" },
  { value: "alarm", label: "Alarms" },
  { value: "static", label: "Static" },
] as const;

/** Where is looked: everywhere, in one bundle, among what the tenant has made, or among symbols. */
export type Shelf = { id: "all" } | { id: "own" } | { id: "symbols" } | { id: "bundle"; bundle: string; title: string };

export interface Wanted {
  shelf: Shelf;
  search: string;
  /** One of the kinds; empty for all. */
  kind: string;
  withDeprecated: boolean;
  /** Whether the frequent kinds already stand above the list. */
  withoutFrequent: boolean;
}

/** One that can be chosen. */
export interface Choice {
  key: string;
  title: string;
  kind: string;
  description: string;
  image: string | undefined;
  /** What about it one should know before it is chosen. */
  remarks: string[];
  isSymbol: boolean;
  make: () => Promise<NewWidget>;
}

interface WidgetTypeInfo extends Entity {
  tenantId: EntityId;
  fqn: string;
  name: string;
  image?: string | null;
  description?: string | null;
  deprecated?: boolean;
  scada?: boolean;
  widgetType: string;
}

const PAGE = 50;

/** Returns the smaller form of a stored picture. */
export function previewOf(image: string | null | undefined): string | undefined {
  const path = image ? storedImagePath(image) : undefined;
  return path === undefined || path.endsWith("/preview") ? (image ?? undefined) : `${path}/preview`;
}

function ofKind(kind: DescribedKind): Choice {
  return {
    key: kind.fqn,
    title: t(kind.title),
    kind: kind.type,
    description: kind.hint === undefined ? "" : t(kind.hint),
    image: undefined,
    remarks: [],
    isSymbol: false,
    make: () => Promise.resolve({ widget: newWidget(kind, t(kind.title)), size: kind.size }),
  };
}

function ofType(info: WidgetTypeInfo): Choice {
  const isSystem = info.tenantId.id === NULL_ID;
  const fqn = `${isSystem ? "system" : "tenant"}.${info.fqn}`;
  return {
    key: fqn,
    title: info.name,
    kind: info.widgetType,
    description: info.description ?? "",
    image: previewOf(info.image),
    remarks: [...(isSystem ? [] : [t("Our own")]), ...(info.deprecated === true ? [t("Deprecated")] : []), ...(isKnown(fqn) || info.scada === true ? [] : [t("Can't be drawn here")])],
    isSymbol: info.scada === true,
    make: async () => {
      const stored = await api.get<Entity>(`/api/widgetType/${info.id.id}`);
      return widgetOfType({ fqn: text(stored["fqn"]) ?? info.fqn, name: info.name, isSystem, descriptor: object(stored["descriptor"]) });
    },
  };
}

/** Returns what a drawing says about itself; nothing if it can't be read, which the widget itself then says. */
async function metadataAt(link: string): Promise<Json> {
  try {
    return readFile(await drawingText(link)).metadata;
  } catch {
    return {};
  }
}

function ofSymbol(file: StoredFile): Choice {
  return {
    key: file.link,
    title: file.title,
    kind: "rpc",
    description: "",
    image: versionOf(file, "/preview"),
    remarks: [t("Symbol")],
    isSymbol: true,
    make: async () => widgetOfSymbol(file, await metadataAt(file.link)),
  };
}

/** Returns the kinds that are drawn here and fit what is searched. */
export function kindsFor(kinds: readonly DescribedKind[], search: string, kind: string): DescribedKind[] {
  const words = search.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return kinds.filter((one) => {
    const known = [one.title, t(one.title), one.hint ?? "", t(one.hint ?? ""), one.fqn.replaceAll("_", " ")].join(" ").toLowerCase();
    return (kind === "" || one.type === kind) && words.every((word) => known.includes(word));
  });
}

export interface Choices {
  choices: Choice[];
  total: number;
  waiting: boolean;
  problem: unknown;
  /** Asks for the next part, if there is one. */
  more: (() => void) | undefined;
}

function usePages<T>(path: string, query: Query, enabled: boolean) {
  return useInfiniteQuery({
    queryKey: ["list", "to add", path, query],
    enabled,
    initialPageParam: 0,
    queryFn: ({ pageParam }) => api.get<PageData<T>>(path, { ...query, pageSize: PAGE, page: pageParam }),
    getNextPageParam: (last, all) => (last.hasNext ? all.length : undefined),
  });
}

/** Follows all that can be chosen, part by part. Types of the server come before what is drawn here without them. */
export function useChoices({ shelf, search, kind, withDeprecated, withoutFrequent }: Wanted): Choices {
  const typesAsked = shelf.id !== "symbols";
  const types = usePages<WidgetTypeInfo>(
    shelf.id === "bundle" ? "/api/widgetTypesInfos" : "/api/widgetTypes",
    {
      fullSearch: true,
      textSearch: search,
      deprecatedFilter: withDeprecated ? "ALL" : "ACTUAL",
      widgetTypeList: kind,
      ...(shelf.id === "bundle" ? { widgetsBundleId: shelf.bundle } : { sortProperty: "name", sortOrder: "ASC" }),
      ...(shelf.id === "own" ? { tenantOnly: true } : {}),
    },
    typesAsked,
  );
  const typesEnded = !typesAsked || (types.isSuccess && !types.hasNextPage);
  const symbolsAsked = shelf.id !== "bundle" && (kind === "" || kind === "rpc") && typesEnded;
  const symbols = usePages<StoredFile>("/api/images", { imageSubType: "SCADA_SYMBOL", includeSystemImages: shelf.id !== "own", textSearch: search, sortProperty: "title", sortOrder: "ASC" }, symbolsAsked);

  const infos = typesAsked ? (types.data?.pages.flatMap((page) => page.data) ?? []) : [];
  const stored = infos.map(ofType);
  const known = new Set(stored.map(({ key }) => key));
  const kinds = shelf.id === "all" && (typesEnded || types.isError) ? kindsFor(withoutFrequent ? FURTHER_KINDS : [...WIDGET_KINDS, ...FURTHER_KINDS], search, kind) : [];
  const drawn = kinds.filter(({ fqn }) => !known.has(fqn)).map(ofKind);
  const files = symbolsAsked ? (symbols.data?.pages.flatMap((page) => page.data) ?? []) : [];
  const next = types.hasNextPage ? types : symbolsAsked && symbols.hasNextPage ? symbols : undefined;
  return {
    choices: [...stored, ...drawn, ...files.map(ofSymbol)],
    total: (typesAsked ? (types.data?.pages[0]?.totalElements ?? 0) : 0) + drawn.length + (symbolsAsked ? (symbols.data?.pages[0]?.totalElements ?? 0) : 0),
    waiting: (typesAsked && types.isPending) || (symbolsAsked && symbols.isPending) || next?.isFetchingNextPage === true,
    problem: (typesAsked ? types.error : null) ?? (symbolsAsked ? symbols.error : null),
    more: next === undefined || next.isFetchingNextPage || next.isError ? undefined : () => void next.fetchNextPage(),
  };
}
