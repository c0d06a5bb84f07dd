// Text in Markdown or HTML with values in it, from a pattern or a function. It can't run scripts: the markup is cleaned, and its
// style stays in a shadow tree. Elements whose id is the name of an action do it when they are clicked.

import { marked } from "marked";
import { useEffect, useMemo, useRef, type ReactElement } from "react";
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
import type { WidgetProps } from "./registry";
import { functionContext } from "./table/cells";
import classes from "./widgets.module.css";

/** Returns the entities of all sources as functions of ThingsBoard know them. */
function dataOf(sources: readonly SourceValues[]): Json[] {
  let index = 0;
  return sources.flatMap(({ source, entities }) => entities.map((entity) => formatted(entity, source.dataKeys, source, index++)));
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

export default function MarkupCard({ widget, sources, entities, act }: WidgetProps): ReactElement {
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
    const places = keys.map((key, n) => [`#${n}`, data[0]?.[key.label]] as const);
    const filled = (values: Json): string => fillMarkup(plainTemplate(pattern), values, keys, isMarkdown ? escapeMarkdown : escapeHtml);
    kept.current = { html: filled({ ...data[0], ...Object.fromEntries(places) }), bare: filled({}) };
  }
  const { html, bare, problem } = kept.current;
  const css = text(settings["markdownCss"]) ?? text(settings["cardCss"]) ?? "";
  useEffect(() => {
    if (host.current === null) {
      return;
    }
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
    const render = (written: string): string => (isMarkdown ? renderedMarkdown(written) : written);
    const style = document.createElement("style");
    style.textContent = ICON_RULES + safeRules(iconRules(css));
    const content = cleanFragment(render(html), { ids: true, addresses: loadingAttributes(render(bare)) });
    for (const { name } of actionsOf(config, "elementClick")) {
      for (const element of content.querySelectorAll<HTMLElement>(`#${CSS.escape(name)}`)) {
        element.setAttribute("role", "button");
        element.tabIndex = 0;
        element.style.cursor = "pointer";
      }
    }
    drawIcons(content);
    root.replaceChildren(style, content);
  }, [html, bare, css, isMarkdown, config]);
  const click = (event: { nativeEvent: Event }): void => {
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
      <div ref={host} className={classes["markup"]} onClick={click} onKeyDown={(event) => event.key === "Enter" && click(event)} />
    </>
  );
}
