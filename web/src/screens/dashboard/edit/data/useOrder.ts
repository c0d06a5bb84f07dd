// Rows that are moved by their handles: dragged, or with the arrow keys.

import { useEffect, useRef, useState, type DragEvent, type HTMLAttributes, type KeyboardEvent } from "react";
import { moved } from "@/dashboard/edit/sources";

export interface Order {
  /** Stays with a row wherever it is moved, so that what is open in it stays open. */
  ids: readonly number[];
  /** Tells that a row is taken out. */
  removed: (n: number) => void;
  row: (n: number) => HTMLAttributes<HTMLElement> & { "data-over"?: true };
  handle: (n: number) => HTMLAttributes<HTMLElement> & { draggable: true };
}

const CARRIED = "text/x-fieldline-row";
const STEPS: Record<string, number> = { ArrowUp: -1, ArrowDown: 1 };

export function useOrder(count: number, move: (from: number, to: number) => void): Order {
  const [rows, setRows] = useState<readonly number[]>([]);
  const next = useRef(0);
  const focused = useRef<HTMLElement>(undefined);
  const [dragged, setDragged] = useState<number>();
  const [over, setOver] = useState<number>();
  let ids = rows;
  if (rows.length !== count) {
    // More or fewer came from elsewhere, as by undoing; the first ones are taken for those that were there.
    ids = [...rows.slice(0, count), ...Array.from({ length: Math.max(0, count - rows.length) }, () => next.current++)];
    setRows(ids);
  }
  useEffect(() => {
    focused.current?.focus();
    focused.current = undefined;
  });
  const go = (from: number, to: number): void => {
    if (from !== to && to >= 0 && to < count) {
      setRows(moved(ids, from, to));
      move(from, to);
    }
  };
  return {
    ids,
    removed: (n) => setRows(ids.toSpliced(n, 1)),
    row: (n) => ({
      ...(over === n && dragged !== undefined && dragged !== n ? { "data-over": true } : {}),
      onDragOver: (event: DragEvent) => {
        if (dragged !== undefined) {
          event.preventDefault();
          setOver(n);
        }
      },
      onDrop: (event: DragEvent) => {
        if (dragged !== undefined) {
          event.preventDefault();
          go(dragged, n);
          setDragged(undefined);
          setOver(undefined);
        }
      },
    }),
    handle: (n) => ({
      draggable: true,
      onDragStart: (event: DragEvent) => {
        event.stopPropagation();
        event.dataTransfer.effectAllowed = "move";
        // Some browsers drag nothing that carries nothing.
        event.dataTransfer.setData(CARRIED, String(n));
        setDragged(n);
      },
      onDragEnd: () => {
        setDragged(undefined);
        setOver(undefined);
      },
      onKeyDown: (event: KeyboardEvent<HTMLElement>) => {
        const step = STEPS[event.key];
        if (step !== undefined) {
          event.preventDefault();
          focused.current = event.currentTarget;
          go(n, n + step);
        }
      },
    }),
  };
}
