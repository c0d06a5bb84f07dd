// Compresses the text files of the built user interface; the program that packs them does not.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

/**
 * Icons are many, and each page needs few of them; what people edit with, and what draws a map of the installation's own, is loaded rarely. The second form of these would take more of the
 * program than it saves.
 */
const GZIP_ONLY = /icons-[\w-]+\.json$|(code|CodeEditor|script|search|RuleChain|dagre\.esm|de\.nodes|EditMode|SymbolEditor|symbolForm|ownMap|AddDrawer)-[\w-]+\.js$|licenses\.txt$/;
const TEXT = /\.(html|js|css|json|svg|txt)$/;

for (const name of readdirSync("dist", { recursive: true })) {
  const path = join("dist", String(name));
  if (TEXT.test(path)) {
    const bytes = readFileSync(path);
    writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
    if (!GZIP_ONLY.test(path)) {
      writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
    }
  }
}
