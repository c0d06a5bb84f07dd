// The types of the API in the source are those that this program describes.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { typesOf } from "../scripts/apiTypes.mjs";
import { expect, test } from "./program";

test("src/api/schema.gen.ts is up to date; if not, run `npm run api` with the program of this tree", async ({ program }) => {
  const description: unknown = await (await fetch(`${program.url}/v3/api-docs/thingsboard`)).json();
  expect(readFileSync(join(import.meta.dirname, "../src/api/schema.gen.ts"), "utf8")).toBe(typesOf(description));
});
