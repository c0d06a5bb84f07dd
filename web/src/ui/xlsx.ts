// A workbook of one sheet (ECMA-376), which is XML in a ZIP archive: what Excel and other spreadsheets open as a table.

const encoder = new TextEncoder();
/** What XML 1.0 can't hold. */
// eslint-disable-next-line no-control-regex
const FORBIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;
const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
/** Numbers that stay what they are as such: no leading zeros, and no more digits than a spreadsheet keeps. Texts of columns are in no language. */
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?$/;
const MOST_DIGITS = 15;
/** The most characters of a cell. */
const MOST_TEXT = 32_767;

const isNumber = (text: string): boolean => NUMBER.test(text) && text.replace(/\D/g, "").length <= MOST_DIGITS;
const escaped = (text: string): string => text.slice(0, MOST_TEXT).replace(FORBIDDEN, "").replace(/[&<>]/g, (sign) => ESCAPES[sign] ?? sign);

/** Returns a row of a sheet. Text is no formula, whatever it begins with. */
export function sheetRow(cells: readonly string[]): string {
  const cell = (text: string): string => (isNumber(text) ? `<c><v>${text}</v></c>` : `<c t="inlineStr"><is><t xml:space="preserve">${escaped(text)}</t></is></c>`);
  return `<row>${cells.map(cell).join("")}</row>`;
}

const XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const TYPES = "http://schemas.openxmlformats.org/package/2006/content-types";
const RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships";
const OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const MAIN = "application/vnd.openxmlformats-officedocument.spreadsheetml";

/** The parts around the sheet. */
const AROUND: Readonly<Record<string, string>> = {
  "[Content_Types].xml": `${XML}<Types xmlns="${TYPES}"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="${MAIN}.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="${MAIN}.worksheet+xml"/></Types>`,
  "_rels/.rels": `${XML}<Relationships xmlns="${RELATIONS}"><Relationship Id="rId1" Type="${OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
  "xl/workbook.xml": `${XML}<workbook xmlns="${SHEETS}" xmlns:r="${OFFICE}"><sheets><sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>`,
  "xl/_rels/workbook.xml.rels": `${XML}<Relationships xmlns="${RELATIONS}"><Relationship Id="rId1" Type="${OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`,
};
/** The first row, the labels, stays in view. */
const SHEET = [`${XML}<worksheet xmlns="${SHEETS}"><sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><sheetData>`, "</sheetData></worksheet>"] as const;

const CRC = Uint32Array.from({ length: 256 }, (_, n) => Array.from({ length: 8 }).reduce<number>((code) => (code & 1 ? (code >>> 1) ^ 0xedb88320 : code >>> 1), n));

function checksum(code: number, bytes: Uint8Array): number {
  for (const byte of bytes) {
    code = (code >>> 8) ^ (CRC[(code ^ byte) & 0xff] ?? 0);
  }
  return code;
}

/** One file of an archive, which is packed as it comes: only what is packed is kept. */
class Packed {
  private readonly stream = new CompressionStream("deflate-raw");
  private readonly writer = this.stream.writable.getWriter();
  private readonly packed = new Response(this.stream.readable).blob();
  private code = 0xffffffff;
  size = 0;

  async add(text: string): Promise<void> {
    const bytes = encoder.encode(text);
    this.code = checksum(this.code, bytes);
    this.size += bytes.length;
    await this.writer.write(bytes);
  }

  async end(): Promise<Blob> {
    await this.writer.close();
    return this.packed;
  }

  get checksum(): number {
    return (this.code ^ 0xffffffff) >>> 0;
  }
}

/** Returns numbers of 2 or 4 bytes one after the other, the lowest byte first. */
function fields(numbers: readonly (readonly [size: 2 | 4, value: number])[]): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(numbers.flatMap(([size, value]) => Array.from({ length: size }, (_, n) => (value >>> (8 * n)) & 0xff)));
}

/** Puts packed files into a ZIP archive (APPNOTE 6.3). */
async function zip(files: readonly (readonly [name: string, file: Packed])[]): Promise<Blob> {
  const body: BlobPart[] = [];
  const directory: BlobPart[] = [];
  let [at, listed] = [0, 0];
  for (const [name, file] of files) {
    const packed = await file.end();
    const title = encoder.encode(name);
    // Version 2.0, names in UTF-8, deflated, no date.
    const about = [[2, 20], [2, 0x800], [2, 8], [4, 0x210000], [4, file.checksum], [4, packed.size], [4, file.size], [2, title.length], [2, 0]] as const;
    body.push(fields([[4, 0x04034b50], ...about]), title, packed);
    directory.push(fields([[4, 0x02014b50], [2, 20], ...about, [2, 0], [2, 0], [2, 0], [4, 0], [4, at]]), title);
    at += 30 + title.length + packed.size;
    listed += 46 + title.length;
  }
  const end = fields([[4, 0x06054b50], [2, 0], [2, 0], [2, files.length], [2, files.length], [4, listed], [4, at], [2, 0]]);
  return new Blob([...body, ...directory, end], { type: `${MAIN}.sheet` });
}

/** The sizes of an archive have four bytes. */
const MOST_BYTES = 0xffffffff;

/** A workbook to which rows are added. */
export class Workbook {
  private readonly sheet = new Packed();
  private begun: Promise<void> | undefined;

  /** Adds rows of the sheet. */
  async add(rows: string): Promise<void> {
    this.begun ??= this.sheet.add(SHEET[0]);
    await this.begun;
    await this.sheet.add(rows);
    if (this.sheet.size > MOST_BYTES) {
      throw new Error("This is too much for one workbook. Narrow the list, or save it as CSV.");
    }
  }

  async end(): Promise<Blob> {
    await this.add(SHEET[1]);
    const around = Object.entries(AROUND).map(([name, text]) => [name, text, new Packed()] as const);
    await Promise.all(around.map(([, text, file]) => file.add(text)));
    return zip([...around.map(([name, , file]) => [name, file] as const), ["xl/worksheets/sheet1.xml", this.sheet]]);
  }
}
