// Entities of a source page by page: only the pages in view are subscribed to, and what has been shown stays until newer comes.

import type { LiveCommand, LiveUpdate } from "@/live/protocol";
import { live } from "@/live/socket";
import { list, number, object, text, type Json } from "./json";
import { commandOf, type EntityValues, type SourceRequest } from "./source";
import { SourceData } from "./sourceData";

export interface PageOrder {
  key: { type: string; key: string };
  direction: "ASC" | "DESC";
}

export interface EntityPagesQuery {
  request: SourceRequest;
  pageSize: number;
  search: string;
  order: PageOrder;
  /** Conditions besides those of the source. */
  keyFilters: Json[];
}

type Subscribe = typeof live.subscribe;

interface Page {
  data: SourceData;
  /** Ids in the order of the server. */
  order: string[];
  end: (() => void) | undefined;
}

/** Pages that nobody sees any more stay subscribed this long, so that scrolling back costs nothing, milliseconds. */
const GRACE_MS = 3_000;
/** The most pages that are kept; of 64 rows these are some thousands. */
const KEPT = 64;

const keyOf = (id: Json): string => `${String(id["entityType"])}/${String(id["id"])}`;

export class EntityPages {
  private readonly pages = new Map<number, Page>();
  private readonly listeners = new Set<() => void>();
  private wanted: ReadonlySet<number> = new Set([0]);
  private timer: ReturnType<typeof setTimeout> | undefined;
  private version = 0;
  private known = 0;
  private failure: string | undefined;
  private isLoaded = false;
  private rows = new Map<number, readonly (EntityValues | undefined)[]>();

  constructor(
    private readonly query: EntityPagesQuery,
    private readonly subscribe: Subscribe = (command, onUpdate) => live.subscribe(command, onUpdate),
  ) {}

  private command(page: number): LiveCommand {
    const { request, pageSize, search, order, keyFilters } = this.query;
    const command = commandOf(request, Date.now());
    const query = object(command["query"]);
    const all = [...list(query["keyFilters"]), ...keyFilters];
    return {
      ...command,
      query: {
        ...query,
        keyFilters: all,
        // What was typed above columns narrows further, which "one of them is enough" would not.
        ...(keyFilters.length > 0 ? { keyFiltersOperation: "AND" } : {}),
        pageLink: { pageSize: this.isOne() ? 1 : pageSize, page, textSearch: search === "" ? null : search, dynamic: true, sortOrder: order },
      },
    };
  }

  /** Whether the source stands for its first entity alone. */
  private isOne(): boolean {
    return this.query.request.filter["resolveMultiple"] === false;
  }

  private open(number: number): void {
    const page: Page = this.pages.get(number) ?? { data: new SourceData(this.query.request), order: [], end: undefined };
    this.pages.set(number, page);
    if (page.end === undefined) {
      const leave = page.data.watch(() => this.changed(number));
      const stop = this.subscribe(this.command(number), (update) => this.take(page, update));
      page.end = () => {
        stop();
        leave();
      };
    }
  }

  private take(page: Page, update: LiveUpdate & { data?: unknown }): void {
    const data = object(update.data);
    if (Array.isArray(data["data"])) {
      page.order = data["data"].map((entity) => keyOf(object(object(entity)["entityId"])));
      this.known = number(data["totalElements"]) ?? this.known;
      this.isLoaded = true;
    }
    this.failure = update.errorCode === undefined || update.errorCode === 0 ? undefined : (text(update.errorMsg) ?? "");
    page.data.take(update);
  }

  private changed(number: number): void {
    const page = this.pages.get(number);
    if (page !== undefined) {
      const byId = new Map(page.data.entities().map((entity) => [`${entity.id.entityType}/${entity.id.id}`, entity]));
      this.rows.set(number, page.order.map((id) => byId.get(id)));
    }
    this.version++;
    this.listeners.forEach((listener) => listener());
  }

  /** Tells which places are in view. */
  want(first: number, last: number): void {
    const size = this.query.pageSize;
    const next = new Set<number>();
    for (let page = Math.floor(Math.max(0, first) / size); page <= Math.floor(Math.max(first, last) / size); page++) {
      next.add(page);
    }
    this.wanted = next;
    if (this.listeners.size > 0) {
      next.forEach((page) => this.open(page));
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.leave(), GRACE_MS);
  }

  private leave(): void {
    for (const [number, page] of this.pages) {
      if (!this.wanted.has(number)) {
        page.end?.();
        page.end = undefined;
        if (this.pages.size > KEPT) {
          this.pages.delete(number);
          this.rows.delete(number);
        }
      }
    }
  }

  /** Asks for the pages in view until the returned function is called. */
  readonly watch = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    this.wanted.forEach((page) => this.open(page));
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) {
        clearTimeout(this.timer);
        this.pages.forEach((page) => {
          page.end?.();
          page.end = undefined;
        });
      }
    };
  };

  readonly current = (): number => this.version;
  readonly total = (): number => (this.isOne() ? Math.min(1, this.known) : this.known);
  readonly problem = (): string | undefined => this.failure;
  readonly loaded = (): boolean => this.isLoaded;

  rowAt(index: number): EntityValues | undefined {
    const size = this.query.pageSize;
    return this.rows.get(Math.floor(index / size))?.[index % size];
  }
}
