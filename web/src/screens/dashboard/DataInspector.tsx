// What a widget has asked the server for, how long the answer took, what came, and why nothing did.

import { Stack, Text } from "@mantine/core";
import type { ReactElement } from "react";
import { whyEmpty } from "@/dashboard/emptiness";
import type { Datasource } from "@/dashboard/model";
import { useQuestions, whyNothing, type Question } from "@/dashboard/questions";
import { traceOf } from "@/dashboard/sharedSource";
import { useSources, type SourceRequest } from "@/dashboard/source";
import { SourceData } from "@/dashboard/sourceData";
import { t } from "@/i18n";
import { DataSection } from "./DataSection";
import { alarmRows, rowsOf } from "./rows";

interface InspectorProps {
  requests: readonly (SourceRequest | undefined)[];
  sources: Datasource[];
}

export default function DataInspector({ requests, sources }: InspectorProps): ReactElement {
  const values = useSources([...requests], sources);
  if (sources.length === 0) {
    return <Text>{t("This widget asks for nothing.")}</Text>;
  }
  return (
    <Stack>
      {values.map((one, n) => {
        const request = requests[n];
        const trace = request === undefined ? undefined : traceOf(JSON.stringify(request));
        return <DataSection key={n} title={t("Source {n}", { n: n + 1 })} trace={trace} came={one.entities.length} total={one.total} rows={rowsOf([one])} why={whyEmpty(one, request, trace?.answeredAt !== undefined)} />;
      })}
    </Stack>
  );
}

/** A tree asks once for each open node, so that there may be many; the latest are shown. */
const MOST_QUESTIONS = 20;

function rowsOfQuestion(question: Question): ReturnType<typeof rowsOf> {
  return question.isOfAlarms ? alarmRows(question.answer()) : rowsOf([{ entities: SourceData.read(question.answer()) }]);
}

/** The same of a widget that asks page by page: the pages that are in view. */
export function QuestionInspector({ widget }: { widget: string }): ReactElement {
  const questions = useQuestions(widget);
  const shown = questions.slice(-MOST_QUESTIONS);
  if (shown.length === 0) {
    return <Text>{t("Nothing is asked at present: no entity is chosen, or the widget is out of view.")}</Text>;
  }
  return (
    <Stack>
      {questions.length > shown.length && <Text size="sm">{t("The latest {n} of {total} questions", { n: shown.length, total: questions.length })}</Text>}
      {shown.map((question, n) => (
        <DataSection key={n} title={t("Question {n}", { n: questions.length - shown.length + n + 1 })} trace={question.trace} came={question.answer().length} total={question.total} rows={rowsOfQuestion(question)} why={whyNothing(question)} ofAlarms={question.isOfAlarms} />
      ))}
    </Stack>
  );
}
