// What protects the own account: the password, keys that programs use in its place, and the sessions that are open.

import { Button, CopyButton, Group, Stack, Text, Title } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { claimsOf, getToken, saveTokens } from "@/api/session";
import { ask } from "@/api/typed";
import { useSession } from "@/app/session";
import { formatTime, t } from "@/i18n";
import { notify } from "@/ui/feedback";
import { FieldsForm } from "@/ui/FieldsForm";
import { ApiKeys } from "./ApiKeys";
import { PasswordRules } from "./PasswordRules";
import { OWN_SESSIONS, Sessions } from "./Sessions";

function PasswordForm(): ReactElement {
  const cache = useQueryClient();
  const [round, setRound] = useState(0);
  const policy = useQuery({ queryKey: ["password policy"], queryFn: () => ask("GET /api/noauth/userPasswordPolicy") });
  return (
    <FieldsForm
      key={round}
      fields={[
        { name: "currentPassword", label: "Current password", type: "password", required: true },
        { name: "newPassword", label: "New password", type: "password", required: true },
        { name: "again", label: "New password again", type: "password", required: true },
      ]}
      values={{}}
      action="Change the password"
      onSave={async ({ currentPassword, newPassword, again }) => {
        if (newPassword !== again) {
          throw new Error("The two passwords are not the same.");
        }
        saveTokens(await ask("POST /api/auth/changePassword", { body: { currentPassword, newPassword } }));
        notify.ok(t("The password is changed. Other sessions have ended."));
        setRound(round + 1);
        await cache.invalidateQueries({ queryKey: OWN_SESSIONS });
      }}
      more={({ newPassword }) => policy.data !== undefined && <PasswordRules policy={policy.data} password={typeof newPassword === "string" ? newPassword : ""} />}
    />
  );
}

/** The token of this session, for trying out the API. It ends soon by itself; programs get keys. */
function SessionToken(): ReactElement {
  const token = useQuery({ queryKey: ["own token"], queryFn: () => getToken(), staleTime: 0 });
  const ends = claimsOf(token.data ?? "")?.exp;
  return (
    <Group>
      <CopyButton value={token.data ?? ""}>
        {({ copied, copy }) => (
          <Button variant="default" onClick={copy} disabled={token.data === undefined}>
            {t(copied ? "Copied" : "Copy the token of this session")}
          </Button>
        )}
      </CopyButton>
      {ends !== undefined && <Text size="sm">{t("Valid until {time}", { time: formatTime(ends * 1000) })}</Text>}
    </Group>
  );
}

export default function Security(): ReactElement {
  const { user } = useSession();
  return (
    <Stack>
      <Title order={1} size="h2">
        {t("Your security")}
      </Title>
      <Text>{user.email}</Text>
      <Title order={2} size="h4">
        {t("Change the password")}
      </Title>
      <PasswordForm />
      <Title order={2} size="h4">
        {t("API keys")}
      </Title>
      <ApiKeys userId={user.id} />
      <Title order={2} size="h4">
        {t("Sessions")}
      </Title>
      <Text maw={640}>{t("Each log-in opens a session. If there is one that you don't know, end it and change the password. A new password ends all other sessions of yours.")}</Text>
      <Sessions />
      <Title order={2} size="h4">
        {t("This session")}
      </Title>
      <SessionToken />
    </Stack>
  );
}
