// What the server says, in the language of the person: it answers in English, with names and numbers in its sentences.

import { currentLanguage, t } from "./index";

/** Sentences of the server, as they are keys of the translations. What stands in braces differs. */
export const SERVER_TEXTS = [
  "{thing} with such {property} already exists!",
  "{thing} with such {property} already exists",
  "Queue with {property}: {value} already exists!",
  "User with email '{email}' already present in database!",
  "{thing} with id [{id}] is not found",
  "{thing} with requested id wasn't found!",
  "Requested item wasn't found!",
  "{thing} should be specified!",
  "{thing} should be specified",
  "{thing} can't be changed!",
  "{thing} can't be null!",
  "{thing} was already changed by someone else",
  "{thing}s limit reached",
  "Calculated fields per entity limit reached!",
  "Calculated field arguments limit reached!",
  "You don't have permission to perform this operation!",
  "Authentication failed",
  "Invalid username or password",
  "User is not active",
  "User is already activated!",
  "User not found",
  "User account is locked due to security policy",
  "User account is locked due to expired credentials",
  "Users can't disable themselves!",
  "Current password doesn't match!",
  "New password should be different from existing!",
  "Password was already used for the last {days} days",
  "Password must be {n} or more characters in length.",
  "Password must be no more than {n} characters in length.",
  "Password must contain {n} or more {kind} characters.",
  "Password contains a whitespace character.",
  "Password reset token expired",
  "Invalid reset token!",
  "Unable to find user credentials by activateToken",
  "Too many login attempts from this address!",
  "Too many requests for current {who}!",
  "Too many wrong secrets, the next one may come in {seconds} s!",
  "Too many intervals: {count}, at most {most} are allowed. Increase the interval or shorten the time range",
  "Payload size exceeds the limit",
  "Device credentials are already assigned to another device!",
  "Specified credentials are already registered!",
  "Credentials for this device are already specified!",
  "The device must be a gateway!",
  "Internal error",
  "The server is stopping",
  "No mail server is set up to send it with",
  "Unable to send mail: {problem}",
  "Unable to send SMS: {problem}",
  "Image resource type is not supported",
  "The file is no image of a known format",
  "Wrong otaPackage file!",
  "The OTA package has no data",
  "File name contains forbidden symbols",
  "Alarm was already acknowledged!",
  "Alarm was already cleared!",
  "Alarm was already assigned to this user!",
  "Alarm was already unassigned!",
  "Validation error: {problem}",
  "JSON parse error: {problem}",
  "Invalid request body: {problem}",
  "The rate limit of {of} of a {whose} ({limit}) was exceeded: what came beyond it was refused",
  "A {whose} has as many {of} as it may have ({limit}): further ones were refused",
  "{label}: all of this month ({limit}) is used up, so that it is disabled until the next month",
  "{label}: this month's amount ({limit}) is nearly used up",
] as const;

/** What stands for words of the server, which have their own translations. All else are numbers, and names and values that people gave. */
const WORDS: ReadonlySet<string> = new Set(["thing", "property", "kind", "who", "whose", "of", "label", "problem"]);

interface Pattern {
  text: string;
  names: string[];
  expression: RegExp;
}

function patternOf(text: string): Pattern {
  const names: string[] = [];
  const expression = text
    .split(/(\{\w+\})/)
    .map((part) => {
      const name = /^\{(\w+)\}$/.exec(part)?.[1];
      if (name === undefined) {
        return part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
      }
      names.push(name);
      return "([^]+?)";
    })
    .join("");
  return { text, names, expression: new RegExp(`^${expression}$`) };
}

let patterns: readonly Pattern[] | undefined;

function lineText(line: string): string {
  const exact = t(line);
  if (exact !== line) {
    return exact;
  }
  // A sentence with a beginning of its own is meant before one that begins with anything.
  patterns ??= [...SERVER_TEXTS].sort((a, b) => Number(a.startsWith("{")) - Number(b.startsWith("{"))).map(patternOf);
  for (const { text, names, expression } of patterns) {
    const found = expression.exec(line);
    if (found !== null) {
      const within = (name: string, part: string): string => (WORDS.has(name) ? lineText(part) : part);
      return t(text, Object.fromEntries(names.map((name, n) => [name, within(name, found[n + 1] ?? "")])));
    }
  }
  return line;
}

/** Returns a message of the server as the person reads it; a sentence that is not known stays as it is. */
export function serverText(message: string): string {
  return currentLanguage() === "en" ? message : message.split("\n").map(lineText).join("\n");
}
