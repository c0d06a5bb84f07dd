import { defineConfig } from "@playwright/test";

// One browser at a time: the machine that runs the tests also runs the program and its clients.
export default defineConfig({
  testDir: "tests",
  workers: 1,
  timeout: 60_000,
  expect: { timeout: 15_000 },
  reporter: [["line"]],
  outputDir: "test-results",
  use: {
    locale: "en-US",
    screenshot: "only-on-failure",
    trace: "retain-on-failure",
    launchOptions: {
      executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
    },
  },
});
