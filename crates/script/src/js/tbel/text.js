// Methods of texts and numbers, and the static methods of Java's classes.

const hash = (value) => {
  let code = 0;
  for (let at = 0; at < value.length; at++) code = (Math.imul(code, 31) + value.charCodeAt(at)) | 0;
  return code;
};
const compare = (left, right) => {
  const length = Math.min(left.length, right.length);
  for (let at = 0; at < length; at++) {
    const difference = left.charCodeAt(at) - right.charCodeAt(at);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
};
const checkChar = (value, index, last) => {
  if (!isInt(index) || index < 0 || index > last) {
    throw new RangeError('index ' + text(index) + ', length ' + value.length);
  }
  return index;
};
// Java's replacement texts quote with a backslash where JavaScript doubles the dollar.
const replacement = (value) => text(value).replace(/\\(.)|\$(?!\d|\{)/gs, (found, quoted) =>
  (quoted === undefined ? '$$' : quoted === '$' ? '$$' : quoted)).replace(/\$\{(\w+)\}/g, '$$<$1>');
const split = (value, separator, limit = 0) => {
  let parts;
  if (limit > 0) {
    parts = [];
    const pattern = regex(separator, 'g');
    let start = 0;
    for (let found = pattern.exec(value); found && parts.length < limit - 1; found = pattern.exec(value)) {
      if (found[0] === '') {
        pattern.lastIndex += 1;
        if (found.index === 0) continue;
      }
      parts.push(value.slice(start, found.index));
      start = found.index + found[0].length;
    }
    parts.push(value.slice(start));
  } else {
    parts = value.split(regex(separator, ''));
  }
  if (limit === 0) while (parts.length > 1 && parts[parts.length - 1] === '') parts.pop();
  return arrayOf(parts);
};
const grow = (value, length) => {
  if (length > 4194304) fail('Max string length overflow (' + length + ' > 4194304)!');
  return value;
};

methods(String.prototype, {
  length() { return this.length; },
  isEmpty() { return this.length === 0; },
  isBlank() { return this.trim() === ''; },
  charAt(index) { return this[checkChar(this, index, this.length - 1)]; },
  codePointAt(index) { return this.codePointAt(checkChar(this, index, this.length - 1)); },
  substring(start, end = this.length) {
    return this.slice(checkChar(this, start, end), checkChar(this, end, this.length));
  },
  subSequence(start, end) { return this.$_substring(start, end); },
  indexOf(part, from = 0) { return this.indexOf(castText(part), from); },
  lastIndexOf(part, from = Infinity) { return this.lastIndexOf(castText(part), from); },
  contains(part) { return this.includes(text(part)); },
  includes(part) { return this.includes(text(part)); },
  startsWith(part, from = 0) { return this.startsWith(text(part), from); },
  endsWith(part) { return this.endsWith(text(part)); },
  equals(other) { return typeof other === 'string' && this.$_toString() === other; },
  equalsIgnoreCase(other) { return typeof other === 'string' && this.toLowerCase() === other.toLowerCase(); },
  compareTo(other) { return compare(this, text(other)); },
  compareToIgnoreCase(other) { return compare(this.toLowerCase(), text(other).toLowerCase()); },
  contentEquals(other) { return this.$_toString() === text(other); },
  toUpperCase() { return this.toUpperCase(); },
  toLowerCase() { return this.toLowerCase(); },
  trim() { return this.trim(); },
  strip() { return this.trim(); },
  stripLeading() { return this.trimStart(); },
  stripTrailing() { return this.trimEnd(); },
  replace(from, to) { return this.replaceAll(text(from), () => text(to)); },
  replaceAll(pattern, to) { return this.replace(regex(pattern, 'g'), replacement(to)); },
  replaceFirst(pattern, to) { return this.replace(regex(pattern, ''), replacement(to)); },
  split(separator, limit) { return split(this.$_toString(), separator, limit); },
  matches(pattern) { return matches(this.$_toString(), pattern); },
  concat(other) { return this + text(other); },
  repeat(count) { return grow(this, this.length * count).repeat(count); },
  toCharArray() { return arrayOf(this.split('')); },
  chars() { return arrayOf(this.split('').map((char) => char.charCodeAt(0))); },
  lines() { return this.split(/\r\n|\r|\n/); },
  getBytes(charset) { return arrayOf(encode(this.$_toString(), charset)); },
  hashCode() { return hash(this); },
  intern() { return this.$_toString(); },
  format(...args) { return format(this.$_toString(), args); },
  toString() { return this + ''; },
  valueOf() { return this + ''; },
  intValue() { return castInt(this + ''); },
});
const castText = (value) => (typeof value === 'number' ? String.fromCharCode(value) : text(value));

methods(Number.prototype, {
  intValue() { return castInt(+this); },
  longValue() { return castLong(+this); },
  doubleValue() { return double(+this); },
  floatValue() { return double(Math.fround(+this)); },
  byteValue() { return castByte(+this); },
  shortValue() { return castShort(+this); },
  equals(other) { return equal(+this, other); },
  compareTo(other) { return +this < other ? -1 : +this > other ? 1 : 0; },
  hashCode() { return castInt(+this); },
  isNaN() { return +this !== +this; },
  isInfinite() { return Math.abs(+this) === Infinity; },
});
// The tag of the number would be lost in an object, so this one is strict and gets the number itself.
Object.defineProperty(Number.prototype, '$_toString', { value() { return text(this); }, enumerable: false });
methods(Boolean.prototype, {
  booleanValue() { return this == true; },
  equals(other) { return (this == true) === other; },
  compareTo(other) { return (this == true ? 1 : 0) - (other ? 1 : 0); },
  toString() { return this == true ? 'true' : 'false'; },
});
methods(Function.prototype, { call(...args) { return this(...args); } });

const DIGITS = /^[+-]?[0-9a-zA-Z]+$/;
const parseWhole = (value, radix, width, name) => {
  const source = typeof value === 'number' ? numberText(value) : value;
  const wrong = () => fail('For input string: "' + text(value) + '"' + (radix === 10 ? '' : ' under radix ' + radix));
  if (typeof source !== 'string' || !DIGITS.test(source)) return wrong();
  const negative = source[0] === '-';
  let result = 0n;
  for (const char of source.replace(/^[+-]/, '')) {
    const digit = parseInt(char, 36);
    if (!(digit < radix)) return wrong();
    result = result * BigInt(radix) + BigInt(digit);
  }
  if (negative) result = -result;
  if (BigInt.asIntN(width, result) !== result) return wrong();
  return long(result);
};
const unsigned = (value, width) => BigInt.asUintN(width, big(value));
const whole = (width, extra) => ({
  ['parse' + (width === 32 ? 'Int' : width === 64 ? 'Long' : width === 16 ? 'Short' : 'Byte')](value, radix = 10) {
    return parseWhole(value, radix, width);
  },
  valueOf(value, radix = 10) {
    if (typeof value !== 'string') return width === 64 ? castLong(value) : castInt(value);
    return parseWhole(value, radix, width);
  },
  toString(value, radix = 10) { return big(value).toString(radix); },
  toHexString(value) { return unsigned(value, width).toString(16); },
  toOctalString(value) { return unsigned(value, width).toString(8); },
  toBinaryString(value) { return unsigned(value, width).toString(2); },
  toUnsignedString(value, radix = 10) { return unsigned(value, width).toString(radix); },
  toUnsignedInt(value) { return long(unsigned(value, width)); },
  toUnsignedLong(value) { return long(unsigned(value, width)); },
  compare(left, right) { return left < right ? -1 : left > right ? 1 : 0; },
  max(left, right) { return left > right ? left : right; },
  min(left, right) { return left < right ? left : right; },
  sum(left, right) { return long(BigInt.asIntN(width, big(left) + big(right))); },
  signum(value) { return value > 0 ? 1 : value < 0 ? -1 : 0; },
  bitCount(value) { return unsigned(value, width).toString(2).replaceAll('0', '').length; },
  numberOfLeadingZeros(value) {
    const bits = unsigned(value, width);
    return bits === 0n ? width : width - bits.toString(2).length;
  },
  numberOfTrailingZeros(value) {
    const bits = unsigned(value, width).toString(2);
    return bits === '0' ? width : bits.length - 1 - bits.lastIndexOf('1');
  },
  reverse(value) {
    const bits = unsigned(value, width).toString(2).padStart(width, '0');
    return long(BigInt.asIntN(width, BigInt('0b' + bits.split('').reverse().join(''))));
  },
  reverseBytes(value) {
    const bytes = unsigned(value, width).toString(16).padStart(width / 4, '0').match(/../g);
    return long(BigInt.asIntN(width, BigInt('0x' + bytes.reverse().join(''))));
  },
  hashCode(value) { return castInt(value); },
  ...extra,
});
const limits = (width) => {
  const max = (1n << BigInt(width - 1)) - 1n;
  const fields = { SIZE: width, BYTES: width / 8 };
  // A long at its limits is remembered call by call, so these are read through functions.
  Object.defineProperty(fields, 'MAX_VALUE', { get: () => long(max), enumerable: true });
  Object.defineProperty(fields, 'MIN_VALUE', { get: () => long(-max - 1n), enumerable: true });
  return fields;
};
for (const [name, width] of [['Byte', 8], ['Short', 16], ['Integer', 32], ['Long', 64]]) {
  statics(name, whole(width, {}), {});
  Object.defineProperties(globalThis['$c_' + name], Object.getOwnPropertyDescriptors(limits(width)));
}

const parseReal = (value) => {
  if (typeof value === 'number') return double(value);
  const source = text(value).trim();
  if (/^[+-]?(NaN|Infinity)$/.test(source)) return double(+source);
  if (!/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?$/.test(source)) fail('For input string: "' + source + '"');
  return double(parseFloat(source));
};
const view = new DataView(new ArrayBuffer(8));
const hexReal = (value, mantissaBits, bias, minimum, bits) => {
  if (value !== value || Math.abs(value) === Infinity) return javaDouble(value);
  const sign = bits >> BigInt(mantissaBits + (mantissaBits === 52 ? 11 : 8)) ? '-' : '';
  const exponent = Number((bits >> BigInt(mantissaBits)) & (mantissaBits === 52 ? 0x7ffn : 0xffn));
  let mantissa = bits & ((1n << BigInt(mantissaBits)) - 1n);
  if (mantissaBits === 23) mantissa <<= 1n;
  const digits = mantissa.toString(16).padStart(mantissaBits === 52 ? 13 : 6, '0').replace(/0+$/, '') || '0';
  if (exponent === 0) return sign + (mantissa === 0n ? '0x0.0p0' : '0x0.' + digits + 'p' + minimum);
  return sign + '0x1.' + digits + 'p' + (exponent - bias);
};
const floatBits = (value) => {
  view.setFloat32(0, value);
  return view.getUint32(0);
};
const doubleBits = (value) => {
  view.setFloat64(0, value);
  return view.getBigUint64(0);
};
const real = (round, extra) => ({
  valueOf: (value) => round(parseReal(value)),
  toString: (value) => text(round(number(value))),
  isNaN: (value) => number(value) !== number(value),
  isInfinite: (value) => Math.abs(number(value)) === Infinity,
  isFinite: (value) => Number.isFinite(number(value)),
  compare: (left, right) => (left < right ? -1 : left > right ? 1 : left === right ? 0 : left === left ? -1 : right === right ? 1 : 0),
  max: (left, right) => double(Math.max(left, right)),
  min: (left, right) => double(Math.min(left, right)),
  sum: (left, right) => double(left + right),
  ...extra,
});
const asFloat = (value) => double(shortFloat(value));
// The shortest decimal that is the same float: what a float of Java shows.
const shortFloat = (value) => {
  const single = Math.fround(value);
  if (!Number.isFinite(single)) return single;
  for (let digits = 1; digits <= 9; digits++) {
    const short = +single.toPrecision(digits);
    if (Math.fround(short) === single) return short;
  }
  return single;
};
statics('Double', real(double, {
  parseDouble: parseReal,
  doubleToLongBits: (value) => long(doubleBits(value)),
  doubleToRawLongBits: (value) => long(doubleBits(value)),
  longBitsToDouble: (value) => {
    view.setBigInt64(0, BigInt.asIntN(64, big(value)));
    return double(view.getFloat64(0));
  },
  toHexString: (value) => hexReal(value, 52, 1023, -1022, doubleBits(value)),
}), { MAX_VALUE: Number.MAX_VALUE, MIN_VALUE: Number.MIN_VALUE, NaN, POSITIVE_INFINITY: Infinity, NEGATIVE_INFINITY: -Infinity });
statics('Float', real(asFloat, {
  parseFloat: (value) => asFloat(parseReal(value)),
  floatToIntBits: (value) => floatBits(value) | 0,
  floatToRawIntBits: (value) => floatBits(value) | 0,
  intBitsToFloat: (value) => {
    view.setInt32(0, value | 0);
    return asFloat(view.getFloat32(0));
  },
  toHexString: (value) => hexReal(value, 23, 127, -126, BigInt(floatBits(value))),
}), { MAX_VALUE: 3.4028234663852886e38, MIN_VALUE: 1.401298464324817e-45, NaN, POSITIVE_INFINITY: Infinity, NEGATIVE_INFINITY: -Infinity });
statics('Boolean', {
  parseBoolean: (value) => typeof value === 'string' && value.toLowerCase() === 'true',
  valueOf: (value) => (typeof value === 'boolean' ? value : typeof value === 'string' && value.toLowerCase() === 'true'),
  toString: text,
  logicalXor: (left, right) => left !== right,
}, { TRUE: true, FALSE: false });
const char = (value) => castText(value)[0] ?? '';
statics('Character', {
  isDigit: (value) => /^\p{Nd}/u.test(char(value)),
  isLetter: (value) => /^\p{L}/u.test(char(value)),
  isLetterOrDigit: (value) => /^[\p{L}\p{Nd}]/u.test(char(value)),
  isUpperCase: (value) => /^\p{Lu}/u.test(char(value)),
  isLowerCase: (value) => /^\p{Ll}/u.test(char(value)),
  isWhitespace: (value) => /^\s/.test(char(value)),
  toUpperCase: (value) => char(value).toUpperCase(),
  toLowerCase: (value) => char(value).toLowerCase(),
  getNumericValue: (value) => (/^[0-9a-zA-Z]/.test(char(value)) ? parseInt(char(value), 36) : -1),
  toString: char,
  valueOf: char,
}, {});
statics('String', {
  valueOf: (value) => text(value),
  format: (pattern, ...args) => format(text(pattern), args),
  join: (separator, ...args) =>
    (args.length === 1 && typeof args[0] === 'object' ? collection(args[0]) : args).map(text).join(text(separator)),
  fromCharCode: (...codes) => String.fromCharCode(...codes),
}, {});
statics('Object', {}, {});

const same = (result, ...args) => (args.some(isDouble) ? double(result) : int(result));
const reals = {};
for (const name of ['sqrt', 'cbrt', 'sin', 'cos', 'tan', 'asin', 'acos', 'atan', 'sinh', 'cosh', 'tanh', 'exp', 'expm1',
  'log', 'log10', 'log1p', 'ceil', 'floor', 'atan2', 'hypot', 'pow']) {
  const original = Math[name];
  reals[name] = (...args) => double(original(...args.map(number)));
}
const exactly = (width, result) => {
  if (BigInt.asIntN(width, result) !== result) fail((width === 32 ? 'integer' : 'long') + ' overflow');
  return long(result);
};
const floorDivide = (left, right) => {
  if (right === 0n) fail('/ by zero');
  const quotient = left / right;
  return quotient * right !== left && (left < 0n) !== (right < 0n) ? quotient - 1n : quotient;
};
statics('Math', {
  ...reals,
  random: () => Math.random(),
  abs: (value) => same(Math.abs(number(value)), value),
  max: (left, right) => same(Math.max(number(left), number(right)), left, right),
  min: (left, right) => same(Math.min(number(left), number(right)), left, right),
  round: (value) => int(Math.floor(number(value) + 0.5) + 0),
  rint: (value) => {
    const below = Math.floor(value);
    const rest = value - below;
    return double(rest < 0.5 || (rest === 0.5 && below % 2 === 0) ? below : below + 1);
  },
  signum: (value) => double(Math.sign(value)),
  toRadians: (value) => double((value / 180) * Math.PI),
  toDegrees: (value) => double((value * 180) / Math.PI),
  floorDiv: (left, right) => long(floorDivide(big(left), big(right))),
  floorMod: (left, right) => long(big(left) - floorDivide(big(left), big(right)) * big(right)),
  addExact: (left, right) => exactly(64, big(left) + big(right)),
  subtractExact: (left, right) => exactly(64, big(left) - big(right)),
  multiplyExact: (left, right) => exactly(64, big(left) * big(right)),
  toIntExact: (value) => exactly(32, big(value)),
  negateExact: (value) => exactly(64, -big(value)),
}, { PI: Math.PI, E: Math.E });

const MAX_DEPTH = 200;
const stringify = (value, depth) => {
  if (value === undefined || value === null || typeof value === 'function') return 'null';
  if (typeof value === 'number') {
    if (value !== value || Math.abs(value) === Infinity) return '"' + javaDouble(value) + '"';
    return isDouble(value) && Math.abs(value) < 1e7 && isInteger(value) ? value + '.0' : isDouble(value) ? '' + value : numberText(value);
  }
  if (typeof value !== 'object') return JSON.stringify(value);
  if (depth > MAX_DEPTH) return fail('the value is nested too deeply or contains itself');
  if (value instanceof TbDate) return JSON.stringify(value.$_toString());
  if (Array.isArray(value) || value instanceof Set) {
    return '[' + [...value].map((item) => stringify(item, depth + 1)).join(',') + ']';
  }
  if (value instanceof Entry) return '{' + JSON.stringify(text(value.key)) + ':' + stringify(value.value, depth + 1) + '}';
  return '{' + keysOf(value).map((key) => JSON.stringify(key) + ':' + stringify(value[key], depth + 1)).join(',') + '}';
};
const parseJson = (source) => {
  if (source === undefined || source === null) return undefined;
  return native.parse(text(source));
};
statics('JSON', { stringify: (value) => stringify(value, 0), parse: parseJson }, {});

// The formats of Java's Formatter that scripts use.
const format = (pattern, args) => {
  let next = 0;
  const spec = /%(?:(\d+)\$)?([-#+ 0,(]*)(\d+)?(?:\.(\d+))?([a-zA-Z%])/g;
  return pattern.replace(spec, (whole, position, flags, width, precision, kind) => {
    if (kind === 'n') return '\n';
    if (kind === '%') return '%';
    const at = position ? position - 1 : next++;
    if (at >= args.length) fail("Format specifier '" + whole + "'");
    const out = formatted(args[at], kind, flags, precision);
    const size = Math.min(+(width ?? 0), 10000);
    if (flags.includes('-')) return out.padEnd(size);
    if (!flags.includes('0')) return out.padStart(size);
    const sign = /^[+\- ]/.test(out) ? out[0] : '';
    return sign + out.slice(sign.length).padStart(size - sign.length, '0');
  });
};
const formatted = (value, kind, flags, precision) => {
  const empty = value === undefined || value === null;
  const signed = (out, negative) => (negative ? '-' : flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : '') + out;
  const grouped = (out) => (flags.includes(',') ? out.replace(/^\d+/, (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ',')) : out);
  switch (kind) {
    case 'd': {
      if (empty) return 'null';
      if (isDouble(value)) fail('d != java.lang.Double');
      const whole = big(value);
      return signed(grouped((whole < 0n ? -whole : whole).toString()), whole < 0n);
    }
    case 'f': {
      if (empty) return 'null';
      const digits = Math.min(+(precision ?? 6), 100);
      return signed(grouped(fixed(Math.abs(number(value)), digits)), number(value) < 0);
    }
    case 'e': case 'E': case 'g': {
      if (empty) return 'null';
      const out = Math.abs(number(value)).toExponential(Math.min(+(precision ?? 6), 100)).replace(/e([+-])(\d)$/, 'e$10$2');
      return signed(kind === 'E' ? out.toUpperCase() : out, number(value) < 0);
    }
    case 'x': case 'X': case 'o': {
      if (empty) return 'null';
      const out = unsigned(value, isInt(value) ? 32 : 64).toString(kind === 'o' ? 8 : 16);
      const prefixed = (flags.includes('#') ? (kind === 'o' ? '0' : '0x') : '') + out;
      return kind === 'X' ? prefixed.toUpperCase() : prefixed;
    }
    case 'b': return empty ? 'false' : typeof value === 'boolean' ? text(value) : 'true';
    case 'c': return empty ? 'null' : castText(value);
    case 's': case 'S': {
      const out = precision === undefined ? text(value) : text(value).slice(0, +precision);
      return kind === 'S' ? out.toUpperCase() : out;
    }
    default: return fail("Unknown format conversion '" + kind + "'");
  }
};
// Half up on the shortest decimal of the number, as BigDecimal.valueOf does.
const scaled = (value, digits) => {
  const [mantissa, exponent = '0'] = Math.abs(value).toString().split('e');
  const [integer, fraction = ''] = mantissa.split('.');
  const shift = digits + +exponent - fraction.length;
  const all = BigInt(integer + fraction);
  if (shift >= 0) return all * 10n ** BigInt(Math.min(shift, 400));
  if (shift < -400) return 0n;
  const unit = 10n ** BigInt(-shift);
  return (all + unit / 2n) / unit;
};
const fixed = (value, digits) => {
  if (!Number.isFinite(value)) return javaDouble(value);
  const out = scaled(value, digits).toString().padStart(digits + 1, '0');
  return digits === 0 ? out : out.slice(0, -digits) + '.' + out.slice(-digits);
};
const rounded = (value, digits) => {
  const source = number(value);
  if (!Number.isFinite(source)) fail('not a finite number: ' + text(source));
  const size = digits >= 0 ? +fixed(source, digits) : Number(scaled(source, digits)) * 10 ** -digits;
  return source < 0 ? -size : size;
};
helpers({
  toFixed: (value, digits) => double(rounded(value, digits)),
  toInt: (value) => castInt(rounded(value, 0) * one),
  isNaN: (value) => number(value) !== number(value),
  raiseError: (message) => fail(text(message)),
});
