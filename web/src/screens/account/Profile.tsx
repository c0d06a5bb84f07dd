// Who one is: name, phone, language, units, and what the home screen shows.

import { Text, Title } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { api } from "@/api/client";
import type { Authority, Entity, User } from "@/api/types";
import { useSession } from "@/app/session";
import { ROLE_NAMES } from "@/entities/columns";
import { LANGUAGES, setLanguage, t, type Language } from "@/i18n";
import { notify, Problem, Waiting } from "@/ui/feedback";
import { AS_OPENED, FieldsForm } from "@/ui/FieldsForm";
import { valueAt, type FormField } from "@/ui/form/values";

/** Languages under the names that ThingsBoard stores. */
const LOCALES: Record<Language, string> = { en: "en_US", de: "de_DE" };

function fieldsFor(authority: Authority, customerId: string): FormField[] {
  const dashboards = authority === "CUSTOMER_USER" ? `/api/customer/${customerId}/dashboards` : "/api/tenant/dashboards";
  return [
    { name: "firstName", label: "First name" },
    { name: "lastName", label: "Last name" },
    { name: "phone", label: "Phone" },
    {
      name: "additionalInfo.lang", label: "Language", type: "select",
      options: Object.entries(LANGUAGES).map(([code, label]) => ({ value: LOCALES[code as Language], label })),
    },
    {
      name: "additionalInfo.unitSystem", label: "Units", type: "select", help: "For widgets that can show several",
      options: [
        { value: "AUTO", label: "As usual in my region" },
        { value: "METRIC", label: "Metric" },
        { value: "IMPERIAL", label: "Imperial" },
        { value: "HYBRID", label: "Hybrid" },
      ],
    },
    ...(authority === "SYS_ADMIN"
      ? []
      : ([
          { name: "additionalInfo.homeDashboardId", label: "Home shows this dashboard", type: "entity", list: dashboards, pick: "id", one: "/api/dashboard/info/" },
          {
            name: "additionalInfo.homeDashboardHideToolbar", label: "without its toolbar", type: "boolean", initial: true,
            when: (values) => (valueAt(values, "additionalInfo.homeDashboardId") ?? "") !== "",
          },
        ] satisfies FormField[])),
  ];
}

export default function Profile(): ReactElement {
  const { user, authority, customerId } = useSession();
  const cache = useQueryClient();
  const stored = useQuery({ queryKey: ["own profile"], queryFn: () => api.get<User & Entity>(`/api/user/${user.id.id}`), ...AS_OPENED });
  if (stored.isPending) {
    return <Waiting />;
  }
  if (stored.isError) {
    return <Problem error={stored.error} />;
  }
  return (
    <>
      <Title order={1} size="h2" mb="md">
        {t("Your profile")}
      </Title>
      <Text mb="md">
        {user.email} · {t(ROLE_NAMES[authority])}
      </Text>
      <FieldsForm
        key={stored.dataUpdatedAt}
        fields={fieldsFor(authority, customerId)}
        values={stored.data}
        action="Save"
        keep={{ name: "own profile" }}
        onSave={async (values) => {
          const saved = await api.post<User & Entity>("/api/user", values, { sendActivationMail: false });
          cache.setQueryData(["own profile"], saved);
          const chosen = Object.entries(LOCALES).find(([, locale]) => locale === saved.additionalInfo?.lang)?.[0];
          if (chosen !== undefined && saved.additionalInfo?.lang !== stored.data.additionalInfo?.lang) {
            await setLanguage(chosen as Language);
          }
          await Promise.all([cache.invalidateQueries({ queryKey: ["own user"] }), cache.invalidateQueries({ queryKey: ["home dashboard"] })]);
          notify.ok(t("Saved"));
        }}
      />
    </>
  );
}
