import { expect, test } from "vitest";
import { rulesOf } from "./policy";

test("each rule of a policy says whether a password meets it, and absent rules say nothing", () => {
  const policy = { minimumLength: 8, maximumLength: 12, minimumUppercaseLetters: 1, minimumDigits: 2, minimumSpecialCharacters: 0, allowWhitespaces: false };
  const unmet = (password: string): string[] => rulesOf(policy, password).filter(({ met }) => !met).map(({ one }) => one);
  expect(unmet("Passw0rd1")).toEqual([]);
  expect(unmet("Ünsinn12")).toEqual([]);
  expect(unmet("pass word")).toEqual(["At least {n} capital letter", "At least {n} digit", "No spaces"]);
  expect(unmet("A1".repeat(7))).toEqual(["At most {n} character"]);
  expect(rulesOf({}, "")).toEqual([]);
});
