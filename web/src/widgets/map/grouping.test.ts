import { expect, test } from "vitest";
import { Grouping } from "./grouping";

const WORLD = [-180, -85, 180, 85] as const;
const of = (places: readonly (readonly [number, number])[], radius = 80, maxZoom = 17): Grouping => new Grouping(places.length, (n) => places[n] ?? [0, 0], radius, maxZoom);

test("what is near comes together, and lies in the middle of its members", () => {
  const groups = of([[9, 48], [9.0002, 48], [9.0004, 48], [9, 49]]);
  const near = groups.at(10, WORLD);
  expect(near.map(({ count, alone }) => [count, alone])).toEqual([[3, undefined], [1, 3]]);
  expect(near[0]?.lng).toBeCloseTo(9.0002, 6);
  expect(near.map((found) => groups.membersOf(found).sort())).toEqual([[0, 1, 2], [3]]);
  expect(groups.at(0, WORLD).map(({ count }) => count)).toEqual([4]);
  expect(groups.at(18, WORLD)).toHaveLength(4);
});

test("places that are the same stay one until nothing is grouped", () => {
  const groups = of([[1, 1], [1, 1]]);
  expect(groups.at(17, WORLD)).toHaveLength(1);
  expect(groups.at(18, WORLD)).toHaveLength(2);
  expect(groups.at(30, WORLD)).toHaveLength(2);
  expect(of([[1, 1], [1, 1]], 80, 5).at(6, WORLD)).toHaveLength(2);
});

test("a part of the world has what lies in it, across the date line too", () => {
  const groups = of([[179, 10], [-179, 10], [0, 10]]);
  expect(groups.at(18, [170, 0, 190, 20]).map(({ alone }) => alone)).toEqual([0, 1]);
  expect(groups.at(18, [-10, 0, 10, 20]).map(({ alone }) => alone)).toEqual([2]);
  expect(groups.at(18, [-10, 11, 10, 20])).toEqual([]);
  expect(of([]).at(3, WORLD)).toEqual([]);
});

test("each place is in one group at every zoom, and those that are left are further apart than the distance", () => {
  let seed = 7;
  const random = (): number => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647;
  const places = Array.from({ length: 400 }, (): [number, number] => [random() ** 3 * 40, random() ** 3 * 40]);
  const groups = of(places);
  for (let zoom = 17; zoom >= 0; zoom--) {
    const found = groups.at(zoom, WORLD);
    expect(found.flatMap((one) => groups.membersOf(one)).sort((a, b) => a - b)).toEqual(places.map((_, n) => n));
    expect(found.every((one) => groups.membersOf(one).length === one.count)).toBe(true);
  }
  const y = (lat: number): number => Math.log(Math.tan(Math.PI / 4 + (lat * Math.PI) / 360)) / (2 * Math.PI);
  const alone = groups.at(8, WORLD).flatMap((one) => (one.alone === undefined ? [] : [one]));
  const pixels = (a: (typeof alone)[0], b: (typeof alone)[0]): number => Math.hypot((a.lng - b.lng) / 360, y(a.lat) - y(b.lat)) * 256 * 2 ** 8;
  expect(alone.length).toBeGreaterThan(20);
  expect(alone.every((a, n) => alone.slice(n + 1).every((b) => pixels(a, b) > 80))).toBe(true);
});
