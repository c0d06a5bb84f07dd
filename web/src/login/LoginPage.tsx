// The page to log in, to ask for a new password, and to choose one. It works without the application.

import { lazy, Suspense, useEffect, useState, type FormEvent, type ReactElement } from "react";
import { ApiError, errorOf } from "@/api/errors";
import { currentClaims, EXPIRED_LINKS, landingOf, LOG_IN, saveTokens, withoutLogIn, type TokenPair } from "@/api/session";
import { t } from "@/i18n";
import { serverText } from "@/i18n/serverTexts";

/** A part of its own: the application has the same rules, and would begin this entry with them. A password can be chosen without them, too. */
const Rules = lazy(() => import("./Rules").catch(() => ({ default: () => null })));

/** The code of an answer that has a token for a new password. */
const PASSWORD_EXPIRED = 15;
/** The address without what it brings, which must not stay where people copy it and histories keep it. */
const address = withoutLogIn(location.href);
const query = address.searchParams;
/** Where the way goes on after the log-in. */
const landing = landingOf(query.get("next"), location.origin);

/** Takes what the link has brought to log in with, in its own address or in that of the way back, out of the address. */
function takeBrought(): (string | null)[] {
  const own = new URLSearchParams(location.search);
  const { searchParams } = landingOf(own.get("next"), location.origin);
  const brought = LOG_IN.map((name) => own.get(name) ?? searchParams.get(name));
  if (brought.some((one) => one !== null)) {
    history.replaceState(null, "", address);
  }
  return brought;
}

async function post<T>(path: string, body: unknown): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch {
    throw new ApiError(0, t("The server can't be reached. Try again in a moment."));
  }
  if (!answer.ok) {
    throw await errorOf(answer);
  }
  const text = await answer.text();
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

/** What happened and, where the server does not say so itself, what to do. */
function problemText(error: unknown): string {
  const text = error instanceof Error ? serverText(error.message) : String(error);
  const status = error instanceof ApiError ? error.status : undefined;
  const advice = status === 429 ? t("Wait a moment, and try again.") : status !== undefined && status >= 500 ? t("The server is starting, or has too much to do. Try again in a moment.") : "";
  return advice === "" ? text : `${text} ${advice}`;
}

function enter(pair: TokenPair): void {
  saveTokens(pair);
  location.replace(landing.href);
}

interface PageForm {
  title: string;
  hint?: string;
  fields: { name: string; label: string; type: string; autoComplete: string }[];
  action: string;
  /** Does what the form is for; a text that it returns replaces the form. */
  submit: (values: Record<string, string>) => Promise<string | void>;
}

const PASSWORDS: PageForm["fields"] = [
  { name: "password", label: "New password", type: "password", autoComplete: "new-password" },
  { name: "again", label: "New password again", type: "password", autoComplete: "new-password" },
];

function choosePassword(title: string, save: (password: string) => Promise<TokenPair>): PageForm {
  return {
    title,
    fields: PASSWORDS,
    action: "Save password",
    submit: async ({ password, again }) => {
      if (password !== again) {
        throw new ApiError(400, t("The two passwords are not the same."));
      }
      enter(await save(password ?? ""));
    },
  };
}

/** Returns the form of a path below `/login`. */
function formOf(path: string): PageForm {
  switch (path) {
    case "/login/resetPasswordRequest":
      return {
        title: "Forgotten password",
        hint: "A link to choose a new password comes by mail.",
        fields: [{ name: "email", label: "E-mail", type: "email", autoComplete: "username" }],
        action: "Send the link",
        submit: async ({ email }) => {
          await post("/api/noauth/resetPasswordByEmail", { email });
          return t("If {email} has an account here, the mail is on its way.", { email: email ?? "" });
        },
      };
    case "/login/resetPassword":
      return choosePassword("Choose a new password", (password) =>
        post("/api/noauth/resetPassword", { resetToken: query.get("resetToken"), password }),
      );
    case "/login/resetExpiredPassword":
      return choosePassword("Your password is too old: choose a new one", (password) =>
        post("/api/noauth/resetPassword", { resetToken: query.get("resetToken"), password }),
      );
    case "/login/createPassword":
      return choosePassword("Activate your account", (password) =>
        post("/api/noauth/activate", { activateToken: query.get("activateToken"), password }),
      );
    default:
      return {
        title: "Log in",
        fields: [
          { name: "username", label: "E-mail", type: "email", autoComplete: "username" },
          { name: "password", label: "Password", type: "password", autoComplete: "current-password" },
        ],
        action: "Log in",
        submit: async (values) =>
          enter(
            await post<TokenPair>("/api/auth/login", values).catch((error: unknown) => {
              const { errorCode, resetToken } = (error instanceof ApiError ? (error.details ?? {}) : {}) as { errorCode?: number; resetToken?: string };
              if (errorCode !== PASSWORD_EXPIRED || resetToken === undefined) {
                throw error;
              }
              const next = query.get("next");
              location.assign(`/login/resetExpiredPassword?${new URLSearchParams({ resetToken, ...(next === null ? {} : { next }) }).toString()}`);
              throw new Error(t("Your password has to be changed."));
            }),
          ),
      };
  }
}

export function LoginPage(): ReactElement {
  const form = formOf(location.pathname);
  const isLogin = form.action === "Log in";
  const [problem, setProblem] = useState(query.get("loginError") ?? t(EXPIRED_LINKS[query.get("next") ?? ""] ?? ""));
  const [done, setDone] = useState("");
  const [busy, setBusy] = useState(false);
  const [password, setPassword] = useState("");

  useEffect(() => {
    const publicId = query.get("publicId");
    const [token, refreshToken, username, password] = takeBrought();
    const refused = (error: unknown): void => setProblem(problemText(error));
    if (typeof token === "string" && typeof refreshToken === "string") {
      enter({ token, refreshToken });
    } else if (publicId !== null) {
      post<TokenPair>("/api/auth/login/public", { publicId }).then(enter, refused);
    } else if (typeof username === "string" && typeof password === "string" && isLogin) {
      if (currentClaims() !== undefined) {
        // Nobody is logged out by it: who has a session goes on with that. If it turns out to have ended, the way leads back here.
        landing.searchParams.set("username", username);
        landing.searchParams.set("password", password);
        location.replace(landing.href);
        return;
      }
      post<TokenPair>("/api/auth/login", { username, password }).then(enter, refused);
    }
  }, []);

  const submit = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const values = Object.fromEntries([...new FormData(event.currentTarget)].map(([k, v]) => [k, String(v)]));
    setBusy(true);
    setProblem("");
    try {
      setDone((await form.submit(values)) ?? "");
    } catch (error) {
      setProblem(problemText(error));
    } finally {
      setBusy(false);
    }
  };

  return (
    <main>
      <img src="/favicon.svg" alt="" width={48} height={48} />
      <h1>{t(form.title)}</h1>
      {done !== "" ? (
        <p role="status">{done}</p>
      ) : (
        <form onSubmit={(event) => void submit(event)}>
          {form.hint !== undefined && <p>{t(form.hint)}</p>}
          {form.fields.map((field, place) => (
            <label key={field.name}>
              {t(field.label)}
              <input name={field.name} type={field.type} autoComplete={field.autoComplete} required autoFocus={place === 0} {...(field.name === "password" ? { onChange: (event) => setPassword(event.currentTarget.value) } : {})} />
            </label>
          ))}
          {form.fields === PASSWORDS && (
            <Suspense>
              <Rules password={password} />
            </Suspense>
          )}
          {problem !== "" && <p role="alert">{problem}</p>}
          <button type="submit" disabled={busy}>
            {t(form.action)}
          </button>
        </form>
      )}
      <a href={isLogin ? "/login/resetPasswordRequest" : "/login"}>{t(isLogin ? "Forgotten password?" : "Back to the log-in")}</a>
    </main>
  );
}
