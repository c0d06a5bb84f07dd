// Mathematical expressions of calculated fields, evaluated as the server does it, to try them out before they are saved.

import { t } from "@/i18n";

const CONSTANTS: Record<string, number> = { pi: Math.PI, π: Math.PI, e: Math.E, φ: (1 + Math.sqrt(5)) / 2 };
const inverse = (f: (x: number) => number) => (x: number): number => divided(1, f(x));
const FUNCTIONS: Record<string, (...args: number[]) => number> = {
  abs: Math.abs, acos: Math.acos, asin: Math.asin, atan: Math.atan, cbrt: Math.cbrt, ceil: Math.ceil, cos: Math.cos, cosh: Math.cosh,
  cot: inverse(Math.tan), coth: inverse(Math.tanh), csc: inverse(Math.sin), csch: inverse(Math.sinh), exp: Math.exp, expm1: Math.expm1, floor: Math.floor,
  lg: Math.log10, ln: Math.log, log: Math.log, log10: Math.log10, log1p: Math.log1p, log2: Math.log2,
  logab: (base = NaN, x = NaN) => divided(Math.log(x), Math.log(base)), pow: (x = NaN, y = NaN) => x ** y,
  sec: inverse(Math.cos), sech: inverse(Math.cosh), signum: Math.sign, sin: Math.sin, sinh: Math.sinh, sqrt: Math.sqrt, tan: Math.tan, tanh: Math.tanh,
  todegree: (x = NaN) => (x * 180) / Math.PI, toradian: (x = NaN) => (x * Math.PI) / 180,
};
const CLOSING: Record<string, string> = { "(": ")", "[": "]", "{": "}" };
const TOKEN = /\s*(?:((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|([\p{L}_][\p{L}\p{N}_]*)|(\S))/uy;

function divided(a: number, b: number): number {
  if (b === 0) {
    throw new Error(t("Division by zero!"));
  }
  return a / b;
}

interface Token {
  kind: "number" | "name" | "sign";
  text: string;
}

/** Parts a word that is no name into the longest name it begins with, and the rest, which is read on: `2x`, `xy` and `a2` are products. */
function named(word: string, known: (name: string) => boolean): string[] {
  for (let end = word.length; end > 0; end--) {
    if (known(word.slice(0, end))) {
      return end === word.length ? [word] : [word.slice(0, end), word.slice(end)];
    }
  }
  throw new Error(t("Unknown function or variable '{word}'", { word }));
}

function tokensOf(text: string, known: (name: string) => boolean): Token[] {
  const tokens: Token[] = [];
  let rest = text;
  while (rest.trim() !== "") {
    TOKEN.lastIndex = 0;
    const [whole = rest, number, word, sign = ""] = TOKEN.exec(rest) ?? [];
    rest = rest.slice(whole.length);
    if (word !== undefined) {
      const [name = word, more = ""] = named(word, known);
      tokens.push({ kind: "name", text: name });
      rest = more + rest;
    } else {
      tokens.push(number === undefined ? { kind: "sign", text: sign } : { kind: "number", text: number });
    }
  }
  return tokens;
}

/** Returns the value of an expression; throws an error that says what is wrong. */
export function evaluate(text: string, values: Record<string, number>): number {
  const known = (name: string): boolean => Object.hasOwn(values, name) || Object.hasOwn(FUNCTIONS, name) || Object.hasOwn(CONSTANTS, name);
  const tokens = tokensOf(text, known);
  let at = 0;
  const isSign = (...signs: string[]): boolean => tokens[at]?.kind === "sign" && signs.includes(tokens[at]?.text ?? "");
  const expect = (sign: string): void => {
    if (!isSign(sign)) {
      throw new Error(tokens[at] === undefined ? `'${sign}' is missing` : `'${tokens[at]?.text}' is not expected here`);
    }
    at++;
  };
  const list = (closing: string): number[] => {
    const args = [sum()];
    while (isSign(",")) {
      at++;
      args.push(sum());
    }
    expect(closing);
    return args;
  };
  const operand = (): number => {
    const token = tokens[at++];
    if (token?.kind === "number") {
      return Number(token.text);
    }
    if (token?.kind === "sign" && token.text in CLOSING) {
      const [value = NaN] = list(CLOSING[token.text] ?? ")");
      return value;
    }
    if (token?.kind !== "name") {
      throw new Error(token === undefined ? t("The expression ends too early") : t("'{word}' is not expected here", { word: token.text }));
    }
    if (Object.hasOwn(values, token.text)) {
      return values[token.text] ?? NaN;
    }
    const call = FUNCTIONS[token.text];
    if (call === undefined) {
      return CONSTANTS[token.text] ?? NaN;
    }
    const opening = isSign("(", "[", "{") ? (tokens[at++]?.text ?? "(") : undefined;
    if (opening === undefined) {
      throw new Error(t("'{word}' is a function and takes its arguments in brackets", { word: token.text }));
    }
    const args = list(CLOSING[opening] ?? ")");
    const wanted = token.text === "pow" || token.text === "logab" ? 2 : 1;
    if (args.length !== wanted) {
      throw new Error(t("'{word}' takes {wanted} arguments", { word: token.text, wanted }));
    }
    return call(...args);
  };
  /** A sign binds less than `^` and more than `*`. */
  const signed = (): number => {
    if (isSign("-", "+")) {
      return tokens[at++]?.text === "-" ? -signed() : signed();
    }
    const base = operand();
    if (!isSign("^")) {
      return base;
    }
    at++;
    return base ** signed();
  };
  const product = (): number => {
    let value = signed();
    for (;;) {
      if (isSign("*")) {
        at++;
        value *= signed();
      } else if (isSign("/", "÷")) {
        at++;
        value = divided(value, signed());
      } else if (isSign("%")) {
        at++;
        const by = signed();
        divided(1, by);
        value %= by;
      } else if (tokens[at] !== undefined && (tokens[at]?.kind !== "sign" || isSign("(", "[", "{"))) {
        value *= signed();
      } else {
        return value;
      }
    }
  };
  function sum(): number {
    let value = product();
    while (isSign("+", "-")) {
      value = tokens[at++]?.text === "+" ? value + product() : value - product();
    }
    return value;
  }
  const value = sum();
  if (at < tokens.length) {
    throw new Error(t("'{word}' is not expected here", { word: tokens[at]?.text ?? "" }));
  }
  if (!Number.isFinite(value)) {
    throw new Error(t("The result is no finite number"));
  }
  return value;
}
