// Calls of endpoints by their names, with the answers that the API's own description declares.

import { api, type Query } from "./client";
import type { Answers } from "./schema.gen";

/** An endpoint, such as `GET /api/device/{deviceId}`. */
export type Operation = keyof Answers;
type Names<O extends string> = O extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never;

interface Given<O extends Operation> {
  /** What stands for the names in braces. */
  path: Record<Names<O>, string | number | boolean>;
  query?: Query;
  body?: unknown;
  /** Of what is posted: closes the connection. */
  signal?: AbortSignal;
}

type Options<O extends Operation> = Names<O> extends never ? [given?: Omit<Given<O>, "path">] : [given: Given<O>];

/** Fills the names in braces of a path, each as one part of it. */
export function pathOf(operation: string, values: Record<string, string | number | boolean>): string {
  return operation.slice(operation.indexOf(" ") + 1).replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values[name] ?? "")));
}

/** Calls an endpoint. */
export function ask<O extends Operation>(operation: O, ...[given]: Options<O>): Promise<Answers[O]> {
  const { path = {}, query, body, signal } = (given ?? {}) as Partial<Given<O>>;
  const at = pathOf(operation, path);
  switch (operation.slice(0, operation.indexOf(" "))) {
    case "POST":
      return api.post<Answers[O]>(at, body, query, signal);
    case "PUT":
      return api.put<Answers[O]>(at, body);
    case "DELETE":
      return api.delete<Answers[O]>(at, query);
    default:
      return api.get<Answers[O]>(at, query);
  }
}
