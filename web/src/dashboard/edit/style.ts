// How a widget looks, apart from what it shows: for giving one widget the look of another.

import { changeWidget } from "./document";
import { fqnOf, object, text, type Json } from "../model";

/** The look of the card, which widgets of all types have. */
const CARD = [
  "backgroundColor", "color", "padding", "margin", "borderRadius", "dropShadow", "titleFont", "titleColor", "titleStyle", "iconColor", "iconSize", "widgetStyle", "widgetCss",
] as const;

/** Settings that are looks by their names, such as `valueFont`; what is shown, from where, and what a click does are others. */
const LOOK = /(colors?|fonts?|background|padding|style|shadow|radius|size|css)$/i;
/** Sizes of what is shown: how many rows a page has, how much a value goes up by. */
const CONTENT = /(page|step|file)size$/i;

const part = (from: Json, isPart: (name: string) => boolean): Json => Object.fromEntries(Object.entries(from).filter(([name]) => isPart(name)));
const ofCard = (name: string): boolean => CARD.some((one) => one === name);
const ofLook = (name: string): boolean => LOOK.test(name) && !CONTENT.test(name);

/** The look of a widget, as text for the clipboard. */
export function copyStyle(document: Json, id: string): string {
  const widget = object(object(document["widgets"])[id]);
  const config = object(widget["config"]);
  return JSON.stringify({ fieldlineStyle: { type: fqnOf(widget), card: part(config, ofCard), settings: part(object(config["settings"]), ofLook) } });
}

/** Gives widgets the look of a clipboard: their cards, and what is inside to those of the same type. Other text changes nothing. */
export function pasteStyle(document: Json, ids: Iterable<string>, clipboard: string): Json {
  let style: Json = {};
  try {
    style = object(object(JSON.parse(clipboard))["fieldlineStyle"]);
  } catch {
    // Other text is no style.
  }
  const type = text(style["type"]);
  if (type === undefined) {
    return document;
  }
  let next = document;
  for (const id of ids) {
    const widget = object(object(next["widgets"])[id]);
    const config = object(widget["config"]);
    const settings = object(config["settings"]);
    const dressed = fqnOf(widget) === type ? { settings: { ...part(settings, (name) => !ofLook(name)), ...part(object(style["settings"]), ofLook) } } : {};
    next = changeWidget(next, id, { ...widget, config: { ...part(config, (name) => !ofCard(name)), ...part(object(style["card"]), ofCard), ...dressed } });
  }
  return next;
}
