// Makes TypeScript of the program's OpenAPI description: the shapes that answers have, and for each endpoint what it takes and answers.
// The same description gives the same text.

const PAGE = "PageData_";
const refName = (ref) => ref.slice(ref.lastIndexOf("/") + 1);
const safeName = (name) => name.replace(/\W/g, "_");
const key = (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name));

/** An id of an entity: all kinds of them have the same two fields. */
function isId(schema) {
  return Object.keys(schema.properties ?? {}).sort().join() === "entityType,id";
}

/** Returns the type of a schema; `uses` is told the names that it mentions. */
function typeOf(schema, schemas, uses) {
  if (schema === undefined || schema === true) {
    return "unknown";
  }
  if (schema.$ref !== undefined) {
    const name = refName(schema.$ref);
    const inner = name.startsWith(PAGE) ? name.slice(PAGE.length) : undefined;
    if (inner !== undefined && schemas[inner] !== undefined) {
      return `PageData<${typeOf({ $ref: `#/${inner}` }, schemas, uses)}>`;
    }
    if (schemas[name] !== undefined && isId(schemas[name])) {
      return "EntityId";
    }
    uses(name);
    return safeName(name);
  }
  const join = (parts, by) => [...new Set(parts.map((part) => typeOf(part, schemas, uses)))].map((text) => (by === " & " && text.includes(" | ") ? `(${text})` : text)).join(by);
  if (schema.oneOf ?? schema.anyOf) {
    return join(schema.oneOf ?? schema.anyOf, " | ");
  }
  if (schema.allOf) {
    return join(schema.allOf, " & ");
  }
  if (schema.enum) {
    return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  }
  const kinds = [schema.type ?? []].flat();
  const texts = kinds.map((kind) => {
    switch (kind) {
      case "integer":
      case "number":
        return "number";
      case "string":
      case "boolean":
      case "null":
        return kind;
      case "array": {
        if (schema.prefixItems) {
          return `[${schema.prefixItems.map((part) => typeOf(part, schemas, uses)).join(", ")}]`;
        }
        const item = typeOf(schema.items, schemas, uses);
        return /[ |&]/.test(item) ? `(${item})[]` : `${item}[]`;
      }
      default:
        return objectOf(schema, schemas, uses);
    }
  });
  return texts.length === 0 ? "unknown" : [...new Set(texts)].join(" | ");
}

const mayBeNull = (schema) =>
  [schema?.type ?? []].flat().includes("null") || (schema?.oneOf ?? []).some((part) => part.type === "null") || (schema?.type === undefined && schema?.$ref === undefined && schema?.oneOf === undefined && schema?.allOf === undefined && schema?.enum === undefined);

/** Answers have all of their fields, besides those that may be null, which may be absent too. */
function objectOf(schema, schemas, uses) {
  const fields = Object.entries(schema.properties ?? {}).map(([name, field]) => {
    const text = typeOf(field, schemas, uses);
    // Only requests to create something leave its id out.
    return name === "id" && text === "EntityId | null" ? "id: EntityId" : `${key(name)}${mayBeNull(field) ? "?" : ""}: ${text}`;
  });
  const rest = schema.additionalProperties;
  if (fields.length === 0) {
    return `Record<string, ${rest === undefined || typeof rest === "boolean" ? "unknown" : typeOf(rest, schemas, uses)}>`;
  }
  return `{ ${fields.join("; ")} }`;
}

function bodyOf(content, schemas, uses) {
  const schema = content?.["application/json"]?.schema;
  return schema === undefined ? undefined : typeOf(schema, schemas, uses);
}

/** Returns the text of the module of types. */
export function typesOf(document) {
  const schemas = document.components?.schemas ?? {};
  const wanted = [];
  const known = new Set();
  const uses = (name) => {
    if (!known.has(name) && schemas[name] !== undefined) {
      known.add(name);
      wanted.push(name);
    }
  };
  const operations = [];
  for (const path of Object.keys(document.paths).sort()) {
    for (const method of ["get", "post", "put", "delete"]) {
      const operation = document.paths[path][method];
      if (operation !== undefined) {
        const answer = bodyOf(operation.responses?.["200"]?.content, schemas, uses) ?? "undefined";
        operations.push(`  ${JSON.stringify(`${method.toUpperCase()} ${path}`)}: ${answer};`);
      }
    }
  }
  const shapes = new Map();
  for (let name = wanted.shift(); name !== undefined; name = wanted.shift()) {
    shapes.set(safeName(name), typeOf(schemas[name], schemas, uses));
  }
  const lines = [...shapes].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, text]) => `export type ${name} = ${text};`);
  return `${[
    "// Made by `npm run api` from the program's OpenAPI description; not to be changed by hand.",
    "",
    'import type { EntityId, PageData } from "./types";',
    "",
    ...lines,
    "",
    "/** What each endpoint answers. */",
    "export interface Answers {",
    ...operations,
    "}",
  ].join("\n")}\n`;
}
