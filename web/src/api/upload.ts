// Files sent to the server, with how much of them has gone, which `fetch` can't tell.

import { ApiError, errorFrom, UNREACHABLE } from "./errors";
import { getToken } from "./session";

export interface Upload {
  method?: "POST" | "PUT";
  path: string;
  file: File;
  /** Further parts of the form. */
  fields?: Record<string, string>;
  /** Told again and again, from 0 to 100. */
  told: (percent: number) => void;
}

/** Sends a file as a form and returns what the server answers. */
export async function upload<T>({ method = "POST", path, file, fields = {}, told }: Upload): Promise<T> {
  const token = await getToken();
  return new Promise((resolve, reject) => {
    const form = new FormData();
    Object.entries(fields).forEach(([name, value]) => form.append(name, value));
    form.append("file", file);
    const request = new XMLHttpRequest();
    request.open(method, path);
    request.setRequestHeader("X-Authorization", `Bearer ${token}`);
    request.setRequestHeader("Accept", "application/json");
    request.upload.onprogress = ({ loaded, total }) => told((100 * loaded) / total);
    request.onload = () => {
      if (request.status < 300) {
        resolve((request.responseText === "" ? undefined : JSON.parse(request.responseText)) as T);
      } else {
        reject(errorFrom(request.status, request.responseText));
      }
    };
    request.onerror = () => reject(new ApiError(0, UNREACHABLE));
    request.send(form);
  });
}
