import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { iconPacks } from "./scripts/iconPacks.mjs";

export default defineConfig({
  plugins: [iconPacks()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  test: { include: ["src/**/*.test.ts"] },
});
