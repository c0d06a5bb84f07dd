// Text in Markdown or HTML with values in it, from a pattern or a function. It can't run scripts: the markup is cleaned, and its
// style stays in a shadow tree. Elements whose id is the name of an action do it when they are clicked.

import { useMediaQuery } from "@mantine/hooks";
import { marked } from "marked";
import { lazy, Suspense, useContext, useEffect, useMemo, useRef, useState, type ReactElement } from "react";
import { useLocation } from "wouter";
import { SessionContext } from "@/app/session";
import { actionsOf, bodyOf } from "@/dashboard/actions";
import { text, type Json } from "@/dashboard/model";
import type { SourceValues } from "@/dashboard/source";
import { t } from "@/i18n";
import { useFunctions } from "@/sandbox/functions";
import { drawIcons, ICON_RULES } from "@/icons/inMarkup";
import { cleanFragment, loadingAttributes } from "@/ui/cleaned";
import { EmptyState } from "@/ui/feedback";
import { safeRules } from "@/ui/safeCss";
import { iconRules, plainTemplate } from "./angular";
import { escapeHtml, escapeMarkdown, fillMarkup, formatted } from "./map/formatted";
import { addressFor } from "./home/destinations";
import type { WidgetProps } from "./registry";
import { functionContext } from "./table/cells";
import { MADE, resolveTemplate, TEMPLATE, TEMPLATE_RULES, type Placed } from "./templates";
import classes from "./widgets.module.css";

const StateWidget = lazy(() => import("./home/StateWidget"));
const HomePart = lazy(() => import("./home/HomePart"));
const NOWHERE: Placed[] = [];
/** Where ThingsBoard's cards have their form for phones. */
const NARROW = "(max-width: 959px)";

/** Returns the entities of all sources as functions of ThingsBoard know them. */
function dataOf(sources: readonly SourceValues[]): Json[] {
  let index = 0;
  return sources.flatMap(({ source, entities }) => entities.map((entity) => formatted(entity, source.dataKeys, source, index++)));
}

/** Returns the values of all entities as one: where several have a key, the first one counts. */
export function merged(data: readonly Json[]): Json {
  return data.reduceRight<Json>((all, one) => ({ ...all, ...Object.fromEntries(Object.entries(one).filter(([, value]) => value !== undefined && value !== "")) }), {});
}

interface Markup {
  html: string;
  /** The pattern without values: only addresses that it has itself may be of elsewhere. */
  bare: string;
  problem?: string;
}

/** Returns Markdown as HTML. Within code the signs of values would else be escaped twice. */
export function renderedMarkdown(markdown: string): string {
  return marked.parse(markdown, { async: false }).replace(/&amp;(#\d+;)/g, "&$1");
}

export default function MarkupCard({ widget, sources, entities, bounds, act }: WidgetProps): ReactElement {
  const host = useRef<HTMLDivElement>(null);
  const { settings, config } = widget;
  const { ask } = useFunctions(useMemo(() => functionContext(widget), [widget]));
  const isMarkdown = widget.fqn.endsWith("markdown_card") || text(settings["markdownTextPattern"]) !== undefined;
  const body = settings["useMarkdownTextFunction"] === true ? bodyOf(settings["markdownTextFunction"]) : undefined;
  const pattern = (isMarkdown ? text(settings["markdownTextPattern"]) : text(settings["cardHtml"])) ?? "";
  const data = dataOf(sources);
  const kept = useRef<Markup>({ html: "", bare: "" });
  if (body !== undefined) {
    const result = ask(body, ["data"], [data]);
    if (result !== undefined) {
      kept.current = result.error === undefined ? { html: plainTemplate(text(result.value) ?? ""), bare: "" } : { html: "", bare: "", problem: result.error };
    }
  } else {
    const keys = sources.flatMap(({ source }) => source.dataKeys);
    // `${#2}` is the value of the third key, whatever its label.
    const all = merged(data);
    const places = keys.map((key, n) => [`#${n}`, all[key.label]] as const);
    const filled = (values: Json): string => fillMarkup(plainTemplate(pattern), values, keys, isMarkdown ? escapeMarkdown : escapeHtml);
    kept.current = { html: filled({ ...all, ...Object.fromEntries(places) }), bare: filled({}) };
  }
  const { html, bare, problem } = kept.current;
  const role = useContext(SessionContext)?.authority;
  const [, go] = useLocation();
  const isNarrow = useMediaQuery(NARROW) ?? false;
  const [chosen, setChosen] = useState<ReadonlyMap<string, string>>(new Map());
  const made = useMemo(() => {
    const rendered = isMarkdown ? renderedMarkdown(html) : html;
    return TEMPLATE.test(html) ? resolveTemplate(rendered, { chosen, isNarrow, screen: (path) => (role === undefined ? undefined : addressFor(path, role)) }) : { html: rendered, placed: undefined };
  }, [html, isMarkdown, chosen, role, isNarrow]);
  const css = text(settings["markdownCss"]) ?? text(settings["cardCss"]) ?? "";
  useEffect(() => {
    if (host.current === null) {
      return;
    }
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
    const style = document.createElement("style");
    style.textContent = ICON_RULES + (made.placed === undefined ? "" : TEMPLATE_RULES) + safeRules(iconRules(css));
    const content = cleanFragment(made.html, { ids: true, addresses: loadingAttributes(isMarkdown ? renderedMarkdown(bare) : bare) });
    for (const place of made.placed === undefined ? [] : content.querySelectorAll(`.${MADE.place}`)) {
      const slot = document.createElement("slot");
      slot.name = place.id;
      place.replaceChildren(slot);
    }
    content.querySelectorAll(`.${MADE.link}`).forEach((link) => link.removeAttribute("target"));
    for (const { name } of actionsOf(config, "elementClick")) {
      for (const element of content.querySelectorAll<HTMLElement>(`#${CSS.escape(name)}`)) {
        element.setAttribute("role", "button");
        element.tabIndex = 0;
        element.style.cursor = "pointer";
      }
    }
    drawIcons(content);
    root.replaceChildren(style, content);
  }, [made, bare, css, isMarkdown, config]);
  const click = (event: { nativeEvent: Event }): void => {
    const path = event.nativeEvent.composedPath().filter((target) => target instanceof HTMLElement);
    const toggle = path.find((target) => target.classList.contains(MADE.toggle));
    const link = path.find((target) => target.classList.contains(MADE.link))?.getAttribute("href") ?? undefined;
    const isPlain = !(event.nativeEvent instanceof MouseEvent && (event.nativeEvent.ctrlKey || event.nativeEvent.metaKey || event.nativeEvent.shiftKey));
    if (made.placed !== undefined && toggle !== undefined) {
      const [name = "", value = ""] = toggle.id.split(":");
      setChosen((before) => new Map(before).set(name, value));
    } else if (made.placed !== undefined && link !== undefined && isPlain && !event.nativeEvent.defaultPrevented) {
      event.nativeEvent.preventDefault();
      go(link);
      return;
    }
    const names = actionsOf(config, "elementClick").map(({ name }) => name);
    const element = event.nativeEvent.composedPath().find((target) => target instanceof HTMLElement && names.includes(target.id));
    if (element instanceof HTMLElement) {
      event.nativeEvent.preventDefault();
      act("elementClick", entities[0], element.id);
    }
  };
  return (
    <>
      {problem !== undefined && <EmptyState>{t("The code of “{name}” failed: {problem}", { name: widget.title || widget.fqn, problem: problem.slice(0, 300) })}</EmptyState>}
      <div ref={host} className={classes["markup"]} onClick={click} onKeyDown={(event) => event.key === "Enter" && (event.nativeEvent.composedPath()[0] as Element | undefined)?.getAttribute("role") === "button" && click(event)}>
        {(made.placed ?? NOWHERE).map((placed) => (
          <div key={placed.slot} slot={placed.slot} style={{ height: "100%", width: "100%" }}>
            <Suspense>{"part" in placed ? <HomePart name={placed.part} /> : <StateWidget widget={{ ...widget, settings: { stateId: placed.state } }} sources={[]} entities={[]} bounds={bounds} requests={[]} act={act} />}</Suspense>
          </div>
        ))}
      </div>
    </>
  );
}
