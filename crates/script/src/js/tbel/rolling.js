// Arguments of calculated fields.

const given1 = (list) => {
  if (list.length === 0) fail('Rolling argument values are empty.');
  return list;
};
const isNaNumber = (value) => value !== value;

class Single {
  constructor(ts, value) {
    this.ts = ts;
    this.value = value;
  }
}
methods(Single.prototype, {
  getTs() { return this.ts; },
  getValue() { return this.value; },
});

class MultiValue {
  constructor(ts, values) {
    this.ts = ts;
    this.values = values;
  }
}
methods(MultiValue.prototype, {
  getTs() { return this.ts; },
  getValues() { return this.values; },
});
for (let at = 0; at < 5; at++) {
  const read = function read() {
    if (at >= this.values.length) fail("Can't get value at index " + at + '. There are ' + this.values.length + ' values present.');
    return this.values[at];
  };
  getter(MultiValue.prototype, 'v' + (at + 1), read);
  methods(MultiValue.prototype, { ['getV' + (at + 1)]: read });
}

class RollingData {
  constructor(timeWindow, values) {
    this.timeWindow = timeWindow;
    this.values = Object.freeze(values);
  }
}
class Rolling {
  constructor(timeWindow, values) {
    this.timeWindow = timeWindow;
    this.values = Object.freeze(values);
  }
}

// What is counted: all values without NaN, or NaN for all if it must not be ignored.
const counted = (rolling, ignoreNaN) => {
  const all = given1(rolling.values).map(({ value }) => value);
  if (ignoreNaN) return all.filter((value) => !isNaNumber(value));
  return all.some(isNaNumber) ? undefined : all;
};
const over = (calculate) => function method(ignoreNaN = true) {
  const values = counted(this, ignoreNaN);
  return values === undefined ? NaN : double(calculate(values));
};
const total = (values) => values.reduce((sum, value) => sum + value, 0);
const average = (values) => total(values) / values.length;
const end = (values, ignoreNaN) => {
  const found = ignoreNaN ? values.find(({ value }) => !isNaNumber(value)) : values[0];
  return found === undefined ? given1([]) : double(found.value);
};
const settingsOf = (settings) => {
  const window = settings?.timeWindow;
  const made = typeof window === 'string' ? JSON.parse(window) : window;
  return {
    ignoreNaN: settings?.ignoreNaN === undefined ? true : text(settings.ignoreNaN).toLowerCase() === 'true',
    window: made ? { startTs: int(+made.startTs), endTs: int(+made.endTs) } : undefined,
  };
};
const merge = (all, settings) => {
  const { ignoreNaN, window } = settingsOf(settings);
  const stamps = new Set();
  for (const { values } of all) for (const { ts } of values) stamps.add(ts);
  const next = all.map(() => 0);
  const latest = all.map(() => NaN);
  const merged = [];
  for (const ts of [...stamps].sort((a, b) => a - b)) {
    all.forEach(({ values }, at) => {
      while (next[at] < values.length && values[next[at]].ts <= ts) latest[at] = values[next[at]++].value;
    });
    const inside = window === undefined || (ts >= window.startTs && ts < window.endTs);
    if (inside && !(ignoreNaN && latest.some(isNaNumber))) merged.push(new MultiValue(ts, arrayOf(latest)));
  }
  return new RollingData(window ?? {
    startTs: int(all.reduce((least, { timeWindow }) => Math.min(least, timeWindow.startTs), Infinity)),
    endTs: int(all.reduce((most, { timeWindow }) => Math.max(most, timeWindow.endTs), -Infinity)),
  }, merged);
};

methods(Rolling.prototype, {
  max: over((values) => values.reduce((most, value) => Math.max(most, value), -Number.MAX_VALUE)),
  min: over((values) => values.reduce((least, value) => Math.min(least, value), Number.MAX_VALUE)),
  sum: over(total),
  avg: over(average),
  mean: over(average),
  std: over((values) => {
    const mean = average(values);
    return Math.sqrt(total(values.map((value) => (value - mean) ** 2)) / values.length);
  }),
  median: over((values) => {
    const order = [...values].sort((a, b) => a - b);
    const half = Math.floor(order.length / 2);
    return order.length % 2 === 1 ? order[half] : (order[half - 1] + order[half]) / 2;
  }),
  count(ignoreNaN = true) {
    return ignoreNaN ? this.values.filter(({ value }) => !isNaNumber(value)).length : this.values.length;
  },
  first(ignoreNaN = true) { return end(given1(this.values), ignoreNaN); },
  last(ignoreNaN = true) { return end([...given1(this.values)].reverse(), ignoreNaN); },
  merge(other, settings) { return merge([this, other], settings); },
  mergeAll(others, settings) { return merge([this, ...collection(others)], settings); },
});
for (const type of [Rolling, RollingData]) {
  methods(type.prototype, {
    getValues() { return this.values; },
    getValue() { return this.values; },
    getTimeWindow() { return this.timeWindow; },
    getSize() { return this.values.length; },
    size() { return this.values.length; },
  });
  getter(type.prototype, 'size', function size() { return this.values.length; });
  getter(type.prototype, 'value', function value() { return this.values; });
}

native.roots = [TbArray, Entry, Single, MultiValue, Rolling, RollingData];
native.hooks = {
  single: (ts, value) => new Single(ts, value),
  rolling: (startTs, endTs, times, values) =>
    new Rolling({ startTs, endTs }, times.map((ts, at) => Object.freeze(new Single(ts, values[at])))),
  wellFormed: (value) => value.toWellFormed(),
};
