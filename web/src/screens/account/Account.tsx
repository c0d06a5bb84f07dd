// The own account: who one is, and a new password.

import { Title } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import { saveTokens, type TokenPair } from "@/api/session";
import { useSession } from "@/app/session";
import { t } from "@/i18n";
import { notify } from "@/ui/feedback";
import { FieldsForm } from "@/ui/FieldsForm";

export default function Account(): ReactElement {
  const { user } = useSession();
  const [round, setRound] = useState(0);
  return (
    <>
      <Title order={1} size="h2" mb="md">
        {t("Your account")}
      </Title>
      <p>{user.email}</p>
      <Title order={2} size="h4" my="md">
        {t("Change the password")}
      </Title>
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
          saveTokens(await api.post<TokenPair>("/api/auth/changePassword", { currentPassword, newPassword }));
          notify.ok(t("The password is changed. Other sessions have ended."));
          setRound(round + 1);
        }}
      />
    </>
  );
}
