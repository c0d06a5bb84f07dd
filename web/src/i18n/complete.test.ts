import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { hasTarget } from "@/entities/columns";
import { KINDS } from "@/entities/kinds";
import { wordsOf } from "@/ui/form/values";
import german from "./de.json";
import nodes from "./de.nodes.json";
import server from "./de.server.json";

const root = join(import.meta.dirname, "..");
/** Both forms of texts with a count. */
const PLURAL = /\bplural\(\s*[^"]*?"((?:[^"\\]|\\.)+)",\s*"((?:[^"\\]|\\.)+)"/g;
/** Texts that code translates: in `t(…)` itself, or in declarations whose labels it translates. */
const TEXT = /(?:\bt\(\s*|\b(?:label|plural|singular|title|hint|action|help|section)(?:: |=)|(?:column|choice|nameColumn)\("\w+", |\bheading\(|\b(?:number|rates|address|usuallyOn|colors|layerColors|tooltipFields|share|ranges|limit)\("[\w.]+", |\bdone: )"((?:[^"\\]|\\.)+)"/g;

/** Choices that are read as words, such as `SKIP_ALL_FAILURES`. */
const CHOICES = /\boptions: \[((?:"[A-Z][A-Z_]+",?\s*)+)\]/g;

/** Headings that are listed beside where they are translated, such as those of a table. */
const LISTED = /\[((?:"[A-Z][^"\n]+",?\s*)+)\]\.map\(\((?:label|title)\b/g;

/** What fails says so in sentences, which are translated where they are shown. */
const FAILURE = /\bnew \w*Error\((?:\d+, )?"([A-Z](?:[^"\\]|\\.)+\.)"\)/g;

/** Sentences that are listed by what they are said of, such as a status of HTTP. */
const SENTENCE = /(?:\b\d+: |\bconst [A-Z_]+ = |\b[A-Z_]{3,}: )"([A-Z][^"\n]*[a-z][^"\n]* [^"\n]*\.)"/g;

/** Returns the first argument of each call of `t`, as it stands in the code. */
function translated(code: string): string[] {
  return [...code.matchAll(/(?<![\w.])t\(/g)].map(({ index, 0: call }) => {
    const from = index + call.length;
    let [depth, at] = [0, from];
    for (let quote = ""; at < code.length; at++) {
      const sign = code[at] ?? "";
      if (quote !== "") {
        at += sign === "\\" ? 1 : 0;
        quote = sign === quote ? "" : quote;
      } else if ("\"'`".includes(sign)) {
        quote = sign;
      } else if (depth === 0 && (sign === ")" || sign === ",")) {
        break;
      } else {
        depth += "([{".includes(sign) ? 1 : ")]}".includes(sign) ? -1 : 0;
      }
    }
    return code.slice(from, at);
  });
}

/** Returns the texts between which a call of `t` chooses. */
const chosen = (code: string): string[] => translated(code).flatMap((argument) => [...argument.matchAll(/(?:\?|:|\?\?)\s*"((?:[^"\\]|\\.)+)"/g)].map(([, text = ""]) => text));

/** Titles that are put together of the kinds of entities. */
const ofKinds = (): string[] => KINDS.flatMap(({ type, singular }) => [`Add: ${singular}`, ...(hasTarget(type) ? [`Import: ${singular}`] : [])]);

function texts(): Set<string> {
  const found = new Set<string>(ofKinds());
  for (const name of readdirSync(root, { recursive: true }).map(String)) {
    if (/\.tsx?$/.test(name) && !name.includes(".test.")) {
      const code = readFileSync(join(root, name), "utf8");
      for (const [, choices = ""] of code.matchAll(CHOICES)) {
        [...choices.matchAll(/"(\w+)"/g)].forEach(([, choice = ""]) => found.add(wordsOf(choice)));
      }
      for (const [, listed = ""] of code.matchAll(LISTED)) {
        [...listed.matchAll(/"([^"\n]+)"/g)].forEach(([, text = ""]) => found.add(text));
      }
      const counted = [...code.matchAll(PLURAL)].flatMap(([, one, other]) => [one, other]);
      for (const text of [...[...code.matchAll(TEXT)].map(([, one]) => one), ...[FAILURE, SENTENCE].flatMap((kind) => [...code.matchAll(kind)].map(([, one]) => one)), ...chosen(code), ...counted]) {
        if (text !== undefined && /[a-z]/.test(text) && !["ack", "HTTP", "MQTT"].includes(text)) {
          found.add(text);
        }
      }
    }
  }
  return found;
}

const placeholders = (text: string): string[] => [...text.matchAll(/\{\w+\}/g)].map(String).sort();

test("every text has its German, with the same placeholders", () => {
  const known: Record<string, string> = german;
  expect([...texts()].filter((text) => !(text in known))).toEqual([]);
  for (const [english, translated] of Object.entries(known)) {
    expect(placeholders(translated), english).toEqual(placeholders(english));
  }
});

test("German has one word for one thing", () => {
  const others = Object.values({ ...server, ...nodes, ...german }).filter((text) => /\bAssets?\b|Entitätsansicht|Entity|Device|Tenant|Customer/.test(text));
  expect(others).toEqual([]);
});
