// Conditions under which a property is offered, such as `return model.kind === 'line' && model.width > 0;`. They are read, never run.

type ValueAt = (path: string) => unknown;
type Condition = (valueAt: ValueAt) => boolean;

const PATH = String.raw`model((?:\??\.[A-Za-z_$][\w$]*|\[(?:"[^"]*"|'[^']*')\])+)`;
const LITERAL = String.raw`(true|false|null|undefined|-?\d+(?:\.\d+)?|"[^"]*"|'[^']*')`;
const COMPARED = new RegExp(`^${PATH}\\s*(===?|!==?|>=|<=|>|<)\\s*${LITERAL}$`);
const TRUTH = new RegExp(`^(!{0,2})\\s*${PATH}$`);

function pathOf(steps: string): string {
  return [...steps.matchAll(/\.([A-Za-z_$][\w$]*)|\[["']([^"']*)["']\]/g)].map(([, name, key]) => name ?? key ?? "").join(".");
}

function literalOf(written: string): unknown {
  return written === "true" ? true : written === "false" ? false : written === "null" ? null : written === "undefined" ? undefined : /^["']/.test(written) ? written.slice(1, -1) : Number(written);
}

function compared(value: unknown, operator: string, other: unknown): boolean {
  switch (operator) {
    case "===":
      return value === other;
    case "!==":
      return value !== other;
    // Values come from forms as numbers or as texts, which both signs take for the same; and nothing is like nothing.
    case "==":
      return value === other || String(value ?? "") === String(other ?? "");
    case "!=":
      return !compared(value, "==", other);
    case ">":
      return Number(value) > Number(other);
    case ">=":
      return Number(value) >= Number(other);
    case "<":
      return Number(value) < Number(other);
    default:
      return Number(value) <= Number(other);
  }
}

/** Splits at an operator outside of parentheses and texts. */
function split(code: string, operator: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let quote = "";
  let from = 0;
  for (let at = 0; at < code.length; at++) {
    const letter = code.charAt(at);
    if (quote !== "") {
      quote = letter === quote ? "" : quote;
    } else if (letter === '"' || letter === "'") {
      quote = letter;
    } else if (letter === "(" || letter === ")") {
      depth += letter === "(" ? 1 : -1;
    } else if (depth === 0 && code.startsWith(operator, at)) {
      parts.push(code.slice(from, at));
      from = at + operator.length;
    }
  }
  return [...parts, code.slice(from)];
}

/** Whether the first parenthesis closes at the end. */
function isWrapped(code: string): boolean {
  if (!code.startsWith("(")) {
    return false;
  }
  let depth = 0;
  for (let at = 0; at < code.length; at++) {
    depth += code.charAt(at) === "(" ? 1 : code.charAt(at) === ")" ? -1 : 0;
    if (depth === 0) {
      return at === code.length - 1;
    }
  }
  return false;
}

function read(written: string): Condition | undefined {
  const code = written.trim();
  for (const operator of ["||", "&&"] as const) {
    const parts = split(code, operator);
    if (parts.length > 1) {
      const all = parts.map(read);
      const known = all.filter((one) => one !== undefined);
      return known.length < all.length ? undefined : (valueAt) => (operator === "||" ? known.some((one) => one(valueAt)) : known.every((one) => one(valueAt)));
    }
  }
  if (isWrapped(code)) {
    return read(code.slice(1, -1));
  }
  if (code.startsWith("!(")) {
    const inner = read(code.slice(1));
    return inner === undefined ? undefined : (valueAt) => !inner(valueAt);
  }
  const [, steps, operator = "", literal = ""] = COMPARED.exec(code) ?? [];
  if (steps !== undefined) {
    return (valueAt) => compared(valueAt(pathOf(steps)), operator, literalOf(literal));
  }
  const [, not = "", only] = TRUTH.exec(code) ?? [];
  return only === undefined ? undefined : (valueAt) => Boolean(valueAt(pathOf(only))) === (not !== "!");
}

/** Reads a condition; nothing of one that can't be read, so that what it is about is offered always. */
export function conditionOf(stored: unknown): Condition | undefined {
  const code = typeof stored === "string" ? stored.trim() : "";
  return code === "" ? undefined : read(code.replace(/^return\b/, "").replace(/;\s*$/, ""));
}
