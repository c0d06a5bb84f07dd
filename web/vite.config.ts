import react from "@vitejs/plugin-react";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import { entryParts } from "./scripts/entryParts.mjs";
import { iconPacks } from "./scripts/iconPacks.mjs";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const server = process.env["FIELDLINE_URL"] ?? "http://127.0.0.1:8080";

const input = { index: here("./index.html"), login: here("./login.html") };
const early = here("./src/app/early.ts");
const entries = entryParts(Object.values(input), early, here("./src/widgets/ahead.ts"));

// The log-in page is an entry of its own: whoever logs in does not wait for the application.
export default defineConfig({
  plugins: [react(), iconPacks(), entries.plugin],
  resolve: { alias: { "@": here("./src") } },
  build: {
    target: "es2022",
    // Browsers that know light-dark(): lowered, it would follow the system instead of the chosen scheme.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    sourcemap: false,
    rollupOptions: {
      input: { ...input, early },
      output: {
        codeSplitting: {
          groups: [
            ...entries.groups,
            { name: "Home", test: /src\/screens\/home\/Home\.tsx/, priority: 6 },
            { name: "ui", test: /node_modules\/(@mantine|@floating-ui|@tanstack)\/|src\/ui\//, minShareCount: 4, priority: 5 },
            { name: "board", test: /src\/(dashboard\/(?!edit\/(?!document)|automatic|report)|editing\/(diff|history)|sandbox\/|widgets\/(map\/(formatted|markup)|\w+)\.ts$|screens\/dashboard\/[A-Z]\w+\.)/, minShareCount: 2, priority: 4 },
          ],
        },
      },
    },
  },
  server: { proxy: { "/api": { target: server, ws: true } } },
});
