// Helpers for payloads: bytes, hexadecimal, base64, numbers in texts, and places.

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const signedByte = (value) => (value << 24) >> 24;

const utf8 = (value) => {
  const bytes = [];
  for (const char of value) {
    const code = char.codePointAt(0);
    if (code < 0x80) bytes.push(code);
    else if (code < 0x800) bytes.push(0xc0 | (code >> 6), 0x80 | (code & 63));
    else if (code >= 0xd800 && code < 0xe000) bytes.push(63);
    else if (code < 0x10000) bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
    else bytes.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
  }
  return bytes;
};
const fromUtf8 = (bytes) => {
  let out = '';
  for (let at = 0; at < bytes.length;) {
    const first = bytes[at] & 255;
    const size = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3
      : first >= 0xf0 && first < 0xf5 ? 4 : 0;
    let code = size === 1 ? first : size === 0 ? -1 : first & (0x7f >> size);
    for (let next = 1; next < size && code >= 0; next++) {
      const byte = bytes[at + next];
      code = byte !== undefined && (byte & 0xc0) === 0x80 ? (code << 6) | (byte & 63) : -1;
    }
    const least = [0, 0, 0x80, 0x800, 0x10000][size];
    const good = code >= least && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000);
    out += good ? String.fromCodePoint(code) : '\ufffd';
    at += good ? size : 1;
  }
  return out;
};
const charsetOf = (charset) => {
  switch (text(charset ?? 'UTF-8').toUpperCase().replace(/[-_]/g, '')) {
    case 'UTF8': return 'utf8';
    case 'ASCII': case 'USASCII': return 'ascii';
    case 'ISO88591': case 'LATIN1': return 'latin1';
    case 'UTF16': return 'utf16';
    case 'UTF16BE': return 'utf16be';
    case 'UTF16LE': return 'utf16le';
    default: return fail('unsupported charset: ' + text(charset));
  }
};
const encode = (value, charset) => {
  const kind = charsetOf(charset);
  if (kind === 'utf8') return utf8(value).map(signedByte);
  const out = kind === 'utf16' ? [0xfe, 0xff] : [];
  for (let at = 0; at < value.length; at++) {
    const code = value.charCodeAt(at);
    if (kind === 'ascii') out.push(code < 128 ? code : 63);
    else if (kind === 'latin1') out.push(code < 256 ? code : 63);
    else if (kind === 'utf16le') out.push(code & 255, code >> 8);
    else out.push(code >> 8, code & 255);
  }
  return out.map(signedByte);
};
const decode = (bytes, charset) => {
  const kind = charsetOf(charset);
  if (kind === 'utf8') return fromUtf8(bytes);
  if (kind === 'ascii' || kind === 'latin1') {
    return bytes.map((byte) => String.fromCharCode(kind === 'ascii' && byte < 0 ? 0xfffd : byte & 255)).join('');
  }
  let out = '';
  let little = kind === 'utf16le';
  let start = 0;
  if (kind === 'utf16' && (bytes[0] & 255) === 0xfe && (bytes[1] & 255) === 0xff) start = 2;
  if (kind === 'utf16' && (bytes[0] & 255) === 0xff && (bytes[1] & 255) === 0xfe) [start, little] = [2, true];
  for (let at = start; at + 1 < bytes.length; at += 2) {
    const [high, low] = little ? [bytes[at + 1], bytes[at]] : [bytes[at], bytes[at + 1]];
    out += String.fromCharCode(((high & 255) << 8) | (low & 255));
  }
  return out;
};

const byteOf = (value) => {
  const byte = typeof value === 'string' ? parseWholeText(value, 0, 32, true, 'parseInt') : value;
  if (typeof byte !== 'number' || !isInt(byte)) {
    fail("The value '" + text(value) + "' could not be correctly converted to a byte. "
      + 'Must be a HexDecimal/String/Integer/Byte format !');
  }
  if (byte > 255 || byte < -128) {
    fail("The value '" + text(value) + "' could not be correctly converted to a byte. Integer to byte conversion "
      + 'requires the use of only 8 bits (with a range of min/max = -128/255)!');
  }
  return signedByte(byte);
};
const bytesOf = (list) => collection(list).map(byteOf);

const toBase64 = (bytes) => {
  let out = '';
  for (let at = 0; at < bytes.length; at += 3) {
    const left = bytes.length - at;
    const group = ((bytes[at] & 255) << 16) | ((bytes[at + 1] & 255) << 8) | (bytes[at + 2] & 255);
    out += BASE64[(group >> 18) & 63] + BASE64[(group >> 12) & 63]
      + (left > 1 ? BASE64[(group >> 6) & 63] : '=') + (left > 2 ? BASE64[group & 63] : '=');
  }
  return out;
};
const fromBase64 = (value) => {
  const source = text(value).replace(/={1,2}$/, '');
  const bytes = [];
  let [bits, size] = [0, 0];
  for (const char of source) {
    const digit = BASE64.indexOf(char);
    if (digit < 0) fail('Illegal base64 character ' + char.charCodeAt(0).toString(16));
    bits = ((bits << 6) | digit) & 0xffffff;
    size += 6;
    if (size >= 8) {
      size -= 8;
      bytes.push(signedByte((bits >> size) & 255));
    }
  }
  if (size === 6) fail('Last unit does not have enough valid bits');
  return bytes;
};
const toHex = (bytes) => bytes.map((byte) => (byte & 255).toString(16).padStart(2, '0')).join('').toUpperCase();

const RADIXES = { 2: /^[01]+$/, 8: /^[0-7]+$/, 10: /^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$/, 16: /^-?(0[xX])?[0-9a-fA-F]+$/ };
const isRadix = (radix) => (value) => (typeof value === 'string' && RADIXES[radix].test(value) ? radix : -1);

const reverseHex = (value) => {
  if (value.startsWith('-')) fail('The hexadecimal string must be without a negative sign.');
  const prefix = value.startsWith('0x') ? '0x' : '';
  const hex = value.slice(prefix.length);
  if (hex.length % 2 > 0) fail('The hexadecimal string must be even-length.');
  return prefix + (hex.match(/../g) ?? []).reverse().join('');
};
const prepared = (value, bigEndian) => {
  if (value === undefined || value === null || text(value).trim() === '') return undefined;
  const source = text(value).trim().replaceAll('0x', '').replaceAll('0X', '').replaceAll(',', '.');
  return bigEndian ? source : reverseHex(source);
};
const radixOf = (source, radix, value) => {
  if (radix >= 25 && radix <= 36) return radix;
  if (radix !== 0 && !(radix in RADIXES)) fail('Invalid radix: [' + text(radix) + ']');
  let found = -1;
  if (radix === 0) found = RADIXES[10].test(source) ? 10 : RADIXES[16].test(source) ? 16 : -1;
  else if (RADIXES[radix].test(source)) found = radix;
  if (found < 0) {
    if (radix > 0) fail('Failed radix [' + radix + '] for value: "' + value + '", must be [-1] !');
    fail('Value: "' + source + '" is not numeric or hexDecimal format!');
  }
  if (text(value).startsWith('0x')) found = 16;
  if (found === 16 && text(value).replace(/^-/, '').length % 2 > 0) {
    fail('The hexadecimal value: "' + value + '" must be of even length, or if the decimal value must be a number!');
  }
  return found;
};
const parseWholeText = (value, radix, width, bigEndian, name) => {
  const source = prepared(value, bigEndian);
  if (source === undefined) return undefined;
  const found = radixOf(source, radix, text(value));
  if (found === 2) {
    // Two's complement of as many bits as there are, at least of the number's.
    const value = BigInt.asIntN(Math.max(source.length, width), BigInt('0b' + source));
    if (BigInt.asIntN(width, value) !== value) fail('For input string: "' + source + '" under radix 2');
    return long(value);
  }
  return parseWhole(source, found, width, name);
};
const parseFloatText = (value, radix, bigEndian) => {
  const source = prepared(value, bigEndian);
  if (source === undefined) return undefined;
  if (radixOf(source, radix, text(value)) !== 16) return asFloat(parseReal(value));
  view.setInt32(0, Number(BigInt.asIntN(32, big(parseWhole(source, 16, 64)))));
  return asFloat(view.getFloat32(0));
};
const parseDoubleText = (value, radix, bigEndian) => {
  const source = prepared(value, bigEndian);
  if (source === undefined) return undefined;
  if (radixOf(source, radix, text(value)) === 10) return parseReal(source);
  if (!/^[0-9a-fA-F]{1,16}$/.test(source)) fail('For input string: "' + source + '" under radix 16');
  view.setBigUint64(0, BigInt('0x' + source));
  return double(view.getFloat64(0));
};

const wholeHex = (value, bigEndian, prefix, length, most) => {
  const number = big(value);
  let hex = BigInt.asUintN(64, number).toString(16).toUpperCase();
  if (hex.length % 2 > 0) hex = '0' + hex;
  const limit = most < 0 ? hex.length : most;
  if (number < 0n) {
    hex = hex.replace(/^F+(?!$)/, '');
    if (hex.length % 2 > 0) hex = 'F' + hex;
    hex = hex.length > limit ? hex.slice(-limit) : hex.length === limit ? hex : 'FF' + hex;
  }
  if (!bigEndian) hex = reverseHex(hex);
  const size = length === -1 ? hex.length : length;
  if (size > hex.length || size < 0) fail('the number has only ' + hex.length + ' hexadecimal digits');
  return (prefix ? '0x' : '') + hex.slice(hex.length - size);
};

const span = (list, offset, length, most, check) => {
  const bytes = bytesOf(list);
  const from = offset ?? 0;
  const size = length ?? (bytes.length < from ? bytes.length : Math.min(bytes.length - from, most));
  if (from > bytes.length) fail('Offset: ' + from + ' is out of bounds for array with length: ' + bytes.length + '!');
  if (from < 0 || size < 0 || from + size > bytes.length) {
    fail('Offset: ' + from + ' and Length: ' + size + ' is out of bounds for array with length: ' + bytes.length + '!');
  }
  if (size > most) fail('Length: ' + size + ' is too large. Maximum ' + most + ' bytes is allowed!');
  return bytes.slice(from, from + size);
};
// The bytes as an unsigned number of `most` bytes: at its end, or in reverse order.
const gathered = (list, offset, length, bigEndian, most) => {
  const bytes = span(list, offset, length, most);
  if (!bigEndian) bytes.reverse();
  return bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte & 255), 0n);
};
const notNaN = (value, list) => {
  if (value !== value) fail('byte[] 0x' + toHex(bytesOf(list)) + ' is a Not-a-Number (NaN) value');
  return value;
};
const hexBytes = (value) => {
  const hex = prepared(value, true);
  if (hex === undefined) return fail('Hex string must be not empty!');
  if (hex.length % 2 > 0) fail('Hex string must be even-length.');
  if (isRadix(16)(text(value)) < 0 || hex.startsWith('-')) fail('Value: "' + text(value) + '" is not numeric or hexDecimal format!');
  return (hex.match(/../g) ?? []).map((pair) => signedByte(parseInt(pair, 16)));
};
const binary = (value, length, bigEndian) => {
  if (!isInt(length) || length < 0 || length > 64) fail('not a number of bits: ' + text(length));
  const bits = [];
  for (let at = 0; at < length; at++) bits.push(Number((value >> BigInt(at)) & 1n) | 0);
  return arrayOf(bigEndian ? bits.reverse() : bits);
};
const pad = (value, length, padding, start) => {
  const source = text(value);
  const size = Math.max(0, grow(castInt(length), castInt(length)) - source.length);
  const filling = castText(padding)[0].repeat(size);
  return start ? filling + source : source + filling;
};

const EARTH_KM = 6371.0087714;
const UNITS = { METER: 1000, KILOMETER: 1, FOOT: 3280.84, MILE: 0.62137, NAUTICAL_MILE: 0.539957 };
const distanceKm = (lat1, lon1, lat2, lon2) => {
  const rad = Math.PI / 180;
  const half = Math.sin(((lat2 - lat1) * rad) / 2) ** 2
    + Math.cos(lat1 * rad) * Math.cos(lat2 * rad) * Math.sin(((lon2 - lon1) * rad) / 2) ** 2;
  return EARTH_KM * 2 * Math.asin(Math.min(1, Math.sqrt(half)));
};
const inRing = (ring, x, y) => {
  let inside = false;
  for (let at = 0, before = ring.length - 1; at < ring.length; before = at++) {
    const [xi, yi] = ring[at];
    const [xj, yj] = ring[before];
    if ((yi > y) !== (yj > y) && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
};
const onRing = (ring, x, y) => ring.some(([xj, yj], at) => {
  const [xi, yi] = ring[(at + 1) % ring.length];
  return (x - xi) * (yj - yi) === (y - yi) * (xj - xi)
    && x >= Math.min(xi, xj) && x <= Math.max(xi, xj) && y >= Math.min(yi, yj) && y <= Math.max(yi, yj);
});
const rings = (value, out) => {
  if (!Array.isArray(value)) fail('not a polygon');
  if (value.length > 0 && value.every((point) => Array.isArray(point) && typeof point[0] !== 'object')) {
    const points = value.map(([x, y]) => [+x, +y]);
    if (points.length === 2) {
      const [[ax, ay], [cx, cy]] = points;
      out.push([[ax, ay], [ax, cy], [cx, cy], [cx, ay]]);
    } else {
      out.push(points);
    }
  } else {
    value.forEach((part) => rings(part, out));
  }
  return out;
};
// A ring all of whose points lie within another one is a hole.
const insidePolygon = (x, y, perimeter) => {
  if (text(perimeter).trim() === '') fail("Polygon string can't be empty or null!");
  const all = rings(JSON.parse(text(perimeter)), []);
  const holes = all.filter((ring) => all.some((other) =>
    other !== ring && ring.every(([px, py]) => inRing(other, px, py) && !onRing(other, px, py))));
  if (all.some((ring) => onRing(ring, x, y))) return false;
  return all.some((ring) => !holes.includes(ring) && inRing(ring, x, y)) && !holes.some((ring) => inRing(ring, x, y));
};

const KEPT = "-_.!~*'();/?:@&=+$,#";
helpers({
  btoa: (value) => toBase64(utf8(text(value))),
  atob: (value) => fromUtf8(fromBase64(value)),
  bytesToString: (list, charset) => decode(bytesOf(list), charset),
  decodeToString: (list, charset) => decode(bytesOf(list), charset),
  decodeToJson: (value) => parseJson(typeof value === 'string' ? value : decode(bytesOf(value))),
  stringToBytes: (value, charset) => {
    if (typeof value !== 'string') fail("Invalid type parameter [" + text(value) + "]. Expected 'String'");
    return encode(value, charset);
  },
  parseInt: (value, radix = 0) => parseWholeText(value, radix, 32, true, 'parseInt'),
  parseLong: (value, radix = 0) => parseWholeText(value, radix, 64, true, 'parseLong'),
  parseFloat: (value, radix = 0) => parseFloatText(value, radix, true),
  parseDouble: (value, radix = 0) => parseDoubleText(value, radix, true),
  parseHexIntLongToFloat: (value, bigEndian) => {
    const source = prepared(value, bigEndian);
    if (source === undefined) return undefined;
    radixOf(source, 16, text(value));
    return asFloat(Number(BigInt.asIntN(32, big(parseWhole(source, 16, 64)))));
  },
  parseHexToInt: (value, bigEndian = true) => parseWholeText(value, 16, 32, bigEndian),
  parseLittleEndianHexToInt: (value) => parseWholeText(value, 16, 32, false),
  parseBigEndianHexToInt: (value) => parseWholeText(value, 16, 32, true),
  parseHexToLong: (value, bigEndian = true) => parseWholeText(value, 16, 64, bigEndian),
  parseLittleEndianHexToLong: (value) => parseWholeText(value, 16, 64, false),
  parseBigEndianHexToLong: (value) => parseWholeText(value, 16, 64, true),
  parseHexToFloat: (value, bigEndian = true) => parseFloatText(value, 16, bigEndian),
  parseLittleEndianHexToFloat: (value) => parseFloatText(value, 16, false),
  parseBigEndianHexToFloat: (value) => parseFloatText(value, 16, true),
  parseHexToDouble: (value, bigEndian = true) => parseDoubleText(value, 16, bigEndian),
  parseLittleEndianHexToDouble: (value) => parseDoubleText(value, 16, false),
  parseBigEndianHexToDouble: (value) => parseDoubleText(value, 16, true),
  hexToBytes: hexBytes,
  hexToBytesArray: (value) => arrayOf(hexBytes(value)),
  printUnsignedBytes: (list) => bytesOf(list).map((byte) => byte & 255),
  intToHex: (value, bigEndian = true, prefix = false, length = -1) => wholeHex(value, bigEndian, prefix, length, 8),
  longToHex: (value, bigEndian = true, prefix = false, length = -1) => wholeHex(value, bigEndian, prefix, length, 16),
  intLongToRadixString: (value, radix = 10, bigEndian = true, prefix = false) => {
    if (radix >= 25 && radix <= 36) return big(value).toString(radix);
    switch (radix) {
      case 2: {
        const bits = unsigned(value, 64).toString(2);
        const size = [8, 16, 32, 64].find((width) => bits.length < width) ?? bits.length;
        return bits.padStart(size, '0');
      }
      case 8: return unsigned(value, 64).toString(8);
      case 10: return big(value).toString();
      case 16: return wholeHex(value, bigEndian, prefix, -1, -1);
      default: return fail('Invalid radix: [' + text(radix) + ']');
    }
  },
  floatToHex: (value, bigEndian = true) => {
    const hex = '0x' + floatBits(number(value)).toString(16).padStart(8, '0').toUpperCase();
    return bigEndian ? hex : reverseHex(hex);
  },
  doubleToHex: (value, bigEndian = true) => {
    const hex = '0x' + doubleBits(number(value)).toString(16).padStart(16, '0').toUpperCase();
    return bigEndian ? hex : reverseHex(hex);
  },
  base64ToHex: (value) => toHex(fromBase64(value)),
  hexToBase64: (value) => toBase64(hexBytes(value)),
  bytesToBase64: (list) => toBase64(bytesOf(list)),
  base64ToBytes: (value) => arrayOf(fromBase64(value)),
  base64ToBytesList: fromBase64,
  bytesToHex: (list) => toHex(bytesOf(list)),
  bytesToExecutionArrayList: bytesOf,
  parseBytesToInt: (list, offset, length, bigEndian = true) =>
    long(BigInt.asIntN(32, gathered(list, offset, length, bigEndian, 4))),
  parseBytesToUnsignedInt: (list, offset, length, bigEndian = true) => long(gathered(list, offset, length, bigEndian, 4)),
  parseBytesToLong: (list, offset, length, bigEndian = true) => long(gathered(list, offset, length, bigEndian, 8)),
  parseBytesToFloat: (list, offset, length, bigEndian = true) => {
    view.setUint32(0, Number(gathered(list, offset, length, bigEndian, 4)));
    return notNaN(asFloat(view.getFloat32(0)), list);
  },
  parseBytesToDouble: (list, offset, length, bigEndian = true) => {
    view.setBigUint64(0, gathered(list, offset, length, bigEndian, 8));
    return notNaN(double(view.getFloat64(0)), list);
  },
  parseBytesIntToFloat: (list, offset, length, bigEndian = true) =>
    asFloat(Number(gathered(list, offset, length, bigEndian, 4))),
  parseBytesLongToDouble: (list, offset, length, bigEndian = true) =>
    double(Number(gathered(list, offset, length, bigEndian, 8))),
  isBinary: isRadix(2),
  isOctal: isRadix(8),
  isDecimal: isRadix(10),
  isHexadecimal: isRadix(16),
  padStart: (value, length, padding) => pad(value, length, padding, true),
  padEnd: (value, length, padding) => pad(value, length, padding, false),
  parseByteToBinaryArray: (value, length = 8, bigEndian = true) => binary(big(castByte(value)), length, bigEndian),
  parseBytesToBinaryArray: (list, length) => {
    const bytes = bytesOf(list);
    return binary(BigInt.asIntN(64, gathered(bytes, 0, bytes.length, true, 8)), Math.min(length ?? bytes.length * 8, 64), true);
  },
  parseLongToBinaryArray: (value, length = 64) => binary(BigInt.asIntN(64, big(value)), Math.min(length, 64), true),
  parseBinaryArrayToInt: (list, offset = 0, length) => {
    const bytes = bytesOf(list);
    const end = Math.min((length ?? bytes.length) + offset, bytes.length);
    let result = 0;
    for (let at = offset; at < end; at++) result = (result << 1) | (bytes[at] & 1);
    if (bytes.length === 8 && offset === 0 && bytes[0] === 1) result -= 1 << (end - offset);
    return result;
  },
  encodeURI: (value) => {
    let out = '';
    for (const char of text(value)) {
      out += /[A-Za-z0-9]/.test(char) || KEPT.includes(char) ? char
        : utf8(char).map((byte) => '%' + byte.toString(16).padStart(2, '0').toUpperCase()).join('');
    }
    return out;
  },
  decodeURI: (value) => fromUtf8(utf8(text(value)).reduce((state, byte) => {
    if (state.left > 0) {
      state.hex += String.fromCharCode(byte);
      state.left -= 1;
      if (state.left === 0) {
        if (!/^[0-9a-fA-F]{2}$/.test(state.hex)) fail('Illegal hex characters in escape (%) pattern');
        state.bytes.push(parseInt(state.hex, 16));
      }
    } else if (byte === 37) {
      state.left = 2;
      state.hex = '';
    } else {
      state.bytes.push(byte);
    }
    return state;
  }, { bytes: [], left: 0, hex: '' }).bytes),
  isInsidePolygon: (latitude, longitude, perimeter) => insidePolygon(number(latitude), number(longitude), perimeter),
  isInsideCircle: (latitude, longitude, perimeter) => {
    const circle = JSON.parse(text(perimeter));
    const unit = UNITS[circle.radiusUnit ?? 'METER'];
    if (unit === undefined) fail('unknown unit of the radius: ' + circle.radiusUnit);
    const range = +circle.radius;
    return range > distanceKm(number(latitude), number(longitude), +circle.latitude, +circle.longitude) * unit;
  },
});
