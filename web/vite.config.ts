import react from "@vitejs/plugin-react";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import { entryParts } from "./scripts/entryParts.mjs";
import { iconPacks } from "./scripts/iconPacks.mjs";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const server = process.env["FIELDLINE_URL"] ?? "http://127.0.0.1:8080";

const input = { index: here("./index.html"), login: here("./login.html") };
const early = here("./src/app/early.ts");
// What a dashboard shows first is in files of its own, so that a page which looks at one loads no forms.
const boards = {
  board: [here("./src/screens/dashboard/Dashboard.tsx")],
  table: [here("./src/widgets/EntitiesTable.tsx")],
  value: ["card/ValueCard.tsx", "gauge/Gauge.tsx", "useScheme.ts"].map((name) => here(`./src/widgets/${name}`)),
};
const entries = entryParts(Object.values(input), early, here("./src/widgets/ahead.ts"), boards);

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
            // What both dashboards and other screens are drawn with: these would load dashboards for it, or dashboards all forms.
            { name: "shown", test: /node_modules\/(@mantine\/(core\/esm\/(components\/(ActionIcon|Breadcrumbs|NativeSelect)\/|utils\/)|hooks\/esm\/use-(?!move|eye))|@tanstack\/(react-virtual|virtual-core)\/)|src\/ui\/(grid\/|(images|safeCss|cleanStyle|csv|rowsFile|rootScale)\.ts)/, minShareCount: 2, priority: 6 },
            // What all languages of the code editor need.
            { name: "code", test: /node_modules\/(@codemirror|@lezer|style-mod|w3c-keyname|crelt|@marijn)\//, minShareCount: 2, priority: 6 },
            { name: "Home", test: /src\/screens\/home\/Home\.tsx/, priority: 6 },
            { name: "ui", test: /node_modules\/(@mantine|@floating-ui|@tanstack)\/|src\/ui\//, minShareCount: 4, priority: 4 },
            { name: "widgets", test: /src\/(dashboard\/(?!edit\/(?!document)|automatic|report)|editing\/(diff|history)|sandbox\/|widgets\/(map\/(formatted|markup)|\w+)\.ts$|screens\/dashboard\/[A-Z]\w+\.)/, minShareCount: 2, priority: 3 },
          ],
        },
      },
    },
  },
  server: { proxy: { "/api": { target: server, ws: true } } },
});
