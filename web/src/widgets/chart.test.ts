import { expect, test, vi } from "vitest";

vi.mock("uplot", () => ({ default: class {} }));
vi.mock("uplot/dist/uPlot.min.css", () => ({}));

test("series are laid side by side, with gaps where one has no point", async () => {
  const { tableOf } = await import("./TimeChart");
  const one = (points: [number, number][]) => ({ label: "", color: "", bars: false, points: new Map(points) });
  expect(tableOf([one([[2_000, 5], [1_000, 4]]), one([[3_000, 7]])])).toEqual([[1, 2, 3], [4, 5, null], [null, null, 7]]);
});
