// What functions of dashboards and their actions find in their context besides values. It runs in the sandbox.
globalThis.fieldlineBasics ??= (() => {
  const pad = (value, length) => String(value).padStart(length, "0");
  const parts = {
    yyyy: (d) => pad(d.getFullYear(), 4), yy: (d) => pad(d.getFullYear() % 100, 2), y: (d) => String(d.getFullYear()),
    MMMM: (d) => d.toLocaleString("en", { month: "long" }), MMM: (d) => d.toLocaleString("en", { month: "short" }),
    MM: (d) => pad(d.getMonth() + 1, 2), M: (d) => String(d.getMonth() + 1),
    EEEE: (d) => d.toLocaleString("en", { weekday: "long" }), EEE: (d) => d.toLocaleString("en", { weekday: "short" }),
    dd: (d) => pad(d.getDate(), 2), d: (d) => String(d.getDate()),
    HH: (d) => pad(d.getHours(), 2), H: (d) => String(d.getHours()),
    hh: (d) => pad(d.getHours() % 12 || 12, 2), h: (d) => String(d.getHours() % 12 || 12),
    mm: (d) => pad(d.getMinutes(), 2), m: (d) => String(d.getMinutes()),
    ss: (d) => pad(d.getSeconds(), 2), s: (d) => String(d.getSeconds()),
    SSS: (d) => pad(d.getMilliseconds(), 3), a: (d) => (d.getHours() < 12 ? "AM" : "PM"),
  };
  const token = new RegExp(`'([^']*)'|${Object.keys(parts).sort((a, b) => b.length - a.length).join("|")}`, "g");
  const transform = (value, format = "yyyy-MM-dd HH:mm:ss") => {
    const date = new Date(typeof value === "string" && value.trim() !== "" && Number.isFinite(Number(value)) ? Number(value) : value);
    return Number.isNaN(date.getTime()) ? null : format.replace(token, (part, literal) => (literal === undefined ? parts[part](date) : literal));
  };
  const formatValue = (value, decimals, units, showZeroDecimals) => {
    const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
    const hasNumber = typeof number === "number" && Number.isFinite(number);
    const fixed = hasNumber && decimals !== undefined && decimals !== null ? number.toFixed(decimals) : undefined;
    const text = !hasNumber ? (value === undefined || value === null ? "" : String(value)) : fixed === undefined ? String(number) : showZeroDecimals ? fixed : String(Number(fixed));
    return units && text !== "" ? `${text} ${units}` : text;
  };
  const instant = (key, params) => String(key).replace(/^\{i18n:(.*)\}$/, "$1").replace(/\{\{\s*(\w+)\s*\}\}/g, (whole, name) => params?.[name] ?? whole);
  const escapeHtml = (value) => String(value).replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
  return {
    date: { transform },
    translate: { instant },
    utils: {
      formatValue, customTranslation: (text, otherwise) => instant(text ?? otherwise), isDefined: (value) => value !== undefined, isNumber: (value) => typeof value === "number",
      isString: (value) => typeof value === "string", isObject: (value) => value !== null && typeof value === "object", isUndefined: (value) => value === undefined,
      isDefinedAndNotNull: (value) => value !== undefined && value !== null, escapeHtml, parseInt, parseFloat,
    },
  };
})();
