// Who sends too often.

import { findings } from "./axe";
import { expect, logIn, test } from "./program";

test.beforeEach(({ page }) => page.emulateMedia({ reducedMotion: "reduce" }));

test("who sends too often is told to the operator, with what to do", async ({ page, program }) => {
  const limit = async (rate: string): Promise<void> => {
    const { data } = await program.call<{ data: { profileData: { configuration: Record<string, unknown> } }[] }>("SYS_ADMIN", "/api/tenantProfiles?pageSize=1&page=0");
    const [profile] = data;
    await program.call("SYS_ADMIN", "/api/tenantProfile", {
      ...profile, profileData: { ...profile?.profileData, configuration: { ...profile?.profileData.configuration, transportDeviceTelemetryMsgRateLimit: rate } },
    });
  };
  await limit("2:600");
  for (let n = 0; n < 8; n++) {
    await fetch(`${program.url}/api/v1/A1_TEST_TOKEN/telemetry`, { method: "POST", body: '{"a":1}' });
  }
  await logIn(page, program, "SYS_ADMIN", "/overload");
  const entry = page.locator('[data-overload="RATE_LIMIT"]');
  await expect(entry).toContainText("limit: 2 in 600 s");
  await expect(entry).toContainText("raise the rate limit in its tenant profile");
  expect(await findings(page)).toEqual([]);
  // Other files use the same program.
  await limit("");
});
