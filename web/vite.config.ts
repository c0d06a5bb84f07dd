import react from "@vitejs/plugin-react";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import { iconPacks } from "./scripts/iconPacks.mjs";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const server = process.env["FIELDLINE_URL"] ?? "http://127.0.0.1:8080";

// The log-in page is an entry of its own: whoever logs in does not wait for the application.
export default defineConfig({
  plugins: [react(), iconPacks()],
  resolve: { alias: { "@": here("./src") } },
  build: {
    target: "es2022",
    // Browsers that know light-dark(): lowered, it would follow the system instead of the chosen scheme.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    sourcemap: false,
    rollupOptions: { input: { index: here("./index.html"), login: here("./login.html") } },
  },
  server: { proxy: { "/api": { target: server, ws: true } } },
});
