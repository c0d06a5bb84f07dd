// Tooltips of things on the map: opened by a click or by pointing, kept up to date while they are open.

import L from "leaflet";
import type { Json } from "@/dashboard/model";
import type { Tooltip } from "./layer";
import { tooltipMarkup, type MapItem } from "./items";
import { tooltipElement } from "./markup";

interface Open {
  popup: L.Popup;
  tooltip: Tooltip;
  more: Json;
  /** Whether it stays at its place when what it belongs to moves. */
  fixed: boolean;
}

export class Popups {
  private readonly open = new Map<string, Open>();
  private ended = false;

  constructor(
    private readonly map: L.Map,
    private readonly items: () => readonly MapItem[],
    private readonly others: () => readonly Json[],
    private readonly act: (item: MapItem, name: string) => void,
  ) {}

  /** Opens the tooltip of an item at a place. */
  show(item: MapItem, at: L.LatLng, tooltip: Tooltip, offset: L.PointTuple, more: Json = {}, fixed = false): void {
    this.hide(item.id);
    const popup = L.popup({ autoClose: tooltip.autoclose, closeOnClick: tooltip.autoclose, offset, maxWidth: 320, autoPan: !tooltip.onHover, autoPanPaddingTopLeft: [50, 44], autoPanPaddingBottomRight: [10, 10] });
    this.open.set(item.id, { popup, tooltip, more, fixed });
    popup.on("remove", () => {
      if (this.open.get(item.id)?.popup === popup) {
        this.open.delete(item.id);
      }
    });
    popup.setLatLng(at);
    void this.fill(item, popup, tooltip, more).then(() => {
      if (this.ended || this.open.get(item.id)?.popup !== popup) {
        return;
      }
      popup.openOn(this.map);
      // Values that come later don't drag the map along.
      popup.options.autoPan = false;
    });
  }

  /** What a function says after the map is gone is not shown. */
  end(): void {
    this.ended = true;
  }

  hide(id: string): void {
    this.open.get(id)?.popup.remove();
    this.open.delete(id);
  }

  /** Fills open tooltips with new values, and moves them with what they belong to. */
  refresh(placeOf: (item: MapItem) => L.LatLng | undefined): void {
    if (this.open.size === 0) {
      return;
    }
    const byId = new Map(this.items().map((item) => [item.id, item]));
    for (const [id, { popup, tooltip, more, fixed }] of this.open) {
      const item = byId.get(id);
      if (item === undefined) {
        this.hide(id);
      } else {
        const at = fixed ? undefined : placeOf(item);
        void this.fill(item, popup, tooltip, more);
        if (at !== undefined && !popup.getLatLng()?.equals(at)) {
          popup.setLatLng(at);
        }
      }
    }
  }

  private async fill(item: MapItem, popup: L.Popup, tooltip: Tooltip, more: Json): Promise<void> {
    const markup = await tooltipMarkup(tooltip, item, this.others, more);
    popup.setContent(tooltipElement(markup, (name) => this.act(item, name)));
  }
}
