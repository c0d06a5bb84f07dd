// A screen of settings, made from its declaration.

import { Button, Modal, Select, Text, Title } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { ApiError, api } from "@/api/client";
import { saveTokens, type TokenPair } from "@/api/session";
import { t } from "@/i18n";
import { notify, Problem, Waiting } from "@/ui/feedback";
import { AS_OPENED, FieldsForm, type FormValues } from "@/ui/FieldsForm";
import { SETTINGS_FORMS, type SettingsForm } from "./forms";
import type { SettingsPage } from "./pages";

const NOTHING: SettingsForm = { fields: [] };

interface Stored extends FormValues {
  jsonValue?: FormValues;
}

/** An empty password is none that was given, so that the stored one stays. */
export function withoutEmptyPasswords(page: SettingsForm, values: FormValues): FormValues {
  const empty = page.fields.filter(({ type, name }) => type === "password" && (values[name] ?? "") === "").map(({ name }) => name);
  return Object.fromEntries(Object.entries(values).filter(([name]) => !empty.includes(name)));
}

/** Leaves out the values of fields that other values hide, such as those of another provider. */
export function onlyShown(page: SettingsForm, values: FormValues): FormValues {
  const shown = new Set(page.fields.filter((field) => field.when?.(values) ?? true).map(({ name }) => name));
  const hidden = new Set(page.fields.map(({ name }) => name).filter((name) => !shown.has(name) && !name.includes(".")));
  return Object.fromEntries(Object.entries(values).filter(([name]) => !hidden.has(name)));
}

function TestButton({ page, bodyOf, values }: { page: SettingsForm; bodyOf: (values: FormValues) => FormValues; values: FormValues }): ReactElement | null {
  const [asked, setAsked] = useState(false);
  const [busy, setBusy] = useState(false);
  const { test } = page;
  if (test === undefined) {
    return null;
  }
  const run = async (more: FormValues): Promise<void> => {
    setBusy(true);
    try {
      await api.post(test.path, test.body === undefined ? bodyOf(values) : test.body(withoutEmptyPasswords(page, onlyShown(page, values)), more));
      setAsked(false);
      notify.ok(t(test.done));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Button variant="default" loading={busy} onClick={() => (test.fields === undefined ? void run({}).catch(notify.error) : setAsked(true))}>
        {t(test.label)}
      </Button>
      <Modal opened={asked} onClose={() => setAsked(false)} title={t(test.label)} closeButtonProps={{ "aria-label": t("Close") }}>
        <FieldsForm fields={test.fields ?? []} values={{}} action="Send" onCancel={() => setAsked(false)} onSave={run} />
      </Modal>
    </>
  );
}

function Presets({ presets, change }: { presets: NonNullable<SettingsForm["presets"]>; change: (values: FormValues) => void }): ReactElement {
  const found = useQuery({ queryKey: ["presets", presets.path], queryFn: () => api.get<FormValues[]>(presets.path) });
  const rows = found.data ?? [];
  return (
    <Select
      w={260}
      aria-label={t(presets.label)}
      placeholder={t(presets.label)}
      value={null}
      data={rows.map((row, n) => ({ value: String(n), label: String(row["name"]) }))}
      onChange={(n) => change(presets.values(rows[Number(n)] ?? {}))}
    />
  );
}

export default function Settings({ page: { path: at, label } }: { page: SettingsPage }): ReactElement {
  const page = SETTINGS_FORMS[at] ?? NOTHING;
  const cache = useQueryClient();
  const path = page.endpoint ?? `/api/admin/settings/${page.key ?? ""}`;
  const stored = useQuery({
    queryKey: ["settings", path],
    ...AS_OPENED,
    queryFn: () =>
      api.get<Stored>(path).catch((error: unknown): Stored => {
        if (page.initial !== undefined && error instanceof ApiError && error.status === 404) {
          return { jsonValue: page.initial };
        }
        throw error;
      }),
  });
  if (stored.isPending) {
    return <Waiting />;
  }
  if (stored.isError) {
    return <Problem error={stored.error} />;
  }
  const bodyOf = (values: FormValues): FormValues => {
    const given = withoutEmptyPasswords(page, page.initial === undefined ? values : onlyShown(page, values));
    return page.endpoint === undefined ? { ...stored.data, key: page.key, jsonValue: given } : given;
  };
  const letIn = async (): Promise<void> => {
    location.assign(await api.get<string>(page.grant?.path ?? ""));
  };
  return (
    <>
      <Title order={1} size="h2" mb="md">
        {t(label)}
      </Title>
      {page.note !== undefined && <Text mb="md" maw={640}>{t(page.note)}</Text>}
      <FieldsForm
        key={stored.dataUpdatedAt}
        fields={page.fields}
        values={page.endpoint === undefined ? (stored.data.jsonValue ?? {}) : stored.data}
        action="Save"
        keep={{ name: `settings ${path}` }}
        onSave={async (values) => {
          const saved = await api.post<Stored | TokenPair | undefined>(page.endpoint ?? "/api/admin/settings", bodyOf(values));
          if (page.isSession === true) {
            saveTokens(saved as TokenPair);
          }
          await cache.invalidateQueries({ queryKey: ["settings", path] });
          notify.ok(t("Saved"));
        }}
        more={(values, change) => (
          <>
            <TestButton page={page} bodyOf={bodyOf} values={values} />
            {page.presets !== undefined && <Presets presets={page.presets} change={(given) => change((before) => ({ ...before, ...given }))} />}
            {page.grant?.when(values) === true && (
              <Button variant="default" onClick={() => void letIn().catch(notify.error)}>
                {t(page.grant.label)}
              </Button>
            )}
          </>
        )}
      />
    </>
  );
}
