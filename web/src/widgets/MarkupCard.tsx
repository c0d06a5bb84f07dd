// Text in Markdown or HTML with values in it. It can't run scripts: the markup is cleaned, and its style stays in a shadow tree.

import DOMPurify from "dompurify";
import { marked } from "marked";
import { useEffect, useRef, type ReactElement } from "react";
import { text } from "@/dashboard/model";
import { fillPattern } from "./text";
import type { WidgetProps } from "./registry";
import classes from "./widgets.module.css";

/** Escapes what is filled into markup, so that a value is never markup itself. */
function escapeHtml(value: string): string {
  return value.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

export default function MarkupCard({ widget, entities }: WidgetProps): ReactElement {
  const host = useRef<HTMLDivElement>(null);
  const { settings } = widget;
  const markdown = text(settings["markdownTextPattern"]);
  const keys = widget.datasources[0]?.dataKeys ?? [];
  const pattern = markdown ?? text(settings["cardHtml"]) ?? "";
  const filled = pattern.replace(/\$\{[^}]+\}/g, (name) => escapeHtml(fillPattern(name, entities[0], keys)));
  const css = text(settings["markdownCss"]) ?? text(settings["cardCss"]) ?? "";
  useEffect(() => {
    if (host.current === null) {
      return;
    }
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
    const html = markdown === undefined ? filled : marked.parse(filled, { async: false });
    const style = document.createElement("style");
    style.textContent = css;
    const content = DOMPurify.sanitize(html, { FORBID_TAGS: ["style", "form", "input", "button", "iframe"], RETURN_DOM_FRAGMENT: true });
    root.replaceChildren(style, content);
  }, [filled, css, markdown]);
  return <div ref={host} className={classes["markup"]} />;
}
