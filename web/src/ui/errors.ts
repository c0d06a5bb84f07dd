// What a failure means for the person: what happened, and what can be done about it.

import { ApiError } from "@/api/errors";
import { t } from "@/i18n";
import { serverText } from "@/i18n/serverTexts";

/** The limit of the tenant profile for entities of a kind is reached. */
const LIMIT_REACHED = 41;
const SERVER_AWAY = "The server is starting, or has too much to do. Try again in a moment.";

const ADVICE: Readonly<Record<number, string>> = {
  0: "Check whether you are online. The page goes on by itself when the server can be reached again.",
  401: "Log in again.",
  403: "Ask your administrator if you need to do this.",
  404: "It may have been deleted meanwhile. Look for it in its list, or load the page again.",
  409: "Load the page again to see what is saved now, then make your change once more.",
  413: "Take a smaller file, or ask the administrator of the installation to raise the limit.",
  429: "Wait a moment, and try again. If this happens often, the limits of the tenant profile may be too low.",
  500: "Try again. If it stays so, tell the administrator of the installation what you did, and when.",
  502: SERVER_AWAY,
  503: SERVER_AWAY,
  504: SERVER_AWAY,
};

/** How browsers say that a part of the page did not come. */
const MISSING_PART = /dynamically imported module|importing a module script failed|unable to preload/i;

/** Whether trying again may help without anything else being changed. */
export function mayPass(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status === 0 || error.status === 429 || error.status >= 500;
}

/** Says what happened. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) {
    return String(error);
  }
  if (MISSING_PART.test(error.message)) {
    return t("A part of the page could not be loaded: the server can't be reached, or it is newer than this page.");
  }
  return error instanceof ApiError ? serverText(error.message) : t(error.message);
}

/** Says what to do about a refusal; of those that name it themselves, such as a wrong value, nothing. */
export function adviceOn(error: unknown): string | undefined {
  if (!(error instanceof ApiError)) {
    return undefined;
  }
  if (error.errorCode === LIMIT_REACHED) {
    return t("Delete what is not needed any more, or ask the administrator of the installation to raise the limit of the tenant profile.");
  }
  const text = ADVICE[error.status] ?? (error.status >= 500 ? ADVICE[500] : undefined);
  return text === undefined ? undefined : t(text);
}
