// Maps, lists, arrays and sets.

class TbArray extends Array {}

const MAX_ARRAY = 1000000;
const ZERO = { boolean: false, double: double(0), float: double(0), char: '\0' };
const primitive = (name) => ['int', 'long', 'short', 'byte', 'boolean', 'double', 'float', 'char'].includes(name);
const converted = (element, value) => {
  switch (element) {
    case 'byte': return castByte(value);
    case 'short': return castShort(value);
    case 'int': return castInt(value);
    case 'long': return castLong(value);
    case 'double': case 'float': return castDouble(value);
    default: return value;
  }
};
const arrayOf = (values) => {
  const array = new TbArray();
  for (let at = 0; at < values.length; at++) array[at] = values[at];
  return Object.preventExtensions(array);
};
const newArray = (element, lengths) => {
  const [length, ...inner] = lengths;
  if (!isInt(length) || length < 0) fail('not a length of an array: ' + text(length));
  if (length > MAX_ARRAY) fail('Max array length overflow (' + length + ' > ' + MAX_ARRAY + ')');
  const array = new TbArray();
  const zero = element in ZERO ? ZERO[element] : primitive(element) ? 0 : undefined;
  for (let at = 0; at < length; at++) array[at] = inner.length > 0 ? newArray(element, inner) : zero;
  return Object.preventExtensions(array);
};

Object.assign(globalThis, {
  $array: newArray,
  $arrayOf: (element, values) => arrayOf(values.map((value) => converted(element, value))),
  $newMap: (other) => (isMap(other) ? { ...other } : {}),
  $newList: (other) => (Array.isArray(other) || other instanceof Set ? [...other] : []),
  $newSet: (other) => new Set(Array.isArray(other) || other instanceof Set ? other : []),
});

const open = (collection, kind) => {
  if (Object.isFrozen(collection) && !(collection instanceof Set)) fail(kind + ' is unmodifiable');
  return collection;
};
const openList = (list) => open(list, 'List');
const openMap = (map) => open(map, 'Map');
const collection = (value) => {
  if (Array.isArray(value)) return value;
  if (value instanceof Set) return [...value];
  return fail('not a collection: ' + text(value));
};
const checkIndex = (list, index, last) => {
  if (!isInt(index) || index < 0 || index > last) {
    throw new RangeError('Index ' + text(index) + ' out of bounds for length ' + list.length);
  }
  return index;
};
const startIndex = (list, start) => (start < -list.length ? 0 : start < 0 ? start + list.length : start);
const endIndex = (list, end) =>
  (end < -list.length ? 0 : end < 0 ? end + list.length : Math.min(end, list.length));

// Numbers by value if everything is one, otherwise texts.
const compareAll = (values) => {
  if (values.every((value) => typeof value === 'number' || isNumeric(value))) return (a, b) => a - b;
  return (a, b) => {
    const [left, right] = [text(a), text(b)];
    return left < right ? -1 : left > right ? 1 : 0;
  };
};
const sorted = (values, asc) => {
  const compare = compareAll(values);
  return [...values].sort(asc === false ? (a, b) => compare(b, a) : compare);
};
const memory = (values) =>
  values.reduce((sum, value) => sum + (typeof value === 'string' ? value.length * 2 + 10 : 8), 0);
const indexIn = (list, value, from) => {
  for (let at = Math.max(from, 0); at < list.length; at++) if (equal(list[at], value)) return at;
  return -1;
};
// Arguments of a call are limited in number, so nothing is spread into one.
const append = (list, values) => {
  for (let at = 0, count = values.length; at < count; at++) list.push(values[at]);
};
const refill = (list, values) => {
  const changed = list.length !== values.length;
  list.length = 0;
  append(list, values);
  return changed;
};
const insert = (list, at, values) => {
  const rest = at < list.length ? list.splice(at, list.length - at) : [];
  append(list, values);
  append(list, rest);
};
const splice = (list, start, count, values) => {
  const from = startIndex(list, start);
  const removed = list.splice(from, Math.max(0, Math.min(count, list.length - from)));
  insert(list, from, values);
  return removed;
};

methods(Array.prototype, {
  size() { return this.length; },
  length() { return this.length; },
  isEmpty() { return this.length === 0; },
  get(index) { return this[checkIndex(this, index, this.length - 1)]; },
  set(index, value) {
    const old = openList(this)[checkIndex(this, index, this.length - 1)];
    this[index] = value;
    return old;
  },
  add(...args) {
    if (args.length === 1) {
      openList(this).push(args[0]);
      return true;
    }
    openList(this).splice(checkIndex(this, args[0], this.length), 0, args[1]);
    return undefined;
  },
  push(value) {
    openList(this).push(value);
    return true;
  },
  addAll(...args) {
    const values = collection(args[args.length - 1]);
    const at = args.length === 2 ? checkIndex(this, args[0], this.length) : this.length;
    insert(openList(this), at, values === this ? [...values] : values);
    return values.length > 0;
  },
  pop() { return openList(this).pop(); },
  shift() {
    checkIndex(this, 0, this.length - 1);
    return openList(this).shift();
  },
  unshift(value) {
    openList(this).unshift(value);
    return undefined;
  },
  remove(value) {
    if (isInt(value) && !isDouble(value)) {
      return openList(this).splice(checkIndex(this, value, this.length - 1), 1)[0];
    }
    const at = indexIn(openList(this), value, 0);
    if (at >= 0) this.splice(at, 1);
    return at >= 0;
  },
  removeAll(values) {
    const gone = collection(values);
    return refill(openList(this), this.filter((item) => indexIn(gone, item, 0) < 0));
  },
  retainAll(values) {
    const wanted = collection(values);
    return refill(openList(this), this.filter((item) => indexIn(wanted, item, 0) >= 0));
  },
  clear() { openList(this).splice(0, this.length); },
  contains(value) { return indexIn(this, value, 0) >= 0; },
  containsAll(values) { return collection(values).every((value) => indexIn(this, value, 0) >= 0); },
  includes(value, from = 0) { return indexIn(this, value, startIndex(this, from)) >= 0; },
  indexOf(value, from = 0) { return indexIn(this, value, from); },
  lastIndexOf(value) {
    for (let at = this.length - 1; at >= 0; at--) if (equal(this[at], value)) return at;
    return -1;
  },
  slice(start = 0, end = this.length) { return [...this].slice(startIndex(this, start), endIndex(this, end)); },
  subList(start, end) { return [...this].slice(checkIndex(this, start, end), checkIndex(this, end, this.length)); },
  join(separator = ',') {
    return this.map(text).join(text(separator)).replaceAll(', ', ',').replaceAll('[', '').replaceAll(']', '');
  },
  sort(asc) {
    const values = sorted(this, asc);
    openList(this);
    for (let at = 0; at < values.length; at++) this[at] = values[at];
  },
  toSorted(asc) { return sorted(this, asc); },
  reverse() { openList(this).reverse(); },
  toReversed() { return [...this].reverse(); },
  concat(values) { return [...this, ...collection(values)]; },
  splice(start, count, ...values) {
    return splice(openList(this), start, count === undefined ? this.length : count, values);
  },
  toSpliced(start, count = 0, ...values) {
    const copy = [...this];
    splice(copy, start, count, values);
    return copy;
  },
  with(index, value) {
    const at = index < 0 ? index + this.length : index;
    if (at >= this.length || at < 0) fail('Index: ' + text(index) + ', Size: ' + this.length);
    const copy = [...this];
    copy.splice(at, 0, value);
    return copy;
  },
  fill(value, start = 0, end = this.length) {
    const last = endIndex(this, end);
    for (let at = startIndex(openList(this), start); at < last; at++) this[at] = value;
    return this;
  },
  clone() { return this instanceof TbArray ? arrayOf(this) : [...this]; },
  toArray() { return arrayOf(this); },
  toList() { return [...this]; },
  toUnmodifiable() { return Object.freeze([...this]); },
  validateClazzInArrayIsOnlyString() { return this.every((item) => typeof item === 'string'); },
  validateClazzInArrayIsOnlyNumber() { return this.every((item) => typeof item === 'number'); },
  memorySize() { return memory(this); },
  equals(other) { return equal(this, other); },
  toString() { return text(this); },
});
getter(Array.prototype, 'size', function size() { return this.length; });

methods(Set.prototype, {
  size() { return this.size; },
  isEmpty() { return this.size === 0; },
  add(value) {
    const before = this.size;
    this.add(value);
    return this.size > before;
  },
  addAll(values) {
    const before = this.size;
    for (const value of collection(values)) this.add(value);
    return this.size > before;
  },
  remove(value) { return this.delete(value); },
  removeAll(values) {
    const before = this.size;
    for (const value of collection(values)) this.delete(value);
    return this.size < before;
  },
  clear() { this.clear(); },
  contains(value) { return this.has(value); },
  containsAll(values) { return collection(values).every((value) => this.has(value)); },
  clone() { return new Set(this); },
  toArray() { return arrayOf([...this]); },
  toList() { return [...this]; },
  sort(asc) {
    const values = sorted([...this], asc);
    this.clear();
    for (const value of values) this.add(value);
  },
  toSorted(asc) { return new Set(sorted([...this], asc)); },
  memorySize() { return memory([...this]); },
  equals(other) { return equal(this, other); },
  toString() { return text(this); },
});

// What the host writes as JSON.
const plain = (owner, toJSON) => Object.defineProperty(owner, 'toJSON', { value: toJSON, enumerable: false });
plain(Set.prototype, function toJSON() { return [...this]; });
plain(Entry.prototype, function toJSON() { return { [text(this.key)]: this.value }; });

const has = (map, key) => Object.hasOwn(map, text(key)) && map[text(key)] !== undefined;
const put = (map, key, value) => {
  const name = text(key);
  const old = has(map, name) ? map[name] : undefined;
  if (value === undefined || value === null) delete map[name];
  else map[name] = value;
  return old;
};
const reorder = (map, keys) => {
  const values = keys.map((key) => map[key]);
  for (const key of keys) delete map[key];
  keys.forEach((key, at) => { map[key] = values[at]; });
};

methods(Object.prototype, {
  size() { return keysOf(this).length; },
  isEmpty() { return keysOf(this).length === 0; },
  get(key) { return has(this, key) ? this[text(key)] : undefined; },
  getOrDefault(key, other) { return has(this, key) ? this[text(key)] : other; },
  put(key, value) { return put(openMap(this), key, value); },
  putIfAbsent(key, value) {
    if (has(this, key)) return this[text(key)];
    put(openMap(this), key, value);
    return undefined;
  },
  putAll(other) {
    openMap(this);
    for (const key of keysOf(other)) this[key] = other[key];
  },
  replace(...args) {
    if (!has(openMap(this), args[0])) return args.length === 3 ? false : undefined;
    if (args.length === 2) return put(this, args[0], args[1]);
    const same = equal(this[text(args[0])], args[1]);
    if (same) put(this, args[0], args[2]);
    return same;
  },
  remove(key) { return put(openMap(this), key, undefined); },
  clear() { for (const key of Object.keys(openMap(this))) delete this[key]; },
  containsKey(key) { return has(this, key); },
  containsValue(value) { return keysOf(this).some((key) => equal(this[key], value)); },
  keys() { return keysOf(this); },
  keySet() { return new Set(keysOf(this)); },
  values() { return keysOf(this).map((key) => this[key]); },
  entrySet() { return new Set(keysOf(this).map((key) => new Entry(key, this[key]))); },
  sortByKey(asc) { reorder(openMap(this), sorted(keysOf(this), asc)); },
  sortByValue(asc) {
    const keys = keysOf(this);
    const compare = compareAll(keys.map((key) => this[key]));
    const order = asc === false ? -1 : 1;
    reorder(openMap(this), keys.sort((a, b) => order * compare(this[a], this[b])));
  },
  clone() { return { ...this }; },
  toUnmodifiable() { return Object.freeze({ ...this }); },
  memorySize() { return memory(keysOf(this).map((key) => this[key])); },
  equals(other) { return equal(this, other); },
  toString() { return text(this); },
  hashCode() { return hash(text(this)); },
});

methods(Entry.prototype, {
  getKey() { return this.key; },
  getValue() { return this.value; },
  setValue(value) {
    const old = this.value;
    this.value = value;
    return old;
  },
});

helpers({
  isMap,
  isList: (value) => Array.isArray(value) && !(value instanceof TbArray),
  isArray: (value) => value instanceof TbArray,
  isSet: (value) => value instanceof Set,
  newSet: () => new Set(),
  toSet: (list) => new Set(collection(list)),
  toFlatMap: (map, ...rest) => {
    const excluded = rest.find((value) => Array.isArray(value)) ?? [];
    const inKey = rest.find((value) => typeof value === 'boolean') ?? true;
    const flat = {};
    const walk = (value, path) => {
      if (Array.isArray(value) || value instanceof Set) {
        [...value].forEach((item, at) => walk(item, path + '.' + at));
      } else if (isMap(value)) {
        for (const key of keysOf(value)) {
          if (!excluded.includes(key)) walk(value[key], path.trim() === '' ? key : path + '.' + key);
        }
      } else if (inKey) {
        put(flat, path, value);
      } else {
        const parts = path.split('.');
        const last = parts[parts.length - 1];
        put(flat, /^\d+$/.test(last) ? parts.slice(-2).join('.') : last, value);
      }
    };
    walk(map, '');
    return flat;
  },
});
