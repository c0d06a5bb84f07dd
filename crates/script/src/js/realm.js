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
    'flatMap']) {
    const original = Array.prototype[name];
    if (!original) continue;
    replace(Array.prototype, name, { method(...args) { return apply(original, real(this), args); } }.method);
  }
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
  for (const name of ['indexOf', 'includes', 'lastIndexOf', 'split', 'replace', 'replaceAll']) {
    const original = String.prototype[name];
    replace(String.prototype, name, {
      method(needle, ...rest) {
        if (typeof needle === 'string' && needle.length > 64 && needle.length * this.length > 4e9) {
          throw new RangeError('text is too long');
        }
        return apply(original, this, [needle, ...rest]);
      },
    }.method);
  }
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
  };
})
