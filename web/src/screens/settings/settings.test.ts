import { expect, test } from "vitest";
import { SETTINGS_FORMS } from "./forms";
import { SETTINGS_PAGES } from "./pages";
import { onlyShown, withoutEmptyPasswords } from "./Settings";

test("the settings of one provider go without those of another, and a password that was not typed stays the stored one", () => {
  const sms = SETTINGS_FORMS["/settings/sms"] ?? { fields: [] };
  const typed = { type: "TWILIO", numberFrom: "+1", accountSid: "a", accountToken: "", host: "old", systemId: "x" };
  expect(withoutEmptyPasswords(sms, onlyShown(sms, typed))).toEqual({ type: "TWILIO", numberFrom: "+1", accountSid: "a" });
  expect(sms.test?.body?.({ type: "SMPP" }, { numberTo: "+2", message: "m" })).toEqual({ providerConfiguration: { type: "SMPP" }, numberTo: "+2", message: "m" });
});

test("each screen of settings has its form", () => {
  expect(Object.keys(SETTINGS_FORMS).sort()).toEqual(SETTINGS_PAGES.map(({ path }) => path).sort());
});
