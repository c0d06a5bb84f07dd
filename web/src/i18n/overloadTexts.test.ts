// Everything that the server says of overload has its German. The words stand in the server's own code, which nobody translates beside.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { subjectText } from "@/screens/overload/overload";
import shared from "./de.json";
import german from "./de.server.json";

const CRATES = join(import.meta.dirname, "../../../crates");

function sources(): string[] {
  return readdirSync(CRATES, { recursive: true })
    .map(String)
    .filter((name) => name.endsWith(".rs") && !/(^|\/)(tests|fuzz|target)(\/|\.rs$)/.test(name))
    .map((name) => readFileSync(join(CRATES, name), "utf8"));
}

const literals = (code: string): string[] => [...code.matchAll(/"((?:[^"\\\n]|\\.)*)"/g)].map(([, text]) => text ?? "");

test("sentences and subjects of overload are German, too", () => {
  const all = sources();
  const samples = all.filter((code) => code.includes("OverloadSample {")).flatMap((code) => [...code.matchAll(/fn collect\([\s\S]*?\n {4}\}\n/g)].flatMap(([body]) => literals(body)));
  const words = [
    ...all.flatMap((code) => [...code.matchAll(/\brefusals\(\)\s*\.add\(([^;]*?)\);/g)].flatMap(([, one = ""]) => literals(one))),
    ...all.flatMap((code) => [...code.matchAll(/\btake\(&self\.\w+, "([^"]+)"/g)].map(([, one]) => one ?? "")),
    ...all.filter((code) => code.includes("WsLimitKind")).flatMap((code) => [...code.matchAll(/^\s+name: "([^"]+)"|=> \(scope\.\w+, "([^"]+)"\)/gm)].map(([, name, things]) => name ?? things ?? "")),
  ];
  // Sentences of several words, or the words of a subject; what is left are names of settings and how subjects are joined.
  const said = [...samples, ...words].filter((text) => !/^[\w-]+\.[\w-]+$/.test(text) && text !== "{whose}: {of}");
  expect(samples.filter((text) => text.includes(" ")).length).toBeGreaterThan(14);
  expect(words.length).toBeGreaterThan(8);
  const known: Record<string, string> = { ...german, ...shared };
  expect([...new Set(said)].filter((text) => !(text in known))).toEqual([]);
  const translated = (text: string): string => `${text}!`;
  for (const word of words) {
    expect(subjectText({ kind: "RATE_LIMIT", subject: `${word}: messages` }, translated)).toBe(`${word}!: messages!`);
  }
});
