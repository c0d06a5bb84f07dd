// Operators of TBEL whose meaning differs from JavaScript's, conversions, and texts of values.
//
// undefined is null. A number is a double if QuickJS keeps it as one and it is whole and below 2^31; other wholes
// are ints and longs. Longs beyond 2^53 are remembered by the host, which gives their digits back.

// A sum of doubles is a double.
const one = 0.5 + 0.5;
const { isInteger } = Number;
const INT_LIMIT = 2147483648;
const isMap = (value) =>
  value !== null && typeof value === 'object' && !Array.isArray(value) && !(value instanceof Set)
  && (Object.getPrototypeOf(value) === Object.prototype);
const isDouble = (value) =>
  typeof value === 'number' && (!isInteger(value) || (value > -INT_LIMIT && value < INT_LIMIT && native.isDouble(value)));
const keysOf = (map) => Object.keys(map).filter((key) => map[key] !== undefined && map[key] !== null);

const fail = (message) => { throw new Error(message); };

// A whole number as an int, if it is one.
const int = (value) => (value === (value | 0) ? value | 0 : value);
const double = (value) => value * one;

const big = (value) => {
  if (typeof value === 'boolean') return value ? 1n : 0n;
  if (typeof value === 'string') return BigInt(value.trim() || 'x');
  if (typeof value !== 'number' || value !== value) fail('not a number: ' + text(value));
  if (value <= -9007199254740992 || value >= 9007199254740992) {
    const digits = native.exact(value);
    if (digits !== undefined) return BigInt(digits);
    if (value >= 9223372036854775807) return 9223372036854775807n;
    if (value <= -9223372036854775808) return -9223372036854775808n;
  }
  return BigInt(Math.trunc(value));
};
const long = (value) => {
  const wrapped = BigInt.asIntN(64, value);
  if (wrapped > -9007199254740992n && wrapped < 9007199254740992n) return int(Number(wrapped));
  return native.literal(wrapped.toString());
};

// A double as Java writes it.
const javaDouble = (value) => {
  if (value !== value) return 'NaN';
  if (value === Infinity) return 'Infinity';
  if (value === -Infinity) return '-Infinity';
  const size = Math.abs(value);
  if (size === 0) return 1 / value < 0 ? '-0.0' : '0.0';
  if (size >= 1e-3 && size < 1e7) {
    const plain = '' + value;
    return plain.includes('.') ? plain : plain + '.0';
  }
  const [digits, exponent] = value.toExponential().split('e');
  return (digits.includes('.') ? digits : digits + '.0') + 'E' + +exponent;
};

const numberText = (value) => {
  if (isDouble(value)) return javaDouble(value);
  if (value > -9007199254740992 && value < 9007199254740992) return '' + value;
  const digits = native.exact(value);
  return digits !== undefined ? digits : BigInt(value).toString();
};

// How Java's String.valueOf writes a value.
const text = (value) => {
  switch (typeof value) {
    case 'string': return value;
    case 'number': return numberText(value);
    case 'boolean': return value ? 'true' : 'false';
    case 'undefined': return 'null';
    case 'function': return 'function';
    default:
  }
  if (value === null) return 'null';
  if (Array.isArray(value)) return '[' + value.map(text).join(', ') + ']';
  if (value instanceof Set) return '[' + [...value].map(text).join(', ') + ']';
  if (value instanceof TbDate) return value.$_toString();
  if (value instanceof Entry) return text(value.key) + '=' + text(value.value);
  return '{' + keysOf(value).map((key) => key + '=' + text(value[key])).join(', ') + '}';
};

class Entry {
  constructor(key, value) {
    this.key = key;
    this.value = value;
  }
}

const isNumeric = (value) => typeof value === 'string' && /^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$/.test(value);

const equal = (left, right) => {
  if (left === right) return true;
  if (left === undefined || left === null || right === undefined || right === null) return left == right;
  const kinds = typeof left + typeof right;
  switch (kinds) {
    case 'numberstring': return isNumeric(right) && +right === left;
    case 'stringnumber': return isNumeric(left) && +left === right;
    case 'booleanstring': return (right === 'true') === left && (right === 'true' || right === 'false');
    case 'stringboolean': return equal(right, left);
    case 'booleannumber': return (right !== 0) === left;
    case 'numberboolean': return equal(right, left);
    case 'objectobject': break;
    default: return false;
  }
  if (Array.isArray(left)) {
    return Array.isArray(right) && left.length === right.length
      && left.every((item, at) => equal(item, right[at]));
  }
  if (left instanceof Set) {
    return right instanceof Set && left.size === right.size && [...left].every((item) => right.has(item));
  }
  if (left instanceof TbDate) return right instanceof TbDate && left.$_getTime() === right.$_getTime();
  if (Array.isArray(right) || right instanceof Set || right instanceof TbDate) return false;
  const keys = keysOf(left);
  return keys.length === keysOf(right).length
    && keys.every((key) => Object.hasOwn(right, key) && equal(left[key], right[key]));
};

const isEmpty = (value) => {
  if (value === undefined || value === null || value === false || value === 0) return true;
  if (typeof value === 'string') return value.trim() === '';
  if (Array.isArray(value)) return value.length === 0;
  if (value instanceof Set) return value.size === 0;
  return isMap(value) && keysOf(value).length === 0;
};

const number = (value) => {
  if (typeof value === 'number') return value;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (isNumeric(value)) return /[.eE]/.test(value) ? double(+value) : long(BigInt(value.trim().replace(/^\+/, '')));
  return fail('not a number: ' + text(value));
};

// A long beyond what a number can hold keeps its digits.
const minus = (value) => {
  if (value > -9007199254740992 && value < 9007199254740992) return -value;
  const digits = typeof value === 'number' ? native.exact(value) : undefined;
  return digits === undefined ? -value : long(-BigInt(digits));
};

const isInt = (value) => (value | 0) === value;
const bit = (value) => (value === true ? 1 : value === false ? 0 : value);
const bits64 = (value) => {
  if (isDouble(value) && !isInteger(value)) fail('bitwise operation on a non-fixed-point number');
  return big(value);
};
const bitwise = (small, large) => (left, right) => {
  const l = bit(left);
  const r = bit(right);
  return isInt(l) && isInt(r) ? small(l, r) : long(large(bits64(l), bits64(r)));
};
const shift = (small, large) => (left, right) => {
  const l = bit(left);
  const by = Number(BigInt.asIntN(32, bits64(bit(right))));
  return isInt(l) ? small(l, by) : long(large(bits64(l), BigInt(by & 63)));
};

// Casts: a text of one character is a char, whose number is its code.
const castInt = (value) => {
  if (typeof value === 'number') {
    if (value !== value) return 0;
    if (isDouble(value)) return Math.trunc(Math.min(Math.max(value, -INT_LIMIT), INT_LIMIT - 1)) | 0;
    return isInt(value) ? value : int(Number(BigInt.asIntN(32, big(value))));
  }
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string' && value.length === 1) return value.charCodeAt(0);
  return Math.trunc(number(value)) | 0;
};
const castLong = (value) => {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string' && value.length === 1) return value.charCodeAt(0);
  return typeof value === 'number' && value !== value ? 0 : long(big(number(value)));
};
const castDouble = (value) => {
  if (value === undefined || value === null) return undefined;
  if (value === 'NaN') return NaN;
  return double(number(value));
};
const wrapTo = (width) => (value) => {
  const whole = castInt(value);
  return whole === undefined ? undefined : int(Number(BigInt.asIntN(width, BigInt(whole))));
};
const castByte = wrapTo(8);
const castShort = wrapTo(16);
const castChar = (value) => (typeof value === 'number' ? String.fromCharCode(value) : text(value)[0]);
const castBoolean = (value) => {
  if (typeof value === 'boolean' || value === undefined || value === null) return value;
  if (typeof value === 'number') return value !== 0;
  return ['true', 'yes', 'on', '1'].includes(text(value).toLowerCase());
};

const isOf = (value, name) => {
  const whole = typeof value === 'number' && !isDouble(value);
  switch (name.replace(/^java\.(util|lang)\./, '')) {
    case 'String': case 'CharSequence': return typeof value === 'string';
    case 'Character': case 'char': return typeof value === 'string' && value.length === 1;
    case 'Integer': case 'int': return whole && isInt(value);
    case 'Long': case 'long': return whole && !isInt(value);
    case 'Double': case 'double': case 'Float': case 'float': return typeof value === 'number' && !whole;
    case 'Number': return typeof value === 'number';
    case 'Boolean': case 'boolean': return typeof value === 'boolean';
    case 'Map': case 'HashMap': case 'LinkedHashMap': return isMap(value);
    case 'List': case 'ArrayList': return Array.isArray(value) && !(value instanceof TbArray);
    case 'Set': case 'HashSet': case 'LinkedHashSet': return value instanceof Set;
    case 'Collection': return Array.isArray(value) || value instanceof Set;
    case 'Date': return value instanceof TbDate;
    case 'Object': return value !== undefined && value !== null;
    default: return fail('could not resolve class: ' + name);
  }
};

const soundex = (value) => {
  const codes = { b: 1, f: 1, p: 1, v: 1, c: 2, g: 2, j: 2, k: 2, q: 2, s: 2, x: 2, z: 2, d: 3, t: 3, l: 4, m: 5, n: 5, r: 6 };
  const letters = text(value).toLowerCase().replace(/[^a-z]/g, '');
  if (letters === '') return '0000';
  let out = letters[0].toUpperCase();
  let last = codes[letters[0]];
  for (const letter of letters.slice(1)) {
    const code = codes[letter];
    if (code && code !== last) out += code;
    if (letter !== 'h' && letter !== 'w') last = code;
  }
  return (out + '000').slice(0, 4);
};

// The share of the pairs of letters that two texts have in common.
const similarity = (left, right) => {
  const pairs = (value) => {
    const all = [];
    for (const word of text(value).toUpperCase().split(/\s+/)) {
      for (let at = 0; at + 1 < word.length; at++) all.push(word.slice(at, at + 2));
    }
    return all;
  };
  const [first, second] = [pairs(left), pairs(right)];
  const total = first.length + second.length;
  if (total === 0) return double(equal(left, right) ? 1 : 0);
  let common = 0;
  for (const pair of first) {
    const at = second.indexOf(pair);
    if (at >= 0) {
      common += 1;
      second.splice(at, 1);
    }
  }
  return double((2 * common) / total);
};

const regex = (source, flags) => {
  try {
    return new RegExp(text(source).replace(/\\p\{(Alpha|Lower|Upper|Digit|Alnum|Punct)\}/g, (_, name) => ({
      Alpha: '[A-Za-z]', Lower: '[a-z]', Upper: '[A-Z]', Digit: '[0-9]', Alnum: '[A-Za-z0-9]',
      Punct: '[!-\\/:-@\\[-`{-~]',
    })[name]).replace(/([*+?}])\+/g, '$1'), flags);
  } catch (error) {
    return fail('the regular expression cannot be used: ' + error.message);
  }
};
const matches = (value, source) => regex('^(?:' + text(source) + ')$', 's').test(text(value));

const items = (value) => {
  if (Array.isArray(value) || value instanceof Set) return value;
  if (value === undefined || value === null) return fail('cannot iterate over null');
  if (typeof value === 'string') return value.split('');
  if (typeof value === 'number') return Array.from({ length: Math.min(value, 1e6) }, (_, at) => at + 1);
  if (value instanceof Rolling || value instanceof RollingData) return value.values;
  if (typeof value !== 'object') return fail('cannot iterate over ' + text(value));
  return keysOf(value).map((key) => new Entry(key, value[key]));
};

Object.assign(globalThis, {
  $one: one,
  $wrap: (make) => Object.freeze(make(one)),
  $add: (left, right) => {
    if (typeof left === 'number' && typeof right === 'number') return left + right;
    if (Array.isArray(left)) return Array.isArray(right) ? [...left, ...right] : [...left, right];
    return text(left) + text(right);
  },
  $text: text,
  $key: text,
  $eq: equal,
  $isEmpty: isEmpty,
  $number: number,
  $literal: (digits) => native.literal(digits),
  $and: bitwise((l, r) => l & r, (l, r) => l & r),
  $or2: bitwise((l, r) => l | r, (l, r) => l | r),
  $xor: bitwise((l, r) => l ^ r, (l, r) => l ^ r),
  $shl: shift((l, by) => l << by, (l, by) => l << by),
  $shr: shift((l, by) => l >> by, (l, by) => l >> by),
  $ushr: shift((l, by) => (l >>> by) | 0, (l, by) => BigInt.asUintN(64, l) >> by),
  $minus: minus,
  $not: (value) => (isInt(bit(value)) ? ~bit(value) : long(~bits64(value))),
  $power: (left, right) => {
    const result = left ** right;
    return isDouble(left) || isDouble(right) ? double(result) : int(result);
  },
  $or: (left, other) => (isEmpty(left) ? other() : left),
  $match: matches,
  $soundsLike: (left, right) => soundex(left) === soundex(right),
  $similarity: similarity,
  $contains: (whole, part) => {
    if (whole === undefined || whole === null) return false;
    if (typeof whole === 'string') return whole.includes(text(part));
    if (Array.isArray(whole)) return whole.some((item) => equal(item, part));
    if (whole instanceof Set) return whole.has(part);
    return Object.hasOwn(whole, text(part));
  },
  $is: isOf,
  $iter: items,
  $int: castInt,
  $long: castLong,
  $double: castDouble,
  $byte: castByte,
  $short: castShort,
  $char: castChar,
  $boolean: castBoolean,
  $string: (value) => (value === undefined || value === null ? undefined : text(value)),
  $unknown: (name) => fail('unresolvable property or identifier: ' + name),
  $noFunction: (name) => fail('function not found: ' + name),
  $noClass: (name) => fail('could not resolve class: ' + name),
});

const methods = (owner, table) => {
  for (const name of Object.keys(table)) {
    Object.defineProperty(owner, '$_' + name, { value: table[name], writable: false, enumerable: false });
  }
};
const getter = (owner, name, get) => Object.defineProperty(owner, name, { get, enumerable: false });
const statics = (name, table, fields) => {
  const made = Object.create(null);
  methods(made, table);
  globalThis['$c_' + name] = Object.assign(made, fields);
};
const helpers = (table) => {
  for (const name of Object.keys(table)) globalThis['$h_' + name] = table[name];
};
