// Writes the types of the API as the program at FIELDLINE_URL describes it.

import { writeFileSync } from "node:fs";
import { typesOf } from "./apiTypes.mjs";

const url = process.env.FIELDLINE_URL ?? "http://127.0.0.1:8080";
const answer = await fetch(`${url}/v3/api-docs/thingsboard`);
if (!answer.ok) {
  throw new Error(`${url} answers ${answer.status}`);
}
writeFileSync("src/api/schema.gen.ts", typesOf(await answer.json()));
