// Near places as one: at a zoom, whatever is within a distance of a place comes together with it and is one place in their middle. It begins
// a few zooms closer, so that what is left is spread evenly, and not at the closest zoom: that would go through all places a dozen times
// before a map shows them. Only the zooms that somebody looks at are worked out.

/** A tile has so many pixels each way. */
const TILE = 256;
/** So many zooms closer than the one that is looked at, what is near comes together first. */
const CLOSER = 2;

/** One or several places at a zoom. */
export interface Found {
  /** Which of the grouped places it is, if it is alone. */
  alone: number | undefined;
  /** Tells it from others of its zoom. */
  node: number;
  zoom: number;
  count: number;
  /** The middle. */
  lng: number;
  lat: number;
}

/** So many groups on a plane of size 1: how many places each has, and the first and last one of the chain of them. */
interface Level {
  size: number;
  xs: Float64Array;
  ys: Float64Array;
  counts: Int32Array;
  firsts: Int32Array;
  lasts: Int32Array;
}
/** A level with the chains of places: which one comes before another. */
type Chained = Level & { before: Int32Array };

function emptyLevel(most: number): Level {
  return { size: 0, xs: new Float64Array(most), ys: new Float64Array(most), counts: new Int32Array(most), firsts: new Int32Array(most), lasts: new Int32Array(most) };
}

const toX = (lng: number): number => lng / 360 + 0.5;

function toY(lat: number): number {
  const sin = Math.sin((lat * Math.PI) / 180);
  return Math.min(1, Math.max(0, 0.5 - (0.25 * Math.log((1 + sin) / (1 - sin))) / Math.PI));
}

const toLng = (x: number): number => (x - 0.5) * 360;

function toLat(y: number): number {
  return (360 * Math.atan(Math.exp(((180 - y * 360) * Math.PI) / 180))) / Math.PI - 90;
}

const hash = (x: number, y: number): number => Math.imul(x, 0x9e3779b1) ^ Math.imul(y, 0x85ebca6b);

/** Brings together what is within a distance. This runs many thousand times before it is compiled, so that it is plain. */
function joined({ size, xs, ys, counts, firsts, lasts }: Level, before: Int32Array, distance: number): Level {
  const level = emptyLevel(size);
  const nearest = distance * distance;
  // Squares twice as wide as the distance: whatever is near a place is in four of them at most. Those that share a number are in one chain.
  const scale = 0.5 / distance;
  const mask = 2 ** Math.ceil(Math.log2(size + 1)) - 1;
  const newest = new Int32Array(mask + 1).fill(-1);
  const older = new Int32Array(size);
  for (let n = 0; n < size; n++) {
    const square = hash(((xs[n] ?? 0) * scale) | 0, ((ys[n] ?? 0) * scale) | 0) & mask;
    older[n] = newest[square] ?? -1;
    newest[square] = n;
  }
  const done = new Uint8Array(size);
  for (let n = 0; n < size; n++) {
    if (done[n] === 1) {
      continue;
    }
    done[n] = 1;
    const x = xs[n] ?? 0;
    const y = ys[n] ?? 0;
    const lastColumn = ((x + distance) * scale) | 0;
    const lastRow = ((y + distance) * scale) | 0;
    let count = counts[n] ?? 1;
    let sumX = x * count;
    let sumY = y * count;
    let last = lasts[n] ?? n;
    for (let column = ((x - distance) * scale) | 0; column <= lastColumn; column++) {
      for (let row = ((y - distance) * scale) | 0; row <= lastRow; row++) {
        for (let other = newest[hash(column, row) & mask] ?? -1; other >= 0; other = older[other] ?? -1) {
          if (done[other] === 0) {
            const dx = (xs[other] ?? 0) - x;
            const dy = (ys[other] ?? 0) - y;
            if (dx * dx + dy * dy <= nearest) {
              const more = counts[other] ?? 1;
              done[other] = 1;
              count += more;
              sumX += (xs[other] ?? 0) * more;
              sumY += (ys[other] ?? 0) * more;
              before[firsts[other] ?? other] = last;
              last = lasts[other] ?? other;
            }
          }
        }
      }
    }
    const group = level.size++;
    level.xs[group] = sumX / count;
    level.ys[group] = sumY / count;
    level.counts[group] = count;
    level.firsts[group] = firsts[n] ?? n;
    level.lasts[group] = last;
  }
  return level;
}

export class Grouping {
  /** The places by themselves. */
  private readonly places: Level;
  private readonly levels = new Map<number, Chained>();

  /** `placeOf` returns longitude and latitude of one of so many places; `radius` is in pixels. */
  constructor(
    size: number,
    placeOf: (n: number) => readonly [number, number],
    private readonly radius: number,
    private readonly maxZoom: number,
  ) {
    const places = emptyLevel(size);
    for (let n = 0; n < size; n++) {
      const place = placeOf(n);
      places.xs[n] = toX(place[0]);
      places.ys[n] = toY(place[1]);
      places.counts[n] = 1;
      places.firsts[n] = n;
      places.lasts[n] = n;
    }
    places.size = size;
    this.places = places;
  }

  /** Returns what there is at a zoom between two longitudes and latitudes; the west may lie beyond the east, across the date line. */
  at(wanted: number, [west, south, east, north]: readonly [number, number, number, number]): Found[] {
    const zoom = Math.max(0, Math.min(Math.floor(wanted), this.maxZoom + 1));
    const { size, xs, ys, counts, firsts } = this.level(zoom);
    const inward = (lng: number): number => ((((lng + 180) % 360) + 360) % 360) - 180;
    const [from, to] = east - west >= 360 ? [-180, 180] : [inward(west), east === 180 ? 180 : inward(east)];
    const [top, bottom] = [toY(Math.min(90, north)), toY(Math.max(-90, south))];
    const within = (least: number, most: number): Found[] => {
      const found: Found[] = [];
      for (let node = 0; node < size; node++) {
        const [x, y, count] = [xs[node] ?? 0, ys[node] ?? 0, counts[node] ?? 1];
        if (x >= least && x <= most && y >= top && y <= bottom) {
          found.push({ alone: count === 1 ? firsts[node] : undefined, node, zoom, count, lng: toLng(x), lat: toLat(y) });
        }
      }
      return found;
    };
    return from > to ? [...within(toX(from), 1), ...within(0, toX(to))] : within(toX(from), toX(to));
  }

  /** Returns which places have come together in what was found. */
  membersOf({ node, zoom }: Found): number[] {
    const { lasts, before } = this.level(zoom);
    const members: number[] = [];
    for (let one = lasts[node] ?? -1; one >= 0; one = before[one] ?? -1) {
      members.push(one);
    }
    return members;
  }

  private level(zoom: number): Chained {
    let level = this.levels.get(zoom);
    if (level === undefined) {
      const before = new Int32Array(this.places.size).fill(-1);
      let reached = this.places;
      // Closer than the closest zoom that groups, each place is alone.
      for (let closer = Math.min(zoom + CLOSER, this.maxZoom); closer >= zoom; closer--) {
        reached = joined(reached, before, this.radius / (TILE * 2 ** closer));
      }
      level = { ...reached, before };
      this.levels.set(zoom, level);
    }
    return level;
  }
}
