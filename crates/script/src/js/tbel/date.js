// Dates. Times without a zone are UTC; months and days of the week count from 1.

const DAY = 86400000;
const zoneOf = (zone) => {
  const name = text(zone);
  const offset = /^(?:GMT|UTC|UT)?([+-])(\d{1,2})(?::?(\d\d)(?::?(\d\d))?)?$/.exec(name);
  if (offset) {
    const size = ((+offset[2] * 60 + +(offset[3] ?? 0)) * 60 + +(offset[4] ?? 0)) * 1000;
    return { name, fixed: offset[1] === '-' ? -size : size };
  }
  if (/^(Z|UTC|GMT|UT)$/i.test(name)) return { name: name === 'Z' ? 'Z' : name.toUpperCase(), fixed: 0 };
  if (native.zoneOffset(name, 0) === undefined) fail('Unknown time-zone ID: ' + name);
  return { name };
};
const UTC = { name: 'UTC', fixed: 0 };
const offsetAt = (zone, ms) => zone.fixed ?? native.zoneOffset(zone.name, ms);
const fromLocal = (zone, ms) => ms - (zone.fixed ?? native.localOffset(zone.name, ms));
const abbreviation = (zone, ms) => (zone.fixed !== undefined ? zone.name : native.zoneName(zone.name, ms));

const daysIn = (year, month) => new Date(Date.UTC(2000 + (((year % 400) + 400) % 400), month, 0)).getUTCDate();
const check = (name, value, low, high) => {
  if (!isInt(value) || value < low || value > high) {
    fail('Invalid value for ' + name + ' (valid values ' + low + ' - ' + high + '): ' + text(value));
  }
  return value;
};
const localMs = (year, month, day, hour = 0, minute = 0, second = 0, ms = 0) => {
  check('Year', year, -200000, 200000);
  check('MonthOfYear', month, 1, 12);
  check('DayOfMonth', day, 1, 31);
  if (day > daysIn(year, month)) fail("Invalid date: day " + day + ' of month ' + month);
  check('HourOfDay', hour, 0, 23);
  check('MinuteOfHour', minute, 0, 59);
  check('SecondOfMinute', second, 0, 59);
  const days = Date.UTC(2000 + (((year % 400) + 400) % 400), month - 1, day) / DAY
    + Math.floor((year - (2000 + (((year % 400) + 400) % 400))) / 400) * 146097;
  return days * DAY + ((hour * 60 + minute) * 60 + second) * 1000 + ms;
};
const fieldsOf = (ms) => {
  const date = new Date(ms);
  return {
    year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate(),
    hour: date.getUTCHours(), minute: date.getUTCMinutes(), second: date.getUTCSeconds(),
    ms: date.getUTCMilliseconds(), weekday: ((date.getUTCDay() + 6) % 7) + 1,
  };
};
const offsetText = (offset, zero, colon, minutes) => {
  if (offset === 0 && zero) return zero;
  const size = Math.floor(Math.abs(offset) / 1000);
  const parts = [Math.floor(size / 3600), Math.floor(size / 60) % 60].map((part) => String(part).padStart(2, '0'));
  if (size % 60) parts.push(String(size % 60).padStart(2, '0'));
  if (!minutes && parts.length === 2 && parts[1] === '00') parts.pop();
  return (offset < 0 ? '-' : '+') + parts.join(colon ? ':' : '');
};

// Splits a pattern of Java's DateTimeFormatter into letters with counts, and literal texts.
const patternParts = (pattern) => {
  const parts = [];
  const source = text(pattern);
  for (let at = 0; at < source.length;) {
    const letter = source[at];
    if (letter === "'") {
      let end = at + 1;
      let literal = '';
      while (end < source.length && (source[end] !== "'" || source[end + 1] === "'")) {
        literal += source[end];
        end += source[end] === "'" ? 2 : 1;
      }
      if (end >= source.length) fail('Pattern ends with an incomplete string literal: ' + source);
      parts.push({ literal: end === at + 1 ? "'" : literal });
      at = end + 1;
    } else if (/[A-Za-z]/.test(letter)) {
      let end = at;
      while (source[end] === letter) end += 1;
      parts.push({ letter, count: end - at });
      at = end;
    } else {
      parts.push({ literal: letter });
      at += 1;
    }
  }
  return parts;
};
const formatPattern = (pattern, locale, ms, nanos, zone) => {
  const offset = offsetAt(zone, ms);
  const fields = fieldsOf(ms + offset);
  const padded = (value, count) => (value < 0 ? '-' : '') + String(Math.abs(value)).padStart(count, '0');
  const named = (value, count, short, long) =>
    (count <= 2 ? padded(value, count) : count === 3 ? short[value - 1] : count === 5 ? long[value - 1][0] : long[value - 1]);
  return patternParts(pattern).map(({ literal, letter, count }) => {
    if (literal !== undefined) return literal === '[' || literal === ']' ? '' : literal;
    switch (letter) {
      case 'y': case 'u': return count === 2 ? padded(((fields.year % 100) + 100) % 100, 2) : padded(fields.year, count);
      case 'M': case 'L': return named(fields.month, count, locale.shortMonths, locale.months);
      case 'd': return padded(fields.day, count);
      case 'D': return padded((localMs(fields.year, fields.month, fields.day) - localMs(fields.year, 1, 1)) / DAY + 1, count);
      case 'E': return count <= 3 ? locale.shortDays[fields.weekday - 1] : named(fields.weekday, count, locale.shortDays, locale.days);
      case 'e': return named((fields.weekday % 7) + 1, count, locale.shortDays, locale.days);
      case 'a': return locale.halves[fields.hour < 12 ? 0 : 1];
      case 'h': return padded(fields.hour % 12 || 12, count);
      case 'H': return padded(fields.hour, count);
      case 'K': return padded(fields.hour % 12, count);
      case 'k': return padded(fields.hour || 24, count);
      case 'm': return padded(fields.minute, count);
      case 's': return padded(fields.second, count);
      case 'S': return (padded(fields.ms, 3) + padded(nanos, 6)).padEnd(count, '0').slice(0, count);
      case 'A': return padded(((fields.hour * 60 + fields.minute) * 60 + fields.second) * 1000 + fields.ms, count);
      case 'n': return padded(fields.ms * 1000000 + nanos, count);
      case 'G': return fields.year > 0 ? 'AD' : 'BC';
      case 'Q': return padded(Math.floor((fields.month + 2) / 3), count);
      case 'X': return offsetText(offset, 'Z', count > 2 && count !== 4, count > 1);
      case 'x': return offsetText(offset, undefined, count > 2 && count !== 4, count > 1);
      case 'Z': return count < 4 ? offsetText(offset, undefined, false, true) : count === 4 ? 'GMT' + (offset ? offsetText(offset, '', true, true) : '') : offsetText(offset, 'Z', true, true);
      case 'O': return 'GMT' + (offset ? offsetText(offset, '', true, count === 4).replace(count === 4 ? '' : /^([+-])0/, '$1') : '');
      case 'V': case 'v': return zone.name;
      case 'z': return count >= 4 && zone.name === 'UTC' ? 'Coordinated Universal Time' : abbreviation(zone, ms);
      default: return fail('Unknown pattern letter: ' + letter);
    }
  }).join('');
};

const parsePattern = (value, pattern, locale) => {
  const found = {};
  let rest = value;
  const wrong = () => fail('Cannot parse value [' + value + '] as instant');
  const take = (expression) => {
    const match = expression.exec(rest);
    if (!match) return wrong();
    rest = rest.slice(match[0].length);
    return match[0];
  };
  const digits = (low, high) => +take(new RegExp('^\\d{' + low + ',' + high + '}'));
  const name = (...lists) => {
    for (const list of lists) {
      const order = list.map((_, at) => at).sort((a, b) => list[b].length - list[a].length);
      const at = order.find((index) => rest.toLowerCase().startsWith(list[index].toLowerCase()));
      if (at !== undefined) {
        rest = rest.slice(list[at].length);
        return at + 1;
      }
    }
    return wrong();
  };
  for (const { literal, letter, count } of patternParts(pattern)) {
    if (literal !== undefined) {
      if (literal === '[' || literal === ']') continue;
      if (!rest.startsWith(literal)) wrong();
      rest = rest.slice(literal.length);
      continue;
    }
    const exact = () => (count === 1 ? digits(1, 2) : digits(count, Math.max(count, 2)));
    switch (letter) {
      case 'y': case 'u': found.year = count === 2 ? 2000 + digits(2, 2) : digits(Math.min(count, 4), 9 > count && count !== 4 ? 9 : 4); break;
      case 'M': case 'L': found.month = count > 2 ? name(locale.months, locale.shortMonths) : exact(); break;
      case 'd': found.day = exact(); break;
      case 'E': name(locale.days, locale.shortDays); break;
      case 'a': found.half = name(locale.halves, ['AM', 'PM']); break;
      case 'h': case 'K': found.hour12 = exact() % 12; break;
      case 'H': case 'k': found.hour = exact() % 24; break;
      case 'm': found.minute = exact(); break;
      case 's': found.second = exact(); break;
      case 'S': found.fraction = take(new RegExp('^\\d{' + count + '}')); break;
      case 'n': found.fraction = String(digits(1, 9)).padStart(9, '0'); break;
      case 'X': case 'x': case 'Z': found.zone = zoneOf(take(/^(Z|(GMT)?[+-]\d\d(:?\d\d(:?\d\d)?)?)/)); break;
      case 'z': case 'V': case 'O': case 'v': found.zone = zoneOf(take(/^(Z|(GMT|UTC)?[+-]\d{1,2}(:?\d\d)?|[A-Za-z_]+(\/[A-Za-z_+\-0-9]+)*)/)); break;
      default: fail('Unknown pattern letter: ' + letter);
    }
  }
  if (rest !== '') wrong();
  return found;
};
const instantOf = (found, zone) => {
  const fraction = (found.fraction ?? '').padEnd(9, '0');
  const hour = found.hour ?? (found.hour12 !== undefined ? found.hour12 + (found.half === 2 ? 12 : 0) : 0);
  const local = localMs(found.year ?? 1970, found.month ?? 1, found.day ?? 1, hour, found.minute ?? 0,
    found.second ?? 0, +fraction.slice(0, 3));
  return { ms: fromLocal(zone ?? found.zone ?? UTC, local), nanos: +fraction.slice(3) };
};

const ISO = /^(\d{4})-(\d\d)-(\d\d)(?:[ T]+(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?\s*(Z|(?:GMT)?[+-]\d\d(?::?\d\d(?::?\d\d)?)?|[A-Za-z_]+(?:\/[A-Za-z_+\-0-9]+)*)?$/;
const RFC = /^(?:[A-Za-z]{3},\s*)?(\d{1,2}) ([A-Za-z]{3}) (\d{4}) (\d\d):(\d\d)(?::(\d\d))?(?:\s+(GMT[+-]?[\d:]*|UTC|[+-][\d:]{2,8}))?$/;
const parseDate = (value) => {
  const iso = ISO.exec(value);
  if (iso) {
    const [, year, month, day, hour, minute, second, fraction, zone] = iso;
    return instantOf({
      year: +year, month: +month, day: +day, hour: +(hour ?? 0), minute: +(minute ?? 0), second: +(second ?? 0),
      fraction, zone: zone ? zoneOf(zone) : UTC,
    });
  }
  const rfc = RFC.exec(value.trim());
  const month = rfc ? english.shortMonths.findIndex((name) => name.toLowerCase() === rfc[2].toLowerCase()) + 1 : 0;
  if (month === 0) return fail('Cannot parse value [' + value + '] as instant');
  const [, day, , year, hour, minute, second, zone] = rfc;
  return instantOf({
    year: +year, month, day: +day, hour: +hour, minute: +minute, second: +(second ?? 0), zone: zone ? zoneOf(zone) : UTC,
  });
};

const options = (value) => {
  if (value === undefined || value === null || value === '') return { zone: UTC };
  let made = value;
  if (typeof value === 'string') {
    if (!value.trim().startsWith('{')) return { zone: zoneOf(value) };
    made = JSON.parse(value);
  }
  return { ...made, zone: made.timeZone ? zoneOf(made.timeZone) : UTC };
};
const style = (value, other) => {
  const name = text(value ?? other).toUpperCase();
  return name in clock24 ? name : other;
};

class TbDate {
  constructor(...args) {
    Object.defineProperty(this, 'ms', { value: 0, writable: true, enumerable: false });
    Object.defineProperty(this, 'nanos', { value: 0, writable: true, enumerable: false });
    if (args.length === 0) {
      this.ms = Date.now();
    } else if (args[0] instanceof TbDate) {
      this.ms = args[0].ms;
      this.nanos = args[0].nanos;
    } else if (typeof args[0] === 'string') {
      const [value, pattern, locale, zone] = args;
      const made = pattern === undefined ? parseDate(value)
        : instantOf(parsePattern(value, pattern, localeOf(locale)), zone === undefined ? undefined : zoneOf(zone));
      this.ms = made.ms;
      this.nanos = made.nanos;
    } else if (args.length === 1) {
      this.ms = Number(big(args[0]));
    } else {
      const zone = typeof args[args.length - 1] === 'string' ? zoneOf(args.pop()) : UTC;
      const [year, ...rest] = args;
      const full = year < 70 ? 2000 + year : year <= 99 ? 1900 + year : year;
      this.ms = fromLocal(zone, localMs(full, rest[0], rest[1] ?? 1, ...rest.slice(2)));
    }
    if (!Number.isFinite(this.ms) || Math.abs(this.ms) > 8.64e15) fail('the date is out of range');
    Object.preventExtensions(this);
  }

  [Symbol.toPrimitive](hint) { return hint === 'string' ? this.$_toString() : this.ms; }

  toJSON() { return this.$_toString(); }
}

const localized = (date, locale, settings, build) => {
  const language = localeOf(locale);
  const chosen = options(settings);
  const pattern = chosen.pattern ?? build(language, chosen);
  return formatPattern(pattern, language, date.ms, date.nanos, chosen.zone);
};
const dateTime = (language, day, time) =>
  language.date[day] + "'" + language.join[day] + "'" + language.time[time];
const change = (date, wanted, keepsMonth) => {
  const fields = { ...fieldsOf(date.ms), ...wanted };
  // A day that the new month may not have runs over into the next one, instead of failing.
  const spills = wanted.day === undefined && !keepsMonth && fields.day > 28;
  const local = localMs(fields.year, fields.month, spills ? 1 : fields.day, fields.hour, fields.minute,
    fields.second, check('Milli', fields.ms, 0, 999));
  date.ms = local + (spills ? (fields.day - 1) * DAY : 0);
};
const given = (names, args) => {
  const wanted = {};
  args.forEach((value, at) => { if (value !== undefined) wanted[names[at]] = castInt(value); });
  return wanted;
};
const addMonths = (date, months) => {
  const fields = fieldsOf(date.ms);
  const total = fields.year * 12 + fields.month - 1 + months;
  const [year, month] = [Math.floor(total / 12), (((total % 12) + 12) % 12) + 1];
  change(date, { year, month, day: Math.min(fields.day, daysIn(year, month)) }, true);
};

const dateMethods = {
  toISOString() {
    const { year, month, day, hour, minute, second, ms } = fieldsOf(this.ms);
    const two = (value) => String(value).padStart(2, '0');
    const fraction = this.nanos ? String(ms).padStart(3, '0') + String(this.nanos).padStart(6, '0') : ms ? String(ms).padStart(3, '0') : '';
    const short = fraction.length === 9 ? fraction.replace(/000$/, '') : fraction;
    const years = year >= 0 && year <= 9999 ? String(year).padStart(4, '0') : (year < 0 ? '-' : '+') + String(Math.abs(year)).padStart(4, '0');
    return years + '-' + two(month) + '-' + two(day) + 'T' + two(hour) + ':' + two(minute) + ':' + two(second)
      + (short ? '.' + short : '') + 'Z';
  },
  toJSON() { return this.$_toISOString(); },
  toString(locale, settings) { return localized(this, locale, settings, (language) => dateTime(language, 'FULL', 'FULL')); },
  toUTCString(locale = 'utc') { return localized(this, locale, undefined, (language) => dateTime(language, 'FULL', 'MEDIUM')); },
  toDateString(locale = 'utc', settings = undefined) { return localized(this, locale, settings, (language) => language.date.FULL); },
  toTimeString(locale, settings) { return localized(this, locale, settings, (language) => language.time.FULL); },
  toLocaleDateString(locale = 'utc', settings = undefined) {
    return localized(this, locale, settings, (language, { dateStyle }) =>
      language.date[settings === undefined ? 'FULL' : style(dateStyle, 'SHORT')]);
  },
  toLocaleTimeString(locale, settings) {
    return localized(this, locale, settings, (language, { timeStyle }) => language.time[style(timeStyle, 'MEDIUM')]);
  },
  toLocaleString(locale = 'utc', settings = undefined) {
    return localized(this, locale, settings, (language, { dateStyle, timeStyle }) =>
      dateTime(language, style(dateStyle, 'SHORT'), style(timeStyle, 'MEDIUM')));
  },
  getTime() { return int(this.ms); },
  valueOf() { return int(this.ms); },
  parseSecond() { return int(Math.floor(this.ms / 1000)); },
  parseSecondMilli() { return int(this.ms); },
  setTime(ms) {
    this.ms = Number(big(ms));
    this.nanos = 0;
  },
  addYears(count) { addMonths(this, castInt(count) * 12); },
  addMonths(count) { addMonths(this, castInt(count)); },
  addWeeks(count) { this.ms += castInt(count) * 7 * DAY; },
  addDays(count) { this.ms += castInt(count) * DAY; },
  addHours(count) { this.ms += castInt(count) * 3600000; },
  addMinutes(count) { this.ms += castInt(count) * 60000; },
  addSeconds(count) { this.ms += castInt(count) * 1000; },
  addNanos(count) {
    const total = BigInt(this.nanos) + big(count);
    const nanos = ((total % 1000000n) + 1000000n) % 1000000n;
    this.ms += Number((total - nanos) / 1000000n);
    this.nanos = Number(nanos);
  },
  equals(other) { return other instanceof TbDate && other.ms === this.ms; },
  compareTo(other) { return this.ms < other.ms ? -1 : this.ms > other.ms ? 1 : 0; },
  before(other) { return this.ms < other.ms; },
  after(other) { return this.ms > other.ms; },
  clone() { return new TbDate(this); },
  getTimezoneOffset() { return 0; },
};
const FIELDS = {
  FullYear: ['year', 'month', 'day'], Month: ['month', 'day'], Date: ['day'],
  Hours: ['hour', 'minute', 'second', 'ms'], Minutes: ['minute', 'second', 'ms'], Seconds: ['second', 'ms'],
  Milliseconds: ['ms'],
};
for (const prefix of ['', 'UTC']) {
  for (const name of Object.keys(FIELDS)) {
    const names = FIELDS[name];
    dateMethods['get' + prefix + name] = function get() { return int(fieldsOf(this.ms)[names[0]]); };
    dateMethods['set' + prefix + name] = function set(...args) {
      change(this, given(names, args), !['FullYear', 'Month'].includes(name));
    };
  }
  dateMethods['get' + prefix + 'Day'] = function getDay() { return fieldsOf(this.ms).weekday; };
}
methods(TbDate.prototype, dateMethods);
getter(TbDate.prototype, 'time', function time() { return int(this.ms); });

const attempt = (make) => {
  try {
    return int(make().ms);
  } catch (error) {
    return -1;
  }
};
statics('Date', {
  now: () => int(Date.now()),
  UTC: (year, month = 0, day = 0, hour = 0, minute = 0, second = 0, ms = 0) => {
    const full = year < 70 ? 2000 + year : year <= 99 ? 1900 + year : year;
    return int(localMs(year === 0 ? 1899 : full, month === 0 ? 12 : month, day === 0 ? 31 : day, hour, minute, second, ms));
  },
  parse: (value, pattern) => attempt(() => (pattern === undefined ? parseDate(text(value))
    : instantOf(parsePattern(text(value), pattern, localeOf('en-US'))))),
}, {});

// Java's generator, so that a seed gives what it gives there.
class Random {
  constructor(seed) {
    const start = seed === undefined ? BigInt(Math.floor(Math.random() * 2 ** 48)) : big(seed);
    Object.defineProperty(this, 'state', { value: (start ^ 0x5deece66dn) & 0xffffffffffffn, writable: true, enumerable: false });
  }

  next(bits) {
    this.state = (this.state * 0x5deece66dn + 11n) & 0xffffffffffffn;
    return Number(BigInt.asIntN(32, this.state >> BigInt(48 - bits))) | 0;
  }
}
methods(Random.prototype, {
  nextInt(low, high) {
    if (low === undefined) return this.next(32);
    const [from, bound] = high === undefined ? [0, low] : [low, high - low];
    if (!isInt(bound) || bound <= 0) fail('bound must be positive');
    if ((bound & -bound) === bound) return from + Number((BigInt(bound) * BigInt(this.next(31))) >> 31n);
    for (;;) {
      const bits = this.next(31);
      const value = bits % bound;
      if (bits - value + (bound - 1) <= 2147483647) return int(from + value);
    }
  },
  nextLong() { return long((BigInt(this.next(32)) << 32n) + BigInt(this.next(32))); },
  nextBoolean() { return this.next(1) !== 0; },
  nextDouble() { return double((this.next(26) * 134217728 + this.next(27)) / 9007199254740992); },
  nextFloat() { return double(this.next(24) / 16777216); },
});
Object.assign(globalThis, { $Date: TbDate, $Random: Random, $newString: (value) => text(value ?? '') });
