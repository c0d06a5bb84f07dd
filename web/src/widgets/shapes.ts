// Geometry of dials and slices: angles in degrees, clockwise from the top.

export function onCircle(x: number, y: number, radius: number, angle: number): [number, number] {
  const radians = ((angle - 90) * Math.PI) / 180;
  return [x + radius * Math.cos(radians), y + radius * Math.sin(radians)];
}

const at = ([x, y]: [number, number]): string => `${x.toFixed(2)} ${y.toFixed(2)}`;

/** Returns the path of a ring's part, from one angle to another; a full one stops just before its start, where it would vanish. */
export function ringPath(x: number, y: number, outer: number, inner: number, from: number, to: number): string {
  const end = to - from >= 360 ? from + 359.99 : to;
  const large = end - from > 180 ? 1 : 0;
  const back = inner === 0 ? `L ${at([x, y])}` : `L ${at(onCircle(x, y, inner, end))} A ${inner} ${inner} 0 ${large} 0 ${at(onCircle(x, y, inner, from))}`;
  return `M ${at(onCircle(x, y, outer, from))} A ${outer} ${outer} 0 ${large} 1 ${at(onCircle(x, y, outer, end))} ${back} Z`;
}

/** Returns the angles at which slices of these sizes begin and end. */
export function slicesOf(values: number[]): [number, number][] {
  const total = values.reduce((sum, value) => sum + Math.max(0, value), 0);
  let angle = 0;
  return values.map((value) => {
    const from = angle;
    angle += total === 0 ? 0 : (Math.max(0, value) / total) * 360;
    return [from, angle];
  });
}

/** Returns about `count` round numbers between two limits. */
export function ticksOf(low: number, high: number, count: number): number[] {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough * 0.999) ?? rough;
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.max(0, Math.floor(high / step + 1e-9) - first + 1) }, (_, n) => Number(((first + n) * step).toPrecision(12)));
}
