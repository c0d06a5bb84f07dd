// Near places as one, by zoom: from the closest zoom on, whatever is within a distance of a place comes together with it, and what has come
// together goes on as one place in the middle of it. Only the zooms that somebody looks at are worked out, and those closer than them.

/** A tile has so many pixels each way. */
const TILE = 256;

/** One or several places at a zoom. */
export interface Found {
  /** Which of the grouped places it is, if it is alone. */
  alone: number | undefined;
  /** Tells it from others. */
  node: number;
  count: number;
  /** The middle. */
  lng: number;
  lat: number;
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

export class Grouping {
  /** Where places and groups are on a plane of size 1: first the places, then the groups. */
  private readonly xs: Float64Array;
  private readonly ys: Float64Array;
  private readonly counts: Int32Array;
  /** The parts of a group: its first one, and which part follows another. */
  private readonly parts: Int32Array;
  private readonly following: Int32Array;
  /** At which zoom each was put in its place at last. */
  private readonly done: Int32Array;
  private used: number;
  /** What there is at each zoom, from the one on at which nothing is grouped. */
  private readonly levels: Int32Array[];
  /** Places by squares: the last one of those that share a number, and the one before another. */
  private readonly last: Int32Array;
  private readonly before: Int32Array;

  /** `placeOf` returns longitude and latitude of one of so many places; `radius` is in pixels. */
  constructor(
    private readonly size: number,
    placeOf: (n: number) => readonly [number, number],
    private readonly radius: number,
    private readonly maxZoom: number,
  ) {
    const most = Math.max(1, 2 * size);
    this.xs = new Float64Array(most);
    this.ys = new Float64Array(most);
    this.counts = new Int32Array(most).fill(1);
    this.parts = new Int32Array(most).fill(-1);
    this.following = new Int32Array(most).fill(-1);
    this.done = new Int32Array(most).fill(-1);
    this.before = new Int32Array(most);
    this.last = new Int32Array(2 ** Math.ceil(Math.log2(most + 1)));
    this.used = size;
    const all = new Int32Array(size);
    for (let n = 0; n < size; n++) {
      const place = placeOf(n);
      this.xs[n] = toX(place[0]);
      this.ys[n] = toY(place[1]);
      all[n] = n;
    }
    this.levels = [all];
  }

  /** Returns what there is at a zoom between two longitudes and latitudes; the west may lie beyond the east, across the date line. */
  at(zoom: number, [west, south, east, north]: readonly [number, number, number, number]): Found[] {
    const level = this.level(zoom);
    const inward = (lng: number): number => ((((lng + 180) % 360) + 360) % 360) - 180;
    const [from, to] = east - west >= 360 ? [-180, 180] : [inward(west), east === 180 ? 180 : inward(east)];
    const [top, bottom] = [toY(Math.min(90, north)), toY(Math.max(-90, south))];
    const within = (least: number, most: number): Found[] => {
      const found: Found[] = [];
      for (const node of level) {
        const [x, y] = [this.xs[node] ?? 0, this.ys[node] ?? 0];
        if (x >= least && x <= most && y >= top && y <= bottom) {
          found.push({ alone: node < this.size ? node : undefined, node, count: this.counts[node] ?? 1, lng: toLng(x), lat: toLat(y) });
        }
      }
      return found;
    };
    return from > to ? [...within(toX(from), 1), ...within(0, toX(to))] : within(toX(from), toX(to));
  }

  /** Returns which places have come together in what was found. */
  membersOf({ node }: Found): number[] {
    const members: number[] = [];
    const waiting = [node];
    for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
      if (one < this.size) {
        members.push(one);
      }
      for (let part = this.parts[one] ?? -1; part >= 0; part = this.following[part] ?? -1) {
        waiting.push(part);
      }
    }
    return members;
  }

  private level(zoom: number): Int32Array {
    const wanted = this.maxZoom + 1 - Math.max(0, Math.min(Math.floor(zoom), this.maxZoom + 1));
    let level = this.levels.at(-1) ?? new Int32Array();
    while (this.levels.length <= wanted) {
      level = this.joined(level, this.maxZoom + 1 - this.levels.length);
      this.levels.push(level);
    }
    return this.levels[wanted] ?? level;
  }

  /** Brings together what is near each other at a zoom. This runs some hundred thousand times before it is compiled, so that it is plain. */
  private joined(level: Int32Array, zoom: number): Int32Array {
    const { xs, ys, counts, parts, following, done, last, before } = this;
    const distance = this.radius / (TILE * 2 ** zoom);
    const nearest = distance * distance;
    // Squares twice as wide as the distance: whatever is near a place is in four of them at most.
    const scale = 0.5 / distance;
    const mask = last.length - 1;
    last.fill(-1);
    for (let at = 0; at < level.length; at++) {
      const node = level[at] ?? 0;
      const square = hash(((xs[node] ?? 0) * scale) | 0, ((ys[node] ?? 0) * scale) | 0) & mask;
      before[node] = last[square] ?? -1;
      last[square] = node;
    }
    const next = new Int32Array(level.length);
    let n = 0;
    for (let at = 0; at < level.length; at++) {
      const node = level[at] ?? 0;
      if (done[node] === zoom) {
        continue;
      }
      done[node] = zoom;
      const x = xs[node] ?? 0;
      const y = ys[node] ?? 0;
      const lastColumn = ((x + distance) * scale) | 0;
      const lastRow = ((y + distance) * scale) | 0;
      const own = counts[node] ?? 1;
      let count = own;
      let sumX = x * own;
      let sumY = y * own;
      let part = -1;
      for (let column = ((x - distance) * scale) | 0; column <= lastColumn; column++) {
        for (let row = ((y - distance) * scale) | 0; row <= lastRow; row++) {
          for (let other = last[hash(column, row) & mask] ?? -1; other >= 0; other = before[other] ?? -1) {
            const dx = (xs[other] ?? 0) - x;
            const dy = (ys[other] ?? 0) - y;
            if (dx * dx + dy * dy <= nearest && done[other] !== zoom) {
              const more = counts[other] ?? 1;
              done[other] = zoom;
              count += more;
              sumX += (xs[other] ?? 0) * more;
              sumY += (ys[other] ?? 0) * more;
              following[other] = part;
              part = other;
            }
          }
        }
      }
      if (part < 0) {
        next[n++] = node;
        continue;
      }
      const group = this.used++;
      following[node] = part;
      parts[group] = node;
      counts[group] = count;
      xs[group] = sumX / count;
      ys[group] = sumY / count;
      next[n++] = group;
    }
    return n === level.length ? level : next.subarray(0, n);
  }
}
