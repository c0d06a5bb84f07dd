import type { Plugin } from "vite";

interface Group {
  name: string;
  test: (id: string) => boolean;
  priority: number;
}

/** Returns a plugin that learns what each entry imports at once, and the groups of files that follow from it. */
export function entryParts(entries: string[], early: string, later: string, parts?: Record<string, string[]>): { plugin: Plugin; groups: Group[] };
