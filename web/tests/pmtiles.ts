// A tiny map file: a PMTiles archive of version 3, in which each tile is land with a lake in its lower half.

const HEADER = 127;
const EXTENT = 4096;

function varint(value: number): number[] {
  const bytes = [];
  for (; value > 0x7f; value = Math.floor(value / 128)) {
    bytes.push((value % 128) | 0x80);
  }
  return [...bytes, value];
}

// Protocol Buffers: a number, and what has a length.
const numberField = (field: number, value: number): number[] => [...varint(field * 8), ...varint(value)];
const bytesField = (field: number, bytes: number[]): number[] => [...varint(field * 8 + 2), ...varint(bytes.length), ...bytes];
const text = (value: string): number[] => [...Buffer.from(value)];

/** A layer of a tile (MVT) with one rectangle over its whole width. */
function rectangle(name: string, top: number, bottom: number): number[] {
  const zigzag = (value: number): number[] => varint(value < 0 ? -value * 2 - 1 : value * 2);
  const steps: [number, number][] = [[EXTENT, 0], [0, bottom - top], [-EXTENT, 0]];
  // Go to the corner, draw three lines, close.
  const geometry = [...varint(9), ...zigzag(0), ...zigzag(top), ...varint(3 * 8 + 2), ...steps.flatMap(([x, y]) => [...zigzag(x), ...zigzag(y)]), ...varint(15)];
  const POLYGON = 3;
  const feature = [...numberField(3, POLYGON), ...bytesField(4, geometry)];
  return bytesField(3, [...numberField(15, 2), ...bytesField(1, text(name)), ...bytesField(2, feature), ...numberField(5, EXTENT)]);
}

export interface Area {
  west: number;
  south: number;
  east: number;
  north: number;
}

/** Makes the archive: all tiles down to `maxZoom` are the same one. */
export function mapFile(area: Area, maxZoom = 4): Buffer {
  const tile = [...rectangle("earth", 0, EXTENT), ...rectangle("water", EXTENT / 2, EXTENT)];
  const tiles = Array.from({ length: maxZoom + 1 }, (_, zoom) => 4 ** zoom).reduce((sum, count) => sum + count);
  // One entry: the first tile, how many are the same, length, and offset plus one.
  const directory = [1, 0, tiles, tile.length, 1].flatMap(varint);
  const metadata = text("{}");
  const header = Buffer.alloc(HEADER);
  header.write("PMTiles");
  header[7] = 3;
  const sections = [
    [HEADER, directory.length],
    [HEADER + directory.length, metadata.length],
    [HEADER + directory.length + metadata.length, 0],
    [HEADER + directory.length + metadata.length, tile.length],
    [tiles, 1],
  ] as const;
  sections.flat().forEach((value, n) => header.writeBigUInt64LE(BigInt(value), 8 + n * 8));
  header.writeBigUInt64LE(1n, 88);
  const [CLUSTERED, UNCOMPRESSED, VECTORS] = [1, 1, 1];
  header.set([CLUSTERED, UNCOMPRESSED, UNCOMPRESSED, VECTORS, 0, maxZoom], 96);
  [area.west, area.south, area.east, area.north].forEach((degrees, n) => header.writeInt32LE(Math.round(degrees * 1e7), 102 + n * 4));
  return Buffer.concat([header, Buffer.from([...directory, ...metadata, ...tile])]);
}
