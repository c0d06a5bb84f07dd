// What a new password must be like, before somebody sends one that is refused.

import { useEffect, useState, type ReactElement } from "react";
import { plural, t } from "@/i18n";
import { rulesOf, type PasswordPolicy } from "@/screens/account/policy";

export default function Rules({ password }: { password: string }): ReactElement | null {
  const [policy, setPolicy] = useState<PasswordPolicy>();
  useEffect(() => {
    // Without its rules a password can still be chosen: the server says what it lacks.
    void fetch("/api/noauth/userPasswordPolicy")
      .then(async (answer) => (answer.ok ? setPolicy((await answer.json()) as PasswordPolicy) : undefined))
      .catch(() => undefined);
  }, []);
  if (policy === undefined) {
    return null;
  }
  return (
    <ul aria-label={t("What the new password must be like")}>
      {rulesOf(policy, password).map(({ one, other, n, met }) => (
        <li key={one} data-met={password === "" ? undefined : met}>
          <span aria-hidden>{password === "" ? "·" : met ? "✓" : "✗"}</span> {plural(n, one, other)}
          {password !== "" && !met ? ` – ${t("not yet")}` : ""}
        </li>
      ))}
    </ul>
  );
}
