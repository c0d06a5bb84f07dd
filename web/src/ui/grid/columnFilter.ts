// What is typed above a column: part of a text, or a comparison with a number such as `>20`, `<=5`, `=3`, `!=0`.

export interface ColumnFilter {
  operation: "CONTAINS" | "EQUAL" | "NOT_EQUAL" | "GREATER" | "GREATER_OR_EQUAL" | "LESS" | "LESS_OR_EQUAL";
  value: string | number;
}

const OPERATIONS: Record<string, ColumnFilter["operation"]> = { "=": "EQUAL", "!=": "NOT_EQUAL", ">": "GREATER", ">=": "GREATER_OR_EQUAL", "<": "LESS", "<=": "LESS_OR_EQUAL" };

/** Reads a filter; none for blank text. */
export function readColumnFilter(typed: string): ColumnFilter | undefined {
  const text = typed.trim();
  const [, sign, rest] = /^(!=|>=|<=|=|>|<)\s*(.*)$/.exec(text) ?? [];
  const operation = sign === undefined ? undefined : OPERATIONS[sign];
  if (operation !== undefined && rest !== undefined) {
    const isNumber = rest !== "" && Number.isFinite(Number(rest));
    // A comparison that is still being typed filters nothing.
    return isNumber ? { operation, value: Number(rest) } : rest !== "" && (operation === "EQUAL" || operation === "NOT_EQUAL") ? { operation, value: rest } : undefined;
  }
  return text === "" ? undefined : { operation: "CONTAINS", value: text };
}

/** Whether a cell passes a filter. */
export function passes(cell: string, filter: ColumnFilter): boolean {
  if (typeof filter.value === "string") {
    const [own, wanted] = [cell.toLowerCase(), filter.value.toLowerCase()];
    return filter.operation === "CONTAINS" ? own.includes(wanted) : (own === wanted) === (filter.operation === "EQUAL");
  }
  const number = cell.trim() === "" ? NaN : Number.parseFloat(cell);
  const results = { EQUAL: number === filter.value, NOT_EQUAL: number !== filter.value, GREATER: number > filter.value, GREATER_OR_EQUAL: number >= filter.value, LESS: number < filter.value, LESS_OR_EQUAL: number <= filter.value, CONTAINS: false };
  return results[filter.operation];
}

/** Returns a filter as the server's queries of entities take it. */
export function keyFilterOf(key: { type: string; key: string }, filter: ColumnFilter): Record<string, unknown> {
  const isNumber = typeof filter.value === "number";
  const value = { defaultValue: filter.value, userValue: null, dynamicValue: null };
  return {
    key,
    valueType: isNumber ? "NUMERIC" : "STRING",
    predicate: isNumber ? { type: "NUMERIC", operation: filter.operation, value } : { type: "STRING", operation: filter.operation, value, ignoreCase: true },
  };
}
