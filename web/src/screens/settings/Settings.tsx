// A screen of settings of the system.

import { Button, Title } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import { t } from "@/i18n";
import { notify, Problem, Waiting } from "@/ui/feedback";
import { FieldsForm, type FormValues } from "@/ui/FieldsForm";
import type { SettingsPage } from "./pages";

interface Stored extends FormValues {
  jsonValue?: FormValues;
}

/** An empty password is none that was given, so that the stored one stays. */
function withoutEmptyPasswords(page: SettingsPage, values: FormValues): FormValues {
  const empty = page.fields.filter(({ type, name }) => type === "password" && (values[name] ?? "") === "").map(({ name }) => name);
  return Object.fromEntries(Object.entries(values).filter(([name]) => !empty.includes(name)));
}

export default function Settings({ page }: { page: SettingsPage }): ReactElement {
  const cache = useQueryClient();
  const [busy, setBusy] = useState(false);
  const path = page.endpoint ?? `/api/admin/settings/${page.key ?? ""}`;
  const stored = useQuery({ queryKey: ["settings", path], queryFn: () => api.get<Stored>(path) });
  if (stored.isPending) {
    return <Waiting />;
  }
  if (stored.isError) {
    return <Problem error={stored.error} />;
  }
  const bodyOf = (values: FormValues): FormValues => {
    const given = withoutEmptyPasswords(page, values);
    return page.endpoint === undefined ? { ...stored.data, key: page.key, jsonValue: given } : given;
  };
  const test = async (values: FormValues): Promise<void> => {
    setBusy(true);
    try {
      await api.post(page.test?.path ?? "", bodyOf(values));
      notify.ok(t(page.test?.done ?? ""));
    } catch (error) {
      notify.error(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Title order={1} size="h2" mb="md">
        {t(page.label)}
      </Title>
      <FieldsForm
        key={stored.dataUpdatedAt}
        fields={page.fields}
        values={page.endpoint === undefined ? (stored.data.jsonValue ?? {}) : stored.data}
        action="Save"
        onSave={async (values) => {
          const saved = await api.post<Stored>(page.endpoint ?? "/api/admin/settings", bodyOf(values));
          cache.setQueryData(["settings", path], saved);
          notify.ok(t("Saved"));
        }}
        more={(values) =>
          page.test !== undefined && (
            <Button variant="default" loading={busy} onClick={() => void test(values)}>
              {t(page.test.label)}
            </Button>
          )
        }
      />
    </>
  );
}
