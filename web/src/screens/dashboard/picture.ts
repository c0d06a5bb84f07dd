// A picture of a part of the page: a copy of it with all of its looks is drawn as an SVG, which browsers draw without asking the user.

/** Properties that elements take from what they are in; a copy needs them only where they differ from there. */
const INHERITED = /^(color|font|line-height|letter-spacing|word-|text-(align|transform|indent|anchor|rendering|shadow)|white-space|visibility|direction|list-style|border-(collapse|spacing)|caption-side|fill|stroke|paint-order|overflow-wrap|quotes|tab-size|dominant-baseline|writing-mode|-webkit-text)/;
/** What reads the same where it is otherwise: parts of a line that may get narrower than their content, and boxes of the document that is compared with. */
const ALWAYS = /^(box-sizing|min-(width|height))$/;
/** What a picture that stands still has no use for. */
const IDLE = /^(-webkit-text-fill-color|animation|transition|cursor|pointer-events|user-select|will-change|scroll|perspective-origin|inline-size|block-size|(min|max)-(inline|block)-size|-webkit-(locale|user|tap))/;

/** The looks that elements have by themselves, by their names. */
type Plain = Map<string, Map<string, string>>;

interface Copying {
  plain: Plain;
  /** A document without any styles of the page, as a picture is one. */
  bare: Document;
}

const looksOf = (style: CSSStyleDeclaration): Map<string, string> => new Map(Array.from(style, (name) => [name, style.getPropertyValue(name)]));

function plainLooks({ plain, bare }: Copying, element: Element): Map<string, string> {
  const key = `${element.namespaceURI ?? ""} ${element.localName}`;
  const known = plain.get(key);
  if (known !== undefined) {
    return known;
  }
  const sample = bare.createElementNS(element.namespaceURI, element.localName);
  bare.body.append(sample);
  const looks = looksOf(bare.defaultView?.getComputedStyle(sample) ?? getComputedStyle(sample));
  sample.remove();
  plain.set(key, looks);
  return looks;
}

/** Draws what the page already has as an address with all of its data; nothing of what came from elsewhere, which browsers keep secret. */
function dataOf(drawing: CanvasImageSource, width: number, height: number): string | undefined {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(width * devicePixelRatio));
  canvas.height = Math.max(1, Math.round(height * devicePixelRatio));
  try {
    canvas.getContext("2d")?.drawImage(drawing, 0, 0, canvas.width, canvas.height);
    return canvas.toDataURL();
  } catch {
    return undefined;
  }
}

const BACKGROUND = /url\("?((?!data:)[^")]+)"?\)/;

/** Returns the looks with their background inlined: a picture loads nothing. */
async function inlined(look: string): Promise<string> {
  const [whole, address] = BACKGROUND.exec(look) ?? [];
  if (whole === undefined || address === undefined) {
    return look;
  }
  const image = new Image();
  image.src = address;
  const data = await image.decode().then(() => dataOf(image, image.naturalWidth / devicePixelRatio, image.naturalHeight / devicePixelRatio), () => undefined);
  return data === undefined ? "none" : look.replace(whole, `url("${data}")`);
}

/** Whether a look has to be told to a copy. Some elements don't take from above what others do, such as the letters of headings. */
function isOwn(name: string, value: string, above: string | undefined, plain: string | undefined, plainest: string | undefined): boolean {
  return ALWAYS.test(name) || (INHERITED.test(name) ? value !== above || plain !== plainest : value !== plain);
}

async function copyOf(element: Element, above: Map<string, string> | undefined, copying: Copying): Promise<Element | undefined> {
  if (element.matches("script, style, [data-omit]")) {
    return undefined;
  }
  const looks = looksOf(getComputedStyle(element));
  const { width, height } = element.getBoundingClientRect();
  const isPicture = element instanceof HTMLCanvasElement || element instanceof HTMLImageElement;
  const copy = isPicture ? document.createElement("img") : (element.cloneNode(false) as Element);
  copy.removeAttribute("style");
  copy.removeAttribute("class");
  if (isPicture) {
    const data = dataOf(element, width, height);
    copy.setAttribute("src", data ?? "data:,");
  } else if (element instanceof HTMLInputElement) {
    copy.setAttribute("value", element.value);
    copy.toggleAttribute("checked", element.checked);
  } else if (element instanceof HTMLTextAreaElement) {
    copy.textContent = element.value;
  }
  const plain = plainLooks(copying, isPicture ? copy : element);
  const plainest = plainLooks(copying, copying.bare.body);
  const own: string[] = [];
  for (const [name, value] of looks) {
    if (!IDLE.test(name) && isOwn(name, value, above?.get(name), plain.get(name), plainest.get(name))) {
      own.push(`${name}:${name === "background-image" ? await inlined(value) : value}`);
    }
  }
  // Nobody scrolls a picture.
  copy.setAttribute("style", own.join(";").replaceAll(/\b(overflow(?:-[xy])?):(?:auto|scroll)/g, "$1:hidden"));
  // What is drawn in the place of its own content: markup of tenants keeps its style in a tree of its own.
  for (const node of element.shadowRoot?.childNodes ?? element.childNodes) {
    if (node instanceof Element) {
      const child = await copyOf(node, looks, copying);
      if (child instanceof HTMLElement && (element.scrollTop !== 0 || element.scrollLeft !== 0)) {
        child.style.translate = `${-element.scrollLeft}px ${-element.scrollTop}px`;
      }
      copy.append(...(child === undefined ? [] : [child]));
    } else if (node instanceof Text) {
      copy.append(node.data);
    }
  }
  return copy;
}

/** Whether a picture would lack a part of an element: what a frame shows is nobody's to read. */
export const hasFrame = (element: Element): boolean => element.querySelector("iframe") !== null;

/** Draws an element as it looks now, on the background of the page. */
export async function pictureOf(element: HTMLElement): Promise<Blob> {
  const { width, height } = element.getBoundingClientRect();
  const frame = document.createElement("iframe");
  frame.style.cssText = "position: fixed; width: 0; height: 0; visibility: hidden";
  document.body.append(frame);
  try {
    const copy = await copyOf(element, undefined, { plain: new Map(), bare: frame.contentDocument ?? document });
    const place = document.createElementNS("http://www.w3.org/2000/svg", "foreignObject");
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const [name, value] of [["width", width], ["height", height]] as const) {
      svg.setAttribute(name, String(value));
      place.setAttribute(name, String(value));
    }
    if (copy instanceof HTMLElement) {
      Object.assign(copy.style, { position: "relative", inset: "auto", margin: "0", transform: "none", width: `${width}px`, height: `${height}px` });
      place.append(copy);
    }
    svg.append(place);
    const image = new Image();
    image.src = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(svg))}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.round(width * devicePixelRatio));
    canvas.height = Math.max(1, Math.round(height * devicePixelRatio));
    const context = canvas.getContext("2d");
    if (context === null) {
      throw new Error("This browser can't draw.");
    }
    context.fillStyle = getComputedStyle(document.body).backgroundColor;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) => canvas.toBlob((blob) => (blob === null ? reject(new Error("This browser can't draw.")) : resolve(blob))));
  } finally {
    frame.remove();
  }
}
