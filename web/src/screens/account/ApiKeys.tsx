// Keys of a user, with which programs call the API in the user's name.

import { Alert, Button, Code, CopyButton, Group, Modal, Switch, Table, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import type { ApiKeyInfo } from "@/api/schema.gen";
import { ask } from "@/api/typed";
import type { EntityId } from "@/api/types";
import { formatTime, t } from "@/i18n";
import { EmptyState, notify, Problem, Waiting } from "@/ui/feedback";
import { FieldsForm } from "@/ui/FieldsForm";
import { Flow } from "@/ui/Flow";
import type { FormField } from "@/ui/form/values";

/** More keys than these nobody keeps track of; older ones stay valid and are shown when newer ones are deleted. */
const SHOWN = 100;
const DAY_MS = 86_400_000;

const NEW_KEY: readonly FormField[] = [
  { name: "description", label: "What it is for", required: true },
  {
    name: "days", label: "Valid for", type: "select", required: true, initial: "90",
    options: [
      { value: "7", label: "A week" },
      { value: "30", label: "30 days" },
      { value: "90", label: "90 days" },
      { value: "365", label: "A year" },
      { value: "0", label: "For ever" },
    ],
  },
];
const DESCRIPTION: readonly FormField[] = [{ name: "description", label: "What it is for", required: true }];

function NewKey({ value, onClose }: { value: string; onClose: () => void }): ReactElement {
  return (
    <Modal opened onClose={onClose} title={t("The new key")} closeButtonProps={{ "aria-label": t("Close") }}>
      <Alert color="yellow" mb="sm">{t("Copy it now: it is not shown again. Whoever has it acts in your name.")}</Alert>
      <Code block data-api-key>
        {value}
      </Code>
      <CopyButton value={value}>
        {({ copied, copy }) => (
          <Button mt="sm" onClick={copy}>
            {t(copied ? "Copied" : "Copy")}
          </Button>
        )}
      </CopyButton>
      <Text size="sm" mt="sm">{t("Programs send it with each request:")}</Text>
      <Code block>X-Authorization: ApiKey …</Code>
    </Modal>
  );
}

function KeyRow({ apiKey, changed, describe }: { apiKey: ApiKeyInfo; changed: () => Promise<void>; describe: () => void }): ReactElement {
  const [asked, setAsked] = useState(false);
  const act = (work: Promise<unknown>): void => void work.then(changed, notify.error);
  const name = apiKey.description || apiKey.id.id;
  return (
    <Table.Tr>
      <Table.Td>{apiKey.description}</Table.Td>
      <Table.Td data-label={t("Created")}>{formatTime(apiKey.createdTime)}</Table.Td>
      <Table.Td data-label={t("Ends")}>{apiKey.expired ? t("expired") : apiKey.expirationTime === 0 ? t("never") : formatTime(apiKey.expirationTime)}</Table.Td>
      <Table.Td>
        <Switch
          aria-label={t("{name} works", { name })}
          checked={apiKey.enabled && !apiKey.expired}
          disabled={apiKey.expired}
          onChange={(event) => act(ask("PUT /api/apiKey/{apiKeyId}/enabled/{enabledValue}", { path: { apiKeyId: apiKey.id.id, enabledValue: event.currentTarget.checked } }))}
        />
      </Table.Td>
      <Table.Td>
        <Group gap={4} wrap="nowrap">
          <Button size="compact-xs" variant="subtle" aria-label={t("Change {name}", { name })} onClick={describe}>
            {t("Change")}
          </Button>
          <Button size="compact-xs" variant="subtle" color="red" aria-label={t("Delete {name}", { name })} onClick={() => setAsked(true)}>
            {t("Delete")}
          </Button>
        </Group>
        <Modal opened={asked} onClose={() => setAsked(false)} title={t("Delete {name} for good?", { name })} closeButtonProps={{ "aria-label": t("Close") }}>
          <Text mb="md">{t("Programs that use it are refused from now on.")}</Text>
          <Button color="red" onClick={() => act(ask("DELETE /api/apiKey/{apiKeyId}", { path: { apiKeyId: apiKey.id.id } }))}>
            {t("Delete")}
          </Button>
        </Modal>
      </Table.Td>
    </Table.Tr>
  );
}

export function ApiKeys({ userId }: { userId: EntityId }): ReactElement {
  const cache = useQueryClient();
  const [adding, setAdding] = useState(false);
  const [described, setDescribed] = useState<ApiKeyInfo>();
  const [value, setValue] = useState<string>();
  const keys = useQuery({
    queryKey: ["api keys", userId.id],
    queryFn: () => ask("GET /api/apiKeys/{userId}", { path: { userId: userId.id }, query: { pageSize: SHOWN, page: 0, sortProperty: "createdTime", sortOrder: "DESC" } }),
  });
  const changed = async (): Promise<void> => {
    await cache.invalidateQueries({ queryKey: ["api keys"] });
  };
  if (keys.isPending) {
    return <Waiting />;
  }
  if (keys.isError) {
    return <Problem error={keys.error} />;
  }
  return (
    <>
      <Group>
        <Button onClick={() => setAdding(true)}>{t("Add an API key")}</Button>
      </Group>
      {keys.data.data.length === 0 ? (
        <EmptyState>{t("No keys yet. With a key a program calls the API without your password.")}</EmptyState>
      ) : (
        <Flow>
          <Table aria-label={t("API keys")}>
            <Table.Thead>
              <Table.Tr>
                {["What it is for", "Created", "Ends", "Works", "Actions"].map((label) => (
                  <Table.Th key={label}>{t(label)}</Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {keys.data.data.map((apiKey) => (
                <KeyRow key={apiKey.id.id} apiKey={apiKey} changed={changed} describe={() => setDescribed(apiKey)} />
              ))}
            </Table.Tbody>
          </Table>
        </Flow>
      )}
      <Modal opened={adding} onClose={() => setAdding(false)} title={t("Add an API key")} closeButtonProps={{ "aria-label": t("Close") }}>
        <FieldsForm
          fields={NEW_KEY}
          values={{}}
          action="Add"
          onCancel={() => setAdding(false)}
          onSave={async ({ description, days }) => {
            const expirationTime = Number(days) === 0 ? 0 : Date.now() + Number(days) * DAY_MS;
            const made = await ask("POST /api/apiKey", { body: { userId, description, enabled: true, expirationTime } });
            setAdding(false);
            setValue(made.value ?? "");
            await changed();
          }}
        />
      </Modal>
      <Modal opened={described !== undefined} onClose={() => setDescribed(undefined)} title={t("What it is for")} closeButtonProps={{ "aria-label": t("Close") }}>
        <FieldsForm
          fields={DESCRIPTION}
          values={{ description: described?.description }}
          action="Save"
          onSave={async ({ description }) => {
            await ask("PUT /api/apiKey/{apiKeyId}/description", { path: { apiKeyId: described?.id.id ?? "" }, body: description });
            setDescribed(undefined);
            await changed();
          }}
        />
      </Modal>
      {value !== undefined && <NewKey value={value} onClose={() => setValue(undefined)} />}
    </>
  );
}
