// Styles that a dashboard or a widget brings along, held to its own part of the page.

import { safeRules } from "@/ui/safeCss";

/** Returns styles that touch only what lies within an element, never itself, which holds them in; what the browser doesn't understand is left out. */
export function scopedSheet(css: string, selector: string): CSSStyleSheet | undefined {
  if (css.trim() === "") {
    return undefined;
  }
  const sheet = new CSSStyleSheet();
  // Parsed before, so that no unbalanced bracket leaves the scope.
  sheet.replaceSync(`@scope (${selector} > *) { ${safeRules(css)} }`);
  return sheet;
}
