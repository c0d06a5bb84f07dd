// What a password has to be like, told rule by rule.

import type { UserPasswordPolicy } from "@/api/schema.gen";

export type PasswordPolicy = UserPasswordPolicy;

export interface PasswordRule {
  /** The texts for one and for several. */
  one: string;
  other: string;
  n: number;
  met: boolean;
}

const count = (text: string, pattern: RegExp): number => [...text].filter((letter) => pattern.test(letter)).length;

/** Returns the rules of a policy with whether a password meets them. The server has the last word. */
export function rulesOf(policy: PasswordPolicy, password: string): PasswordRule[] {
  const length = [...password].length;
  const least = (n: number | null | undefined, has: number, one: string, other: string): PasswordRule[] => ((n ?? 0) > 0 ? [{ one, other, n: n ?? 0, met: has >= (n ?? 0) }] : []);
  const most = policy.maximumLength ?? 0;
  return [
    ...least(policy.minimumLength, length, "At least {n} character", "At least {n} characters"),
    ...(most > 0 ? [{ one: "At most {n} character", other: "At most {n} characters", n: most, met: length <= most }] : []),
    ...least(policy.minimumUppercaseLetters, count(password, /\p{Lu}/u), "At least {n} capital letter", "At least {n} capital letters"),
    ...least(policy.minimumLowercaseLetters, count(password, /\p{Ll}/u), "At least {n} small letter", "At least {n} small letters"),
    ...least(policy.minimumDigits, count(password, /\p{Nd}/u), "At least {n} digit", "At least {n} digits"),
    ...least(policy.minimumSpecialCharacters, count(password, /[^\p{L}\p{Nd}\s]/u), "At least {n} other character", "At least {n} other characters"),
    ...(policy.allowWhitespaces === false ? [{ one: "No spaces", other: "No spaces", n: 0, met: !/\s/.test(password) }] : []),
  ];
}
