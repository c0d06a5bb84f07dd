// The elements of a drawing as they stand in its text, so that one can be given a tag without another character changing.

/** Comments and other sections, which hold no elements, and start tags: their name and attributes. */
const PARTS = /<!--[\s\S]*?-->|<!\[CDATA\[[\s\S]*?\]\]>|<\?[\s\S]*?\?>|<![^>]*>|<([A-Za-z_][\w:.-]*)((?:[^>"']|"[^"]*"|'[^']*')*)>/g;
const TAG = /\s+tb:tag\s*=\s*(?:"([^"]*)"|'([^']*)')/;
const NAME = /^[\w][\w .:-]*$/;
/** By this the sandbox tells elements apart. */
export const MARK = "data-element-n";

export interface DrawnElement {
  n: number;
  name: string;
  id: string;
  tag: string;
}

/** Changes start tags of elements; each gets its number. */
function mapElements(drawing: string, change: (n: number, name: string, attributes: string, whole: string) => string): string {
  let n = 0;
  return drawing.replace(PARTS, (whole: string, name: string | undefined, attributes: string | undefined) => (name === undefined ? whole : change(n++, name, attributes ?? "", whole)));
}

function tagOf(attributes: string): string {
  const [, double, single] = TAG.exec(attributes) ?? [];
  return double ?? single ?? "";
}

/** Returns the elements of a drawing that can have a tag: all within it. */
export function elementsIn(drawing: string): DrawnElement[] {
  const found: DrawnElement[] = [];
  mapElements(drawing, (n, name, attributes, whole) => {
    if (n > 0) {
      found.push({ n, name, id: /\sid\s*=\s*["']([^"']*)["']/.exec(attributes)?.[1] ?? "", tag: tagOf(attributes) });
    }
    return whole;
  });
  return found;
}

/** Returns the drawing with the number of each element in it. */
export function numbered(drawing: string): string {
  return mapElements(drawing, (n, name, attributes) => `<${name} ${MARK}="${n}"${attributes}>`);
}

export function isTagName(tag: string): boolean {
  return NAME.test(tag);
}

/** Gives an element another tag; none takes it away. */
export function withElementTag(drawing: string, wanted: number, tag: string): string {
  return mapElements(drawing, (n, name, attributes, whole) => {
    if (n !== wanted || (tag !== "" && !isTagName(tag))) {
      return whole;
    }
    return `<${name}${tag === "" ? "" : ` tb:tag="${tag}"`}${attributes.replace(TAG, "")}>`;
  });
}
