import { beforeAll, expect, test, vi } from "vitest";
import german from "./de.server.json";
import { setLanguage } from "./index";
import { SERVER_TEXTS, serverText } from "./serverTexts";

beforeAll(() => {
  vi.stubGlobal("localStorage", { getItem: () => null, setItem: () => undefined });
  vi.stubGlobal("document", { documentElement: {} });
});

test("every sentence of the server that is known has its German", () => {
  expect(SERVER_TEXTS.filter((text) => !(text in german))).toEqual([]);
  const names = (text: string): string[] => [...text.matchAll(/\{\w+\}/g)].map(String);
  for (const [english, translated] of Object.entries(german)) {
    // A sentence may leave out what it needs no more, but names nothing that isn't there.
    expect(names(english), english).toEqual(expect.arrayContaining(names(translated)));
  }
});

test("what the server says is read in the language of the person, but names that people gave stay", async () => {
  expect(serverText("Device with such name already exists!")).toBe("Device with such name already exists!");
  await setLanguage("de");
  expect(serverText("Device with such name already exists!")).toBe("Gerät: diesen Wert von „Name“ gibt es schon.");
  expect(serverText("Password must be 8 or more characters in length.\nPassword must contain 1 or more digit characters.")).toBe(
    "Das Passwort braucht mindestens 8 Zeichen.\nDas Passwort braucht mindestens 1 Zeichen der Art „Ziffer“.",
  );
  expect(serverText("Validation error: Device name should be specified!")).toBe("Das geht so nicht: Es fehlt noch: Name des Geräts");
  expect(serverText("Queue with name: Home already exists!")).toBe("Eine Warteschlange mit diesem Wert von „Name“ gibt es schon: Home");
  // Longer sentences are not taken for the beginnings of others, and unknown ones stay.
  expect(serverText("The fan (of hall 3) turns the wrong way.")).toBe("The fan (of hall 3) turns the wrong way.");
  await setLanguage("en");
});
