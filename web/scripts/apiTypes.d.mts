/** Returns the text of the module of types that an OpenAPI description declares. */
export function typesOf(document: unknown): string;
