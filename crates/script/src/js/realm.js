// Makes the realm of JavaScript safe to share: removes what scripts must not have, bounds the built-in loops
// that the interrupt of the time limit cannot stop, and freezes everything that is reachable.
(function (native) {
  'use strict';
  const {
    freeze, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, prototype: objectProto,
  } = Object;
  const { ownKeys, apply } = Reflect;
  const { isArray } = Array;

  const refuse = function () { throw new TypeError('code cannot be made from text'); };
  const samples = [function () {}, function* () {}, async function () {}, async function* () {}];
  for (const sample of samples) {
    defineProperty(getPrototypeOf(sample), 'constructor', { value: refuse, writable: false });
  }
  for (const name of ['eval', 'Function', 'Atomics', 'SharedArrayBuffer', 'WeakRef', 'FinalizationRegistry',
    'Proxy', 'performance', 'queueMicrotask', 'navigator', 'Iterator', 'AsyncIterator', 'gc']) {
    delete globalThis[name];
  }
  delete objectProto.__proto__;
  for (const name of ['__defineGetter__', '__defineSetter__', '__lookupGetter__', '__lookupSetter__']) {
    delete objectProto[name];
  }
  delete String.raw;
  // Helpers of iterators and of set algebra loop natively over what a script makes endless.
  const iteratorProto = getPrototypeOf(getPrototypeOf([][Symbol.iterator]()));
  for (const key of ownKeys(iteratorProto)) {
    if (typeof key === 'string') delete iteratorProto[key];
  }
  for (const name of ['union', 'intersection', 'difference', 'symmetricDifference', 'isSubsetOf', 'isSupersetOf',
    'isDisjointFrom']) {
    delete Set.prototype[name];
  }
  delete Math.sumPrecise;

  const MAX_LENGTH = 4194304;
  const real = function (list) {
    if (isArray(list) || ArrayBuffer.isView(list)) {
      if (list.length > MAX_LENGTH) throw new RangeError('array is too long');
      return list;
    }
    if (list === null || list === undefined) throw new TypeError('not an array');
    const length = +list.length || 0;
    if (length > MAX_LENGTH) throw new RangeError('array is too long');
    const copy = [];
    for (let i = 0; i < length; i++) copy[i] = list[i];
    return copy;
  };
  const replace = function (owner, name, value) {
    defineProperty(value, 'name', { value: name });
    defineProperty(owner, name, { value, writable: true, configurable: true, enumerable: false });
  };
  for (const name of ['indexOf', 'lastIndexOf', 'includes', 'fill', 'reverse', 'join', 'sort', 'concat', 'slice',
    'splice', 'map', 'filter', 'forEach', 'some', 'every', 'reduce', 'reduceRight', 'find', 'findIndex',
    'findLast', 'findLastIndex', 'copyWithin', 'toReversed', 'toSorted', 'toSpliced', 'with', 'unshift', 'shift',
    'flatMap', 'toLocaleString', 'keys', 'entries']) {
    const original = Array.prototype[name];
    if (!original) continue;
    replace(Array.prototype, name, { method(...args) { return apply(original, real(this), args); } }.method);
  }
  // It goes through its arguments as well.
  const concat = Array.prototype.concat;
  const spreads = function (part) {
    if (part === null || (typeof part !== 'object' && typeof part !== 'function')) return false;
    const flag = part[Symbol.isConcatSpreadable];
    return flag === undefined ? isArray(part) : Boolean(flag);
  };
  replace(Array.prototype, 'concat', {
    method(...parts) {
      for (let i = 0; i < parts.length; i++) if (spreads(parts[i])) parts[i] = real(parts[i]);
      return apply(concat, this, parts);
    },
  }.method);
  replace(Array.prototype, 'flat', {
    method(depth = 1) {
      const out = [];
      const walk = function (list, left) {
        for (let i = 0; i < list.length; i++) {
          const item = list[i];
          if (isArray(item) && left > 0) walk(item, left - 1);
          else if (item !== undefined || i in list) out.push(item);
        }
      };
      walk(real(this), +depth || 0);
      return out;
    },
  }.method);
  replace(Array.prototype, 'toString', { method() { return this.join(); } }.method);
  // Searching is the product of both lengths at worst. Whatever has the texts made is looked at once, so that the texts that
  // are measured are those that are searched.
  const MAX_SEARCH = 5e8;
  const patterns = { split: Symbol.split, replace: Symbol.replace, replaceAll: Symbol.replace };
  for (const name of ['indexOf', 'includes', 'lastIndexOf', 'split', 'replace', 'replaceAll']) {
    const original = String.prototype[name];
    const pattern = patterns[name];
    replace(String.prototype, name, {
      method(needle, ...rest) {
        if (this === null || this === undefined) throw new TypeError('not a text');
        const text = typeof this === 'string' ? this : `${this}`;
        let part = needle;
        if (part !== null && (typeof part === 'object' || typeof part === 'function')) {
          if (pattern !== undefined && part[pattern] !== undefined && part[pattern] !== null) {
            return apply(original, text, [part, ...rest]);
          }
          part = `${part}`;
        }
        if (typeof part === 'string' && part.length > 64 && part.length * text.length > MAX_SEARCH) {
          throw new RangeError('text is too long');
        }
        return apply(original, text, [part, ...rest]);
      },
    }.method);
  }
  // Objects that share their parts may stand for exponentially many: what is not seen to be little is written with a function
  // in between, which is interrupted.
  const FEW = 10000;
  const stringify = JSON.stringify;
  const { keys } = Object;
  const isLittle = function (whole) {
    let left = FEW;
    const look = function (value, depth) {
      if (value === null || typeof value !== 'object') return true;
      if (depth > 100) return false;
      const names = isArray(value) ? undefined : keys(value);
      const length = names === undefined ? value.length : names.length;
      left -= 1 + length;
      if (left < 0) return false;
      for (let i = 0; i < length; i++) {
        if (!look(value[names === undefined ? i : names[i]], depth + 1)) return false;
      }
      return true;
    };
    return look(whole, 0);
  };
  replace(JSON, 'stringify', {
    method(value, replacer, space) {
      if (typeof replacer === 'function' || isLittle(value)) return stringify(value, replacer, space);
      if (!isArray(replacer)) return stringify(value, (_, part) => part, space);
      const wanted = {};
      for (const name of replacer) wanted[`${name}`] = true;
      const choose = function (name, part) {
        return name === '' || isArray(this) || wanted[name] === true ? part : undefined;
      };
      return stringify(value, choose, space);
    },
  }.method);
  // A constructor given an array of holes would loop natively; a script's function in between is interrupted.
  const add = Set.prototype.add;
  replace(Set.prototype, 'add', { method(value) { return apply(add, this, [value]); } }.method);

  const silent = function () {};
  globalThis.print = silent;
  globalThis.console = { log: silent, debug: silent, info: silent, warn: silent, error: silent, trace: silent };

  // A frozen prototype would keep objects from having these names of their own by assignment.
  const overridable = [
    [objectProto, ['constructor', 'toString', 'valueOf', 'toLocaleString', 'hasOwnProperty']],
    [Error.prototype, ['name', 'message', 'toString', 'constructor']],
    [Array.prototype, ['toString', 'constructor']],
  ];
  for (const [owner, names] of overridable) {
    for (const name of names) {
      const value = owner[name];
      defineProperty(owner, name, {
        get() { return value; },
        set(other) {
          if (this === owner || this === undefined || this === null) return;
          defineProperty(this, name, { value: other, writable: true, enumerable: true, configurable: true });
        },
        enumerable: false,
        configurable: false,
      });
    }
  }

  const seen = new Set();
  const roots = [globalThis, iteratorProto, ...(native.roots ?? [])];
  for (const sample of samples) roots.push(getPrototypeOf(sample), sample.prototype && getPrototypeOf(sample.prototype));
  for (const iterator of [[][Symbol.iterator](), ''[Symbol.iterator](), new Map()[Symbol.iterator](),
    new Set()[Symbol.iterator](), 'a'.matchAll(/a/g), new Uint8Array(1)]) {
    roots.push(getPrototypeOf(iterator));
  }
  const visit = function (object) {
    if (object === null || (typeof object !== 'object' && typeof object !== 'function') || seen.has(object)) return;
    seen.add(object);
    visit(getPrototypeOf(object));
    for (const key of ownKeys(object)) {
      const property = getOwnPropertyDescriptor(object, key);
      visit(property.value);
      visit(property.get);
      visit(property.set);
    }
    freeze(object);
  };
  roots.forEach(visit);

  return native.hooks ?? {
    single: freeze((ts, value) => ({ ts, value })),
    rolling: freeze((startTs, endTs, times, values) => ({
      timeWindow: { startTs, endTs },
      values: times.map((ts, at) => ({ ts, value: values[at] })),
    })),
    wellFormed: freeze((text) => text.toWellFormed()),
    stringify: JSON.stringify,
  };
})
