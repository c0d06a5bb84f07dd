// Frames hold what lies within them: whatever moves a frame moves that, too.

import { NODE } from "./layout";
import { placeOf, type ChainDocument } from "./model";

interface Point {
  x: number;
  y: number;
}

/** Returns the middle of a node, a note or a frame by its key. */
function middles(chain: ChainDocument): Map<string, Point> {
  return new Map([
    ...chain.nodes.map((node): [string, Point] => {
      const { x, y } = placeOf(node);
      return [node.key, { x: x + NODE.width / 2, y: y + NODE.height / 2 }];
    }),
    ...chain.remarks.map(({ key, x, y, width, height }): [string, Point] => [key, { x: x + width / 2, y: y + height / 2 }]),
  ]);
}

/** Returns the keys of what lies within a frame: its middle counts. Of two frames that hold each other's middle, the larger holds the smaller. */
export function within(chain: ChainDocument, frame: string): string[] {
  const outer = chain.remarks.find(({ key, kind }) => key === frame && kind === "frame");
  if (outer === undefined) {
    return [];
  }
  const { x: left, y: top, width, height } = outer;
  const larger = new Set(chain.remarks.filter((one) => one.kind === "frame" && one.width * one.height >= width * height).map(({ key }) => key));
  return [...middles(chain)].flatMap(([key, { x, y }]) => (!larger.has(key) && x >= left && x <= left + width && y >= top && y <= top + height ? [key] : []));
}

/** Adds what frames among the moved ones carry with them; what is moved by itself is left as it is. */
export function carried(chain: ChainDocument, places: ReadonlyMap<string, Point>): Map<string, Point> {
  const all = new Map(places);
  const from = new Map([...chain.nodes.map((node): [string, Point] => [node.key, placeOf(node)]), ...chain.remarks.map((remark): [string, Point] => [remark.key, remark])]);
  for (const [frame, to] of places) {
    const was = from.get(frame);
    for (const key of was === undefined ? [] : within(chain, frame)) {
      const place = from.get(key);
      if (place !== undefined && was !== undefined && !all.has(key)) {
        all.set(key, { x: place.x + to.x - was.x, y: place.y + to.y - was.y });
      }
    }
  }
  return all;
}
