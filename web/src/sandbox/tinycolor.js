// The part of the tinycolor library that functions for colours use; dashboards expect it to be there.
globalThis.tinycolor ??= (() => {
  const pen = new OffscreenCanvas(1, 1).getContext("2d");
  const parse = (input) => {
    if (typeof input === "object" && input !== null) { return input.rgba ?? [input.r ?? 0, input.g ?? 0, input.b ?? 0, input.a ?? 1]; }
    pen.fillStyle = "#000";
    pen.fillStyle = String(input);
    const shown = pen.fillStyle;
    const hex = /^#(..)(..)(..)$/.exec(shown);
    return hex === null ? (shown.match(/[\d.]+/g) ?? [0, 0, 0, 1]).map(Number) : [...hex.slice(1).map((part) => parseInt(part, 16)), 1];
  };
  const mixed = (from, to, percent) => from.map((part, n) => part + ((to[n] - part) * percent) / 100);
  const make = (rgba) => {
    const [r, g, b, a] = [...rgba.slice(0, 3).map((part) => Math.min(255, Math.max(0, Math.round(part)))), Math.min(1, Math.max(0, rgba[3] ?? 1))];
    const hex = () => [r, g, b].map((part) => part.toString(16).padStart(2, "0")).join("");
    const brightness = (r * 299 + g * 587 + b * 114) / 1000;
    return {
      rgba: [r, g, b, a],
      toHex: hex, toHexString: () => `#${hex()}`, toHex8String: () => `#${hex()}${Math.round(a * 255).toString(16).padStart(2, "0")}`,
      toRgb: () => ({ r, g, b, a }), toRgbString: () => (a === 1 ? `rgb(${r}, ${g}, ${b})` : `rgba(${r}, ${g}, ${b}, ${a})`), toString: () => (a === 1 ? `#${hex()}` : `rgba(${r}, ${g}, ${b}, ${a})`),
      getAlpha: () => a, setAlpha: (alpha) => make([r, g, b, Number(alpha)]), isValid: () => true, clone: () => make([r, g, b, a]),
      getBrightness: () => brightness, isDark: () => brightness < 128, isLight: () => brightness >= 128,
      lighten: (amount = 10) => make(mixed([r, g, b, a], [255, 255, 255, a], amount)), darken: (amount = 10) => make(mixed([r, g, b, a], [0, 0, 0, a], amount)),
    };
  };
  const tinycolor = (input) => make(parse(input));
  return Object.assign(tinycolor, { mix: (from, to, percent = 50) => make(mixed(parse(from), parse(to), percent)), fromRatio: ({ r, g, b, a }) => make([r * 255, g * 255, b * 255, a ?? 1]) });
})();
