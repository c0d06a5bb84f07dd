// The parts of a widget type that its editor changes.

import { object, text, type Json } from "@/dashboard/model";

export interface CodePart {
  key: "templateHtml" | "templateCss" | "controllerScript" | "settingsForm" | "dataKeySettingsForm" | "defaultConfig";
  label: string;
  language: "HTML" | "CSS" | "JS" | "JSON";
}

export const PARTS: readonly CodePart[] = [
  { key: "templateHtml", label: "HTML", language: "HTML" },
  { key: "templateCss", label: "CSS", language: "CSS" },
  { key: "controllerScript", label: "JavaScript", language: "JS" },
  { key: "settingsForm", label: "Settings form", language: "JSON" },
  { key: "dataKeySettingsForm", label: "Form of keys", language: "JSON" },
  { key: "defaultConfig", label: "Default configuration", language: "JSON" },
];

/** Parts that are stored as JSON, and those that are stored as text of JSON. */
const AS_JSON = new Set<string>(["settingsForm", "dataKeySettingsForm"]);

export function partText(descriptor: Json, part: CodePart): string {
  const value = descriptor[part.key];
  if (AS_JSON.has(part.key)) {
    return JSON.stringify(value ?? [], null, 2);
  }
  if (part.key !== "defaultConfig") {
    return text(value) ?? "";
  }
  try {
    return JSON.stringify(JSON.parse(text(value) ?? "{}"), null, 2);
  } catch {
    return text(value) ?? "";
  }
}

export type Texts = Partial<Record<CodePart["key"], string>>;

/** Puts what was typed into a descriptor; JSON that isn't throws an error that names the part. */
export function withTexts(descriptor: Json, texts: Texts): Json {
  return PARTS.reduce<Json>((made, { key, label, language }) => {
    const typed = texts[key];
    if (typed === undefined) {
      return made;
    }
    if (language !== "JSON") {
      return { ...made, [key]: typed };
    }
    try {
      const read: unknown = JSON.parse(typed);
      return { ...made, [key]: AS_JSON.has(key) ? read : JSON.stringify(read) };
    } catch {
      throw new Error(`${label}: this is no JSON.`);
    }
  }, object(descriptor));
}

/** A copy to be stored as a new type. */
export function copyOf(type: Json, name: string): Json {
  const { id: _id, fqn: _fqn, version: _version, createdTime: _created, tenantId: _tenant, externalId: _external, ...content } = type;
  return { ...content, name };
}
