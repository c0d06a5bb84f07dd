// Images, symbols, scripts and other files that are stored beside entities.

import { NULL_ID } from "@/entities/kinds";
import type { Authority, EntityId } from "@/api/types";

export interface StoredFile {
  id: EntityId;
  createdTime: number;
  tenantId: EntityId;
  title: string;
  resourceType: string;
  resourceSubType?: string | null;
  resourceKey: string;
  fileName: string;
  /** Changes with the bytes. */
  etag?: string | null;
  public?: boolean;
  publicResourceKey?: string | null;
  descriptor?: { mediaType?: string; width?: number; height?: number; size?: number } | null;
  /** Path of its bytes. */
  link: string;
  publicLink?: string | null;
}

export const isOfSystem = (file: { tenantId?: EntityId }): boolean => file.tenantId?.id === NULL_ID;

/** Whether a role may change a file: those of the installation are its administrators' alone. */
export function mayChange(file: { tenantId?: EntityId }, authority: Authority): boolean {
  return authority === "SYS_ADMIN" || (authority === "TENANT_ADMIN" && !isOfSystem(file));
}

/** Returns the address of an image that changes with its bytes, so that no copy of replaced ones is shown. */
export function versionOf({ link, etag }: StoredFile, part = ""): string {
  return `${link}${part}?v=${encodeURIComponent(etag ?? "")}`;
}

/** Returns the path of the screen that edits a symbol. It ends without a name of a file: those are asked for as files. */
export function symbolPath({ link }: Pick<StoredFile, "link">): string {
  return `${link.replace("/api/images/", "/resources/scada-symbols/")}/edit`;
}

/** What a library shows, and what can be put into it. */
export interface Library {
  path: string;
  label: string;
  /** What it says as long as nothing is in it. */
  hint: string;
  /** What every request for its files has. */
  query: Record<string, string | boolean>;
  /** Types that can be added, each with the endings of its files. */
  types: readonly { type: string; label: string; accept?: string; subType?: string }[];
}

export const LIBRARIES: readonly Library[] = [
  {
    path: "/resources/resources-library", label: "Resource library", hint: "No files yet. Models, key stores and other files that profiles and dashboards name are kept here.", query: {},
    types: [
      { type: "GENERAL", label: "Any file" },
      { type: "LWM2M_MODEL", label: "LwM2M model", accept: ".xml" },
      { type: "JKS", label: "Java key store", accept: ".jks" },
      { type: "PKCS_12", label: "PKCS #12 key store", accept: ".p12,.pfx" },
    ],
  },
  {
    path: "/resources/javascript-library", label: "JavaScript library", hint: "No scripts yet. Functions of widgets and dashboards use the modules that are kept here.", query: { resourceType: "JS_MODULE" },
    types: [
      { type: "JS_MODULE", label: "Module", accept: ".js,.mjs", subType: "MODULE" },
      { type: "JS_MODULE", label: "Extension", accept: ".js,.mjs", subType: "EXTENSION" },
    ],
  },
];

export const GALLERIES = [
  { path: "/resources/images", label: "Images", hint: "No images yet. Upload some for dashboards, maps and profiles, or bring one in from a file.", subType: "IMAGE", accept: "image/*" },
  { path: "/resources/scada-symbols", label: "SCADA symbols", hint: "No symbols yet. Upload an SVG file, or bring in one of ThingsBoard; widgets show values with it.", subType: "SCADA_SYMBOL", accept: ".svg" },
] as const;
export type Gallery = (typeof GALLERIES)[number];
