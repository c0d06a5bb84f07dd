// Styles that tenants write may load nothing: with a selector of an attribute the address alone would tell another server what the viewer sees.

/** Whether the text of a style, which nobody has parsed yet, can load something or hides that it does. */
export function isLoadingStyle(style: string): boolean {
  return /url|image|src\s*\(|cross-fade|@|\\|\/\*|expression/i.test(style);
}

/** Whether parsed styles load more than pictures within themselves and parts of the page. */
export function loadsFromElsewhere(styles: string): boolean {
  const rest = styles.replace(/url\(\s*(?:"(?:data:image\/|#)[^"\\]*"|'(?:data:image\/|#)[^'\\]*'|(?:data:image\/|#)[^"'()\\\s]*)\s*\)/gi, "");
  return /url\s*\(|image\s*\(|image-set|cross-fade|src\s*\(|element\s*\(|@import|@font-face|\\/i.test(rest);
}

/** The parts of a rule that its kinds have in common. */
interface Rule {
  readonly cssText: string;
  readonly selectorText?: string;
  readonly style?: CSSStyleDeclaration;
  readonly cssRules?: ArrayLike<unknown>;
  deleteRule?: (index: number) => void;
}

function dropLoading(style: CSSStyleDeclaration): void {
  if (!loadsFromElsewhere(style.cssText)) {
    return;
  }
  for (const name of Array.from(style)) {
    if (loadsFromElsewhere(style.getPropertyValue(name))) {
      style.removeProperty(name);
    }
  }
  // A shorthand with variables has no values of its own to look at.
  if (loadsFromElsewhere(style.cssText)) {
    style.cssText = "";
  }
}

/** Kinds of rules that only say how something looks. */
function isPlain(rule: unknown): boolean {
  const kinds = [CSSStyleRule, CSSMediaRule, CSSSupportsRule, CSSKeyframesRule, CSSKeyframeRule];
  // Declarations after a nested rule; older browsers don't know them as rules.
  return kinds.some((kind) => rule instanceof kind) || (typeof CSSNestedDeclarations !== "undefined" && rule instanceof CSSNestedDeclarations);
}

function cleanRule(rule: Rule): boolean {
  if (!isPlain(rule)) {
    return false;
  }
  if (rule.style !== undefined) {
    dropLoading(rule.style);
  }
  const inner = rule.cssRules ?? [];
  for (let n = inner.length - 1; n >= 0; n--) {
    if (!cleanRule(inner[n] as Rule)) {
      // Frames of animations, which are deleted by their key, are always plain.
      rule.deleteRule?.(n);
    }
  }
  // Names of classes may be escaped; what is within a group has been looked at.
  return rule.style === undefined || !loadsFromElsewhere(rule.cssText.slice(rule.selectorText?.length ?? 0));
}

/** Returns the rules of a style sheet that load nothing from elsewhere, as text that is balanced. */
export function safeRules(css: string): string {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  return Array.from(sheet.cssRules)
    .filter((rule) => cleanRule(rule as Rule))
    .map((rule) => rule.cssText)
    .join("\n");
}
