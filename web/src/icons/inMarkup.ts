// Icons in HTML: elements of the class `material-icons`, whose text is the name of an icon.

import { loadDrawing } from "./drawings";

const SVG = "http://www.w3.org/2000/svg";
const NAME = /^[\w:-]{1,60}$/;
/** Icons of one text at most. */
const MOST = 200;

/** Draws the icons of some markup as they come; names that no set has are left out, since they mean nothing to readers. */
export function drawIcons(markup: ParentNode): void {
  for (const element of [...markup.querySelectorAll<HTMLElement>(".material-icons")].slice(0, MOST)) {
    const name = element.textContent.trim();
    if (element.childElementCount > 0 || !NAME.test(name)) {
      continue;
    }
    element.textContent = "";
    element.setAttribute("aria-hidden", "true");
    void loadDrawing(name).then((drawing) => {
      if (drawing !== undefined) {
        const [svg, path] = [document.createElementNS(SVG, "svg"), document.createElementNS(SVG, "path")];
        Object.entries({ viewBox: "0 0 24 24", width: "1em", height: "1em", fill: "currentColor" }).forEach(([key, value]) => svg.setAttribute(key, value));
        path.setAttribute("d", drawing.path);
        path.setAttribute("fill-rule", drawing.rule);
        svg.append(path);
        element.replaceChildren(svg);
      }
    });
  }
}

/** The look of icons whose size nobody has set; rules of a card come after it. */
export const ICON_RULES = ".material-icons { display: inline-block; font-size: 24px; line-height: 1; vertical-align: middle; }\n.material-icons svg { display: block; }\n";
