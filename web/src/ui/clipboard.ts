// The clipboard of the browser. Pages over plain HTTP of another machine have none, so that what is copied stays within the page.

/** What was copied here last. */
let copied: string | undefined;

/** Copies a text; whether other tabs and programs can paste it, too. */
export async function copyText(text: string): Promise<boolean> {
  copied = text;
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // There is none, or it was refused.
    return false;
  }
}

/** Returns the text that was copied last: where the clipboard can't be read, what was copied here. */
export async function copiedText(): Promise<string> {
  try {
    return await navigator.clipboard.readText();
  } catch (error) {
    if (copied === undefined && isSecureContext) {
      throw error;
    }
    return copied ?? "";
  }
}
