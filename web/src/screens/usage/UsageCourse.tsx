// The course of the usage, drawn with the charts of dashboards.

import { SegmentedControl, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, type ReactElement } from "react";
import { useSearchParams } from "wouter";
import { api } from "@/api/client";
import { t, useLanguage } from "@/i18n";
import { DashboardView } from "@/screens/dashboard/DashboardView";
import { Problem, Waiting } from "@/ui/feedback";
import { STEPS, usageDashboard } from "./course";

export default function UsageCourse(): ReactElement {
  const [search, setSearch] = useSearchParams();
  const language = useLanguage();
  const step = STEPS.find(({ value }) => value === search.get("step"))?.value ?? "hours";
  // The limits alone are needed: figures that count on would draw all charts anew.
  const figures = useQuery({ queryKey: ["usage limits"], staleTime: Infinity, queryFn: () => api.get<Record<string, number | null>>("/api/usage") });
  const configuration = useMemo(() => (figures.data === undefined ? undefined : usageDashboard(step, t, figures.data)), [step, figures.data, language]);
  if (figures.isError) {
    return <Problem error={figures.error} />;
  }
  if (configuration === undefined) {
    return <Waiting />;
  }
  return (
    <DashboardView
      key={step}
      id="usage"
      name={t("API usage")}
      title={
        <Title order={2} size="h4">
          {t("The course")}
        </Title>
      }
      configuration={configuration}
      tools={
        <SegmentedControl
          aria-label={t("Steps of the course")}
          value={step}
          // A window that was chosen belongs to the steps that it was chosen for.
          onChange={(next) => setSearch(next === "hours" ? {} : { step: next })}
          data={STEPS.map(({ value, label }) => ({ value, label: t(label) }))}
        />
      }
    />
  );
}
