// Formatters of the browser, made once for each language and look: making one takes a hundred times as long as using it.

/** The most that are kept; there are as many as looks of dates and numbers that dashboards name. */
const MOST = 300;

function kept<F>(make: (language: string, options: object) => F): (language: string, options?: object) => F {
  const known = new Map<string, F>();
  return (language, options = {}) => {
    const key = `${language} ${JSON.stringify(options)}`;
    const found = known.get(key);
    if (found !== undefined) {
      return found;
    }
    if (known.size >= MOST) {
      known.clear();
    }
    const made = make(language, options);
    known.set(key, made);
    return made;
  };
}

export const dateFormat: (language: string, options?: Intl.DateTimeFormatOptions) => Intl.DateTimeFormat = kept((language, options) => new Intl.DateTimeFormat(language, options));
export const numberFormat: (language: string, options?: Intl.NumberFormatOptions) => Intl.NumberFormat = kept((language, options) => new Intl.NumberFormat(language, options));
export const pluralRules: (language: string) => Intl.PluralRules = kept((language) => new Intl.PluralRules(language));
