// Writes the licences of the libraries that the pages contain to dist/licenses.txt, and refuses one that is not allowed.

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ALLOWED = new Set(["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "(MIT OR CC0-1.0)", "(MPL-2.0 OR Apache-2.0)", "Unlicense"]);

const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8"));
const parts = ["The pages of Fieldline (Apache-2.0) contain these libraries.\n"];
for (const [folder, entry] of Object.entries(packages)) {
  if (folder === "" || entry.dev === true || entry.devOptional === true || !existsSync(folder)) {
    continue;
  }
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  if (!ALLOWED.has(license)) {
    throw new Error(`${name} ${version} has the licence ${license}, which is not among those allowed`);
  }
  const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
  const text = file === undefined ? "" : readFileSync(join(folder, file), "utf8").trim();
  parts.push(`${"-".repeat(72)}\n${name} ${version}: ${license}\n\n${text}\n`);
}
writeFileSync("dist/licenses.txt", parts.join("\n"));
