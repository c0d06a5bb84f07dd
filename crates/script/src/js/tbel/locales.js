// How dates are written in the languages that scripts ask for; any other one is written as the root locale.

const NBSP = '\u202f';
const english = {
  months: ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October',
    'November', 'December'],
  shortMonths: ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'],
  days: ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'],
  shortDays: ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'],
  halves: ['AM', 'PM'],
};
const clock24 = { SHORT: 'HH:mm', MEDIUM: 'HH:mm:ss', LONG: 'HH:mm:ss z', FULL: 'HH:mm:ss zzzz' };
const joined = (near, far) => ({ SHORT: near, MEDIUM: near, LONG: far, FULL: far });

const LOCALES = {
  root: {
    ...english,
    months: english.months.map((_, at) => 'M' + String(at + 1).padStart(2, '0')),
    shortMonths: english.months.map((_, at) => 'M' + String(at + 1).padStart(2, '0')),
    days: english.shortDays,
    date: { SHORT: 'y-MM-dd', MEDIUM: 'y MMM d', LONG: 'y MMMM d', FULL: 'y MMMM d, EEEE' },
    time: clock24,
    join: joined(' ', ' '),
  },
  en: {
    ...english,
    date: { SHORT: 'M/d/yy', MEDIUM: 'MMM d, y', LONG: 'MMMM d, y', FULL: 'EEEE, MMMM d, y' },
    time: {
      SHORT: 'h:mm' + NBSP + 'a', MEDIUM: 'h:mm:ss' + NBSP + 'a', LONG: 'h:mm:ss' + NBSP + 'a z',
      FULL: 'h:mm:ss' + NBSP + 'a zzzz',
    },
    join: joined(', ', ' at '),
  },
  'en-gb': {
    ...english,
    halves: ['am', 'pm'],
    date: { SHORT: 'dd/MM/y', MEDIUM: 'd MMM y', LONG: 'd MMMM y', FULL: 'EEEE d MMMM y' },
    time: clock24,
    join: joined(', ', ' at '),
  },
  de: {
    months: ['Januar', 'Februar', 'März', 'April', 'Mai', 'Juni', 'Juli', 'August', 'September', 'Oktober',
      'November', 'Dezember'],
    shortMonths: ['Jan.', 'Feb.', 'März', 'Apr.', 'Mai', 'Juni', 'Juli', 'Aug.', 'Sept.', 'Okt.', 'Nov.', 'Dez.'],
    days: ['Montag', 'Dienstag', 'Mittwoch', 'Donnerstag', 'Freitag', 'Samstag', 'Sonntag'],
    shortDays: ['Mo.', 'Di.', 'Mi.', 'Do.', 'Fr.', 'Sa.', 'So.'],
    halves: ['AM', 'PM'],
    date: { SHORT: 'dd.MM.yy', MEDIUM: 'dd.MM.y', LONG: 'd. MMMM y', FULL: 'EEEE, d. MMMM y' },
    time: clock24,
    join: joined(', ', ' um '),
  },
  fr: {
    months: ['janvier', 'février', 'mars', 'avril', 'mai', 'juin', 'juillet', 'août', 'septembre', 'octobre',
      'novembre', 'décembre'],
    shortMonths: ['janv.', 'févr.', 'mars', 'avr.', 'mai', 'juin', 'juil.', 'août', 'sept.', 'oct.', 'nov.', 'déc.'],
    days: ['lundi', 'mardi', 'mercredi', 'jeudi', 'vendredi', 'samedi', 'dimanche'],
    shortDays: ['lun.', 'mar.', 'mer.', 'jeu.', 'ven.', 'sam.', 'dim.'],
    halves: ['AM', 'PM'],
    date: { SHORT: 'dd/MM/y', MEDIUM: 'd MMM y', LONG: 'd MMMM y', FULL: 'EEEE d MMMM y' },
    time: clock24,
    join: joined(' ', ' à '),
  },
  es: {
    months: ['enero', 'febrero', 'marzo', 'abril', 'mayo', 'junio', 'julio', 'agosto', 'septiembre', 'octubre',
      'noviembre', 'diciembre'],
    shortMonths: ['ene', 'feb', 'mar', 'abr', 'may', 'jun', 'jul', 'ago', 'sept', 'oct', 'nov', 'dic'],
    days: ['lunes', 'martes', 'miércoles', 'jueves', 'viernes', 'sábado', 'domingo'],
    shortDays: ['lun', 'mar', 'mié', 'jue', 'vie', 'sáb', 'dom'],
    halves: ['a.\u00a0m.', 'p.\u00a0m.'],
    date: { SHORT: 'd/M/yy', MEDIUM: 'd MMM y', LONG: "d 'de' MMMM 'de' y", FULL: "EEEE, d 'de' MMMM 'de' y" },
    time: { SHORT: 'H:mm', MEDIUM: 'H:mm:ss', LONG: 'H:mm:ss z', FULL: 'H:mm:ss (zzzz)' },
    join: joined(', ', ', '),
  },
  uk: {
    months: ['січня', 'лютого', 'березня', 'квітня', 'травня', 'червня', 'липня', 'серпня', 'вересня', 'жовтня',
      'листопада', 'грудня'],
    shortMonths: ['січ.', 'лют.', 'бер.', 'квіт.', 'трав.', 'черв.', 'лип.', 'серп.', 'вер.', 'жовт.', 'лист.',
      'груд.'],
    days: ['понеділок', 'вівторок', 'середа', 'четвер', 'пʼятниця', 'субота', 'неділя'],
    shortDays: ['пн', 'вт', 'ср', 'чт', 'пт', 'сб', 'нд'],
    halves: ['дп', 'пп'],
    date: { SHORT: 'dd.MM.yy', MEDIUM: "d MMM y 'р'.", LONG: "d MMMM y 'р'.", FULL: "EEEE, d MMMM y 'р'." },
    time: clock24,
    join: joined(', ', ' о '),
  },
};
const localeOf = (tag) => {
  const name = text(tag ?? 'en-US').toLowerCase().replaceAll('_', '-');
  return LOCALES[name] ?? LOCALES[name.split('-')[0]] ?? LOCALES.root;
};
