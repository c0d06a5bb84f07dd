// Pictures that settings name: stored ones, which need the token, data URLs, and addresses of the web.

import { useQuery } from "@tanstack/react-query";
import { api } from "@/api/client";

/** What stands before the path of a stored picture, as ThingsBoard writes it. */
const STORED = "tb-image;";
const API = "/api/images/";

/** Returns the path of a stored picture that a link means; none for other links. */
export function storedImagePath(link: string): string | undefined {
  const path = link.startsWith(STORED) ? link.slice(STORED.length) : link;
  // Nothing may climb out of the images' own paths.
  return path.startsWith(API) && !path.includes("..") ? path : undefined;
}

/** Returns an address that an `<img>` can show as it is; none for stored pictures and for what is no picture. */
export function plainImageUrl(link: string): string | undefined {
  // Exports may hold the picture itself behind its name.
  const url = (/^tb-image:[^;]*;(data:.*)$/s.exec(link)?.[1] ?? link).trim();
  if (/^data:image\//i.test(url) || /^https?:\/\//i.test(url)) {
    return url;
  }
  return /^\/?assets\//.test(url) && !url.includes("..") ? `/${url.replace(/^\//, "")}` : undefined;
}

async function dataUrlOf(blob: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error ?? new Error("unreadable"));
    reader.readAsDataURL(blob);
  });
}

const loaded = new Map<string, Promise<string>>();

async function load(path: string): Promise<string> {
  const blob = await api.blob(path);
  if (!blob.type.startsWith("image/")) {
    throw new Error("This file is no picture.");
  }
  // As data, and never as an address of this origin: a drawing with scripts must not become a page of ours.
  return blob.type.startsWith("image/svg") ? await dataUrlOf(blob) : URL.createObjectURL(blob);
}

/** Returns an address that an `<img>` or a background can show. Stored pictures are asked for once. */
export async function imageUrl(link: string): Promise<string> {
  const path = storedImagePath(link);
  if (path === undefined) {
    const plain = plainImageUrl(link);
    if (plain === undefined) {
      throw new Error("This is no address of a picture.");
    }
    return plain;
  }
  const known = loaded.get(path);
  if (known !== undefined) {
    return known;
  }
  const loading = load(path);
  loaded.set(path, loading);
  // What failed once may be there later.
  loading.catch(() => loaded.delete(path));
  return loading;
}

/** Returns a picture as a data URL, which pages without an origin can show too; addresses of the web are returned as they are. */
export async function imageData(link: string): Promise<string> {
  const path = storedImagePath(link);
  return path === undefined ? imageUrl(link) : dataUrlOf(await api.blob(path));
}

/** Returns the text of a drawing that a link means. */
export async function drawingText(link: string): Promise<string> {
  const path = storedImagePath(link);
  if (path !== undefined) {
    return (await api.blob(path)).text();
  }
  const plain = plainImageUrl(link);
  if (plain === undefined) {
    throw new Error("This is no address of a picture.");
  }
  const data = /^data:image\/svg\+xml[^,]*?(;base64)?,(.*)$/is.exec(plain);
  if (data === null) {
    return (await fetch(plain)).text();
  }
  const [, base64, body = ""] = data;
  return base64 === undefined ? decodeURIComponent(body) : new TextDecoder().decode(Uint8Array.from(atob(body), (letter) => letter.charCodeAt(0)));
}

export interface ShownImage {
  /** What an `<img>` or a background can show, once it is there. */
  url: string | undefined;
  failed: boolean;
}

/** Follows a link to a picture; an empty link is no picture. */
export function useImage(link: string | undefined): ShownImage {
  const wanted = link === undefined || link === "" ? undefined : link;
  const plain = wanted === undefined || storedImagePath(wanted) !== undefined ? undefined : plainImageUrl(wanted);
  const asked = useQuery({
    queryKey: ["image", wanted],
    queryFn: () => imageUrl(wanted ?? ""),
    enabled: wanted !== undefined && plain === undefined,
    staleTime: Infinity,
    retry: false,
  });
  return { url: plain ?? asked.data, failed: asked.isError };
}

/** Returns a picture as the value of CSS's `background-image`. */
export function cssUrl(url: string): string {
  return `url("${url.replace(/["\\\n]/g, (letter) => encodeURIComponent(letter))}")`;
}
