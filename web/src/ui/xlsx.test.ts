import { crc32, inflateRawSync } from "node:zlib";
import { expect, test, vi } from "vitest";
import { setLanguage } from "@/i18n";
import { ofNumber } from "./grid/columns";
import { sheetRow, Workbook } from "./xlsx";

/** Reads an archive as the format says: by its directory at the end. */
function unpacked(bytes: Buffer): Map<string, string> {
  const end = bytes.lastIndexOf(Buffer.from([0x50, 0x4b, 5, 6]));
  const files = new Map<string, string>();
  let at = bytes.readUInt32LE(end + 16);
  for (let n = bytes.readUInt16LE(end + 10); n > 0; n--) {
    const [packed, size, name] = [bytes.readUInt32LE(at + 20), bytes.readUInt32LE(at + 24), bytes.toString("utf8", at + 46, at + 46 + bytes.readUInt16LE(at + 28))];
    const local = bytes.readUInt32LE(at + 42);
    const start = local + 30 + bytes.readUInt16LE(local + 26);
    const text = inflateRawSync(bytes.subarray(start, start + packed));
    expect([text.length, crc32(text)]).toEqual([size, bytes.readUInt32LE(at + 16)]);
    files.set(name, text.toString("utf8"));
    at += 46 + bytes.readUInt16LE(at + 28);
  }
  return files;
}

test("numbers are numbers, and all else is text as it is", () => {
  expect(sheetRow(["21.5", "-3", "007", "12345678901234567", "=1+1", "a < b & c\u0001"])).toBe(
    '<row><c><v>21.5</v></c><c><v>-3</v></c>' + ["007", "12345678901234567", "=1+1", "a &lt; b &amp; c"].map((text) => `<c t="inlineStr"><is><t xml:space="preserve">${text}</t></is></c>`).join("") + "</row>",
  );
});

test("a number of a column is the same number in every language, and shown in that of the person", async () => {
  vi.stubGlobal("localStorage", { getItem: () => null, setItem: () => undefined });
  vi.stubGlobal("document", { documentElement: {} });
  await setLanguage("de");
  const { text, show, value } = ofNumber((row: { n: number }) => row.n);
  const row = { n: 1234 };
  expect([sheetRow([text(row)]), show?.(row), value?.(row)]).toEqual(["<row><c><v>1234</v></c></row>", "1.234", 1234]);
  await setLanguage("en");
  vi.unstubAllGlobals();
});

test("a workbook is an archive with its sheet, whose sums are right", async () => {
  const book = new Workbook();
  for (const cell of ["Größe", "5"]) {
    await book.add(sheetRow([cell]));
  }
  const bytes = Buffer.from(await (await book.end()).arrayBuffer());
  const files = unpacked(bytes);
  expect([...files.keys()]).toContain("[Content_Types].xml");
  expect(files.get("xl/worksheets/sheet1.xml")).toContain('<sheetData><row><c t="inlineStr"><is><t xml:space="preserve">Größe</t></is></c></row><row><c><v>5</v></c></row></sheetData>');
});
