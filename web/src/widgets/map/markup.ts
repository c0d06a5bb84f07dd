// Markup of labels and tooltips, cleaned: nothing of it runs, and only what the map makes of it can be clicked.

import { cleanFragment } from "@/ui/cleaned";

const ACTION = "data-action";

/** Returns markup as elements that can't run anything. */
export function cleanMarkup(markup: string): DocumentFragment {
  if (!/[<&]/.test(markup)) {
    const fragment = document.createDocumentFragment();
    fragment.append(markup);
    return fragment;
  }
  return cleanFragment(markup, { actions: true });
}

/** Returns clean markup as text, for what takes no elements. */
export function cleanText(markup: string): string {
  const element = document.createElement("div");
  element.append(cleanMarkup(markup));
  return element.innerHTML;
}

/** Writes ThingsBoard's own tags for links and buttons that do something as links with the name of what they do. */
export function withActionTags(markup: string): string {
  return markup.replace(/<(link|button)-act\s+name=(['"])([^'"<>]*)\2\s*>/gi, `<a href="#" role="button" ${ACTION}="$3">`).replace(/<\/(link|button)-act>/gi, "</a>");
}

/** Returns the content of a tooltip; `act` hears the name of an action whose link was clicked. */
export function tooltipElement(markup: string, act: (name: string) => void): HTMLElement {
  const element = document.createElement("div");
  element.append(cleanMarkup(withActionTags(markup)));
  element.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest(`[${ACTION}]`) : null;
    if (link !== null) {
      event.preventDefault();
      act(link.getAttribute(ACTION) ?? "");
    }
  });
  return element;
}
