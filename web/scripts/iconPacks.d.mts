import type { Plugin } from "vite";

export function pathOf(body: string): string | undefined;
export function namedIcons(): [name: string, path: string][];
export function iconPacks(): Plugin;
