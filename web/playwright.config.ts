import { defineConfig } from "@playwright/test";

// Two files at a time: a browser waits for the program most of the time, and the other way round.
export default defineConfig({
  testDir: "tests",
  workers: 2,
  timeout: 60_000,
  expect: { timeout: 15_000 },
  reporter: [["line"]],
  outputDir: "test-results",
  use: {
    locale: "en-US",
    screenshot: "only-on-failure",
    // What every test does is written down where it is asked for: that takes a browser much of its time.
    trace: process.env["TRACE"] === undefined ? "off" : "retain-on-failure",
    launchOptions: {
      executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
    },
  },
});
