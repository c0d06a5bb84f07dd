// Draws a symbol in the sandbox: a drawing whose scripts read values and change its elements with SVG.js.
// It runs after SVG.js and the prelude, with `container`, `say` and `state`, and returns what is done with new values.
const { utils } = globalThis.fieldlineBasics;
const report = (error) => say({ error: String(error?.message ?? error) });
const compiled = (body, names) => {
  try {
    const made = body ? new Function(...modules.names, ...names, body) : () => undefined;
    return body ? (...args) => made(...modules.values, ...args) : made;
  } catch (error) { report(error); return () => undefined; }
};

// Colours that depend on a value.
const inRange = ({ from, to }, value) => (from !== null && from !== undefined && from === to ? value === from : value >= (from ?? -Infinity) && value < (to ?? Infinity));
const mixed = ({ gradient = [], minValue = 0, maxValue = 100 }, value) => {
  const at = Math.min(1, Math.max(0, (value - minValue) / (maxValue - minValue || 1))) * (gradient.length - 1);
  const [from, to] = [gradient[Math.floor(at)], gradient[Math.ceil(at)]];
  return from === undefined ? undefined : `color-mix(in srgb, ${to} ${Math.round((at % 1) * 100)}%, ${from})`;
};
const colorFor = (settings, compute, value) => {
  const ranges = Array.isArray(settings.rangeList) ? settings.rangeList : settings.rangeList?.range ?? [];
  const number = Number(value);
  const found = settings.type === "range" ? ranges.find((range) => inRange(range, number))?.color
    : settings.type === "gradient" ? mixed(settings.gradient ?? {}, number)
    : settings.type === "function" ? compute(value) : undefined;
  return found ?? settings.color ?? "#000";
};
const colorProcessor = (settings) => {
  const compute = compiled(settings.type === "function" ? settings.colorFunction : undefined, ["value"]);
  return { color: settings.color ?? "#000", update(value) { this.color = colorFor(settings, compute, value); return this.color; } };
};
const propertyOf = ({ type, value }) => {
  if (type === "color_settings") { return colorProcessor(value ?? {}); }
  if (type === "fieldset") { return Object.fromEntries(Object.entries(value).map(([id, one]) => [id, propertyOf(one)])); }
  if (type === "array") { return value.map(propertyOf); }
  return value;
};

const all = (elements) => (Array.isArray(elements) ? elements : [elements]).filter(Boolean);
const ANIMATION = "animation";
// Symbols name a course as CSS does, or as SVG.js.
const EASINGS = { linear: "-", ease: "<>", "ease-in": "<", "ease-out": ">", "ease-in-out": "<>" };
const easingOf = (name) => {
  const points = /^cubic-bezier\(([^)]*)\)$/.exec(String(name).trim())?.[1].split(",").map(Number);
  return points?.length === 4 && points.every(Number.isFinite) ? SVG.easing.bezier(...points) : EASINGS[name] ?? (typeof name === "function" || Object.hasOwn(SVG.easing, name) ? name : "-");
};
const FLOW = "flow";

// An animation of its own timeline, so that each can be played, stopped and ended alone.
const animation = (element, duration) => {
  const timeline = new SVG.Timeline();
  element.timeline(timeline);
  const runner = element.animate(duration);
  let endless = false;
  const made = {
    running: () => timeline.active(),
    play: () => { timeline.play(); return made; },
    pause: () => { timeline.pause(); return made; },
    stop: () => { timeline.stop(); return made; },
    finish: () => { if (endless) { timeline.stop(); } else { timeline.finish(); } return made; },
    speed: (speed) => { timeline.speed(speed); return made; },
    loop: (times, swing) => { endless = !times; runner.loop(times || undefined, swing); return made; },
    ease: (name) => { runner.ease(easingOf(name)); return made; },
    relative: (x, y) => { runner.transform({ translateX: x, translateY: y }, true); return made; },
  };
  for (const name of ["transform", "rotate", "x", "y", "size", "width", "height", "move", "dmove", "scale", "attr"]) {
    made[name] = (...args) => { runner[name](...args); return made; };
  }
  return made;
};

// Dashes that run along a line.
const flow = (element, path, reversed) => {
  const line = element.path(path).fill("none");
  const motion = document.createElementNS("http://www.w3.org/2000/svg", "animate");
  const look = { attributeName: "stroke-dashoffset", values: "20;0", dur: "1s", begin: "indefinite", calcMode: "linear", repeatCount: "indefinite" };
  Object.entries(look).forEach(([name, value]) => motion.setAttribute(name, value));
  line.node.append(motion);
  const made = {
    play: () => { motion.beginElement(); return made; },
    stop: () => { motion.endElement(); return made; },
    finish: () => { motion.endElement(); line.remove(); return made; },
    flowAppearance: (width, color, linecap, dash, gap) => {
      line.stroke({ width, color, linecap: String(linecap).trim(), dasharray: `${dash} ${gap}` });
      motion.setAttribute("values", `${dash + (gap || dash)};0`);
      return made;
    },
    duration: (seconds) => { motion.setAttribute("dur", `${Math.max(0.05, Number(seconds) || 1)}s`); return made; },
    direction: (forward) => { line.attr("d", forward ? path : reversed || path); return made; },
  };
  return made;
};
const remembered = (kind, make) => ({
  begin: (element, ...args) => { element.remember(kind)?.finish(); const made = make(element, ...args); element.remember(kind, made); return made; },
  of: (element) => element.remember(kind) ?? undefined,
  end: (how) => (element) => { element.remember(kind)?.[how](); element.forget(kind); },
});
const moving = remembered(ANIMATION, animation);
const flowing = remembered(FLOW, flow);

container.innerHTML = state.drawing;
const root = container.querySelector("svg");
root.setAttribute("width", "100%");
root.setAttribute("height", "100%");
document.documentElement.style.overflow = container.style.overflow = document.body.style.overflow = "hidden";
root.style.userSelect = "none";
const svg = SVG(root);
const observers = new Map();
let nextCall = 1;

const textNode = (element) => {
  const first = element.node.firstElementChild;
  return element.type === "tspan" ? element.node : element.type === "text" ? (first?.tagName === "tspan" ? first : element.node) : undefined;
};
const unitOf = (unit) => (typeof unit === "string" ? unit : unit?.from ?? "");
const api = {
  generateElementId: () => `e${Math.random().toString(36).slice(2)}`,
  formatValue: (value, settings, units, zeros) => (typeof settings === "object" && settings !== null
    ? utils.formatValue(value, settings.decimals, unitOf(settings.units), settings.showZeroDecimals)
    : utils.formatValue(value, settings, unitOf(units), zeros)),
  text: (elements, text) => all(elements).forEach((element) => { const node = textNode(element); if (node) { node.textContent = String(text ?? ""); } }),
  font: (elements, font, color) => all(elements).filter(({ type }) => type === "text").forEach((element) => {
    if (font) { element.font({ family: font.family, size: font.size ? `${font.size}${font.sizeUnit ?? "px"}` : null, weight: font.weight, style: font.style }); }
    if (color) { element.fill(color); }
  }),
  icon: (elements, icon, size = 12, color = "#0000008A", center = true) => all(elements).filter(({ type }) => type === "g").forEach((element) => {
    element.clear();
    const drawing = state.icons[icon];
    if (drawing) {
      const scale = size / 24;
      element.path(drawing.path).fill({ color, rule: drawing.rule }).attr("transform", `scale(${scale}) translate(${center ? "-12 -12" : "0 0"})`);
    }
  }),
  cssAnimate: moving.begin, cssAnimation: moving.of, resetCssAnimation: moving.end("stop"), finishCssAnimation: moving.end("finish"),
  connectorAnimate: flowing.begin, connectorAnimation: flowing.of, resetConnectorAnimation: flowing.end("stop"), finishConnectorAnimation: flowing.end("finish"),
  disable: (elements) => all(elements).forEach((element) => { element.attr("pointer-events", "none"); element.node.removeAttribute("tabindex"); }),
  enable: (elements) => all(elements).forEach((element) => { element.attr("pointer-events", null); if (element.node.dataset.click) { element.node.setAttribute("tabindex", "0"); } }),
  callAction: (_event, id, value, observer) => {
    const call = nextCall++;
    observers.set(call, observer);
    say({ symbolAction: id, value: value === undefined ? null : JSON.parse(JSON.stringify(value)), call });
  },
  setValue: (id, value) => { if (ctx.values[id] !== value) { ctx.values[id] = value; draw(); } },
  unitSymbol: unitOf,
  convertUnitValue: (value) => Number(value),
};

const ctx = { api, tags: {}, values: { ...state.values }, properties: Object.fromEntries(Object.entries(state.properties).map(([id, one]) => [id, propertyOf(one)])), svg };
for (const element of svg.find("[tb\\:tag]")) {
  (ctx.tags[element.attr("tb:tag")] ??= []).push(element);
}
const render = compiled(state.render, ["ctx", "svg"]);
const tags = state.tags.map((tag) => ({ ...tag, draw: compiled(tag.render, ["ctx", "element"]) }));
for (const { tag, actions } of tags) {
  for (const [trigger, body] of Object.entries(actions)) {
    const act = compiled(body, ["ctx", "element", "event"]);
    for (const element of ctx.tags[tag] ?? []) {
      const { node } = element;
      const run = (event) => { try { act(ctx, element, event); } catch (error) { report(error); } };
      element.attr("cursor", "pointer");
      element.on(trigger, run);
      if (trigger === "click") {
        // What can be clicked can be reached by keys, too.
        Object.entries({ tabindex: "0", role: "button", "aria-label": tag, "data-click": "1" }).forEach(([name, value]) => node.setAttribute(name, value));
        node.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); run(event); } });
      }
    }
  }
}
const failed = new Set();
const tried = (name, run) => {
  try { run(); } catch (error) { if (!failed.has(name)) { failed.add(name); report(error); } }
};
// Scripts may set values while they draw; that is drawn in the next turn, and never forever.
let drawing = false;
let again = false;
function draw() {
  if (drawing) { again = true; return; }
  for (let turn = 0; turn < 10; turn++) {
    drawing = true;
    again = false;
    tried("symbol", () => render(ctx, svg));
    tags.forEach(({ tag, draw: drawTag }) => (ctx.tags[tag] ?? []).forEach((element) => tried(tag, () => drawTag(ctx, element))));
    drawing = false;
    if (!again) { return; }
  }
}
draw();
say({ drawn: true });
return ({ values, done }) => {
  if (values !== undefined) {
    const changed = Object.entries(values).filter(([id, value]) => JSON.stringify(ctx.values[id]) !== JSON.stringify(value));
    if (changed.length > 0) { Object.assign(ctx.values, Object.fromEntries(changed)); draw(); }
  }
  if (done !== undefined) {
    const observer = observers.get(done.call);
    observers.delete(done.call);
    tried("observer", () => (done.error === undefined ? observer?.next?.() : observer?.error?.(done.error)));
  }
};
