// Refusals of the server: what was said, and with which status.

/** Words for answers that say nothing themselves, such as those of a proxy in between. */
const STATUS_WORDS: Readonly<Record<number, string>> = {
  400: "The server did not accept this.",
  401: "You are not logged in any more.",
  403: "You are not allowed to do this.",
  404: "What you are looking for is not here.",
  409: "Somebody else has changed this meanwhile.",
  413: "This is too large for the server.",
  429: "These are too many requests at a time.",
  500: "The server has failed.",
  502: "The server does not answer at the moment.",
  503: "The server does not answer at the moment.",
  504: "The server does not answer at the moment.",
};

/** The server can't be reached. */
export const UNREACHABLE = "The server can't be reached. What you see may be old.";

/** The server refused a request; the message is its own and made for people. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly errorCode?: number,
    /** The whole answer, where it is JSON. */
    readonly details?: unknown,
  ) {
    super(message);
  }
}

/** Makes an error of the text of a refusal. */
export function errorFrom(status: number, text: string): ApiError {
  const words = STATUS_WORDS[status] ?? STATUS_WORDS[status >= 500 ? 500 : 400] ?? "";
  try {
    const body = JSON.parse(text) as { message?: unknown; error?: unknown; errorCode?: number } | string | null;
    // Some answers are a single word.
    const { message, error, errorCode } = typeof body === "string" ? { message: body } : { ...body };
    const said = [message, error].find((one) => typeof one === "string" && one !== "");
    return new ApiError(status, typeof said === "string" ? said : words, errorCode, body);
  } catch {
    // A page is none of the server's own answers.
    return new ApiError(status, text.trimStart().startsWith("<") ? words : text.slice(0, 300) || words);
  }
}

/** Makes an error of an answer that is not a success. */
export async function errorOf(answer: Response): Promise<ApiError> {
  return errorFrom(answer.status, await answer.text());
}
