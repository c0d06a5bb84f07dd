// HTML that functions of tenants make, cleaned: nothing in them runs, loads anything from elsewhere, or leaves its place.

import DOMPurify from "dompurify";
import { useEffect, useRef, type ReactElement } from "react";
import { isLocalAddress } from "./cleanStyle";
import { isLoadingStyle } from "./safeCss";

const ADDRESSES = new Set(["src", "xlink:href", "poster", "background", "data", "action", "formaction", "ping"]);
const NOTHING: ReadonlySet<string> = new Set();
let purifier: ReturnType<typeof DOMPurify> | undefined;
/** Addresses and styles that the present text may load though they are not of here. */
let allowed = NOTHING;

function cleaner(): ReturnType<typeof DOMPurify> {
  if (purifier === undefined) {
    purifier = DOMPurify(window);
    purifier.addHook("uponSanitizeAttribute", (element, data) => {
      const isLink = data.attrName === "href" && element.tagName.toLowerCase() === "a";
      const loads = ADDRESSES.has(data.attrName) || (data.attrName === "href" && !isLink);
      if (allowed.has(data.attrValue)) {
        return;
      }
      if ((loads && !isLocalAddress(data.attrValue)) || (data.attrName === "style" && isLoadingStyle(data.attrValue)) || (/^(fill|stroke|filter|mask|clip-path|marker-\w+|cursor)$/.test(data.attrName) && /url\s*\(\s*(?!['"]?#)/i.test(data.attrValue))) {
        data.keepAttr = false;
      }
    });
    purifier.addHook("afterSanitizeAttributes", (element) => {
      if (element.tagName.toLowerCase() === "a" && element.hasAttribute("href") && !(element.hasAttribute("data-action") && element.getAttribute("href") === "#")) {
        element.setAttribute("target", "_blank");
        element.setAttribute("rel", "noopener noreferrer");
      }
    });
  }
  return purifier;
}

const FORBIDDEN = ["style", "form", "input", "textarea", "select", "iframe", "link", "meta", "base"];

/** What is kept of markup: ids only where they can't be mistaken for those of the page, names of actions only where clicks do them. */
interface Kept {
  ids?: boolean;
  actions?: boolean;
  /** Attributes that may load from elsewhere, as they are. */
  addresses?: ReadonlySet<string>;
}

/** Returns cleaned HTML as nodes. */
export function cleanFragment(html: string, { ids, actions, addresses }: Kept = {}): DocumentFragment {
  const purify = cleaner();
  allowed = addresses ?? NOTHING;
  const made = purify.sanitize(html, {
    FORBID_TAGS: actions === true ? [...FORBIDDEN, "button"] : FORBIDDEN,
    FORBID_ATTR: ["name", "srcset", ...(ids === true ? [] : ["id"]), ...(actions === true ? ["class"] : [])],
    ADD_ATTR: actions === true ? ["data-action"] : [],
    // Attributes of data are what the page itself goes by.
    ALLOW_DATA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
  allowed = NOTHING;
  made.querySelectorAll("img:not([src])").forEach((image) => image.remove());
  // A picture that nobody has described adorns.
  made.querySelectorAll("img:not([alt])").forEach((image) => image.setAttribute("alt", ""));
  return made;
}

/** Returns the values of all attributes of markup that can load something. Nothing is loaded here. */
export function loadingAttributes(html: string): ReadonlySet<string> {
  const template = document.createElement("template");
  template.innerHTML = html;
  const attributes = [...template.content.querySelectorAll("*")].flatMap((element) => [...element.attributes]);
  return new Set(attributes.filter(({ name }) => ADDRESSES.has(name) || name === "style").map(({ value }) => value));
}

/** Shows HTML that a function of a tenant made. */
export default function CleanHtml({ html, className }: { html: string; className?: string | undefined }): ReactElement {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    host.current?.replaceChildren(cleanFragment(html));
  }, [html]);
  return <div ref={host} className={className} style={{ contain: "layout paint" }} />;
}
