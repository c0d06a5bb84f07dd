// The rules for passwords, each with whether what was typed meets it.

import { List, Text } from "@mantine/core";
import type { ReactElement } from "react";
import { plural, t } from "@/i18n";
import { rulesOf, type PasswordPolicy } from "./policy";

export function PasswordRules({ policy, password }: { policy: PasswordPolicy; password: string }): ReactElement {
  return (
    <List size="sm" w="100%" aria-label={t("What the new password must be like")} listStyleType="none">
      {rulesOf(policy, password).map(({ one, other, n, met }) => (
        <List.Item key={one} data-met={met} icon={<span aria-hidden>{password === "" ? "·" : met ? "✓" : "✗"}</span>}>
          <Text span size="sm" {...(password === "" || met ? {} : { c: "var(--mantine-color-error)" })}>
            {plural(n, one, other)}
            {password !== "" && !met ? ` – ${t("not yet")}` : ""}
          </Text>
        </List.Item>
      ))}
    </List>
  );
}
