// A question that code of a dashboard brings: its texts are shown as they are, and never as markup.

import { Button, Group, Modal, Text } from "@mantine/core";
import { useEffect, useState, type ReactElement } from "react";
import { t } from "@/i18n";
import { useQuestions, type Asked } from "@/sandbox/questions";

/** So long after it appeared a question takes no yes, milliseconds: a second click meant for the one before is none for this. */
const PAUSE_MS = 800;

function OneQuestion({ question: { kind, title, text, yes, no, answer } }: { question: Asked }): ReactElement {
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setReady(true), PAUSE_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <Modal opened onClose={() => answer(false)} zIndex={500} title={title || t("The dashboard asks")} closeButtonProps={{ "aria-label": t("Close") }}>
      <Text mb="xs" style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>
        {text}
      </Text>
      {kind !== "consent" && (
        <Text size="xs" c="var(--soft-text)" mb="md">
          {t("This text is from the dashboard. Never give it a password.")}
        </Text>
      )}
      <Group>
        <Button disabled={!isReady} onClick={() => answer(true)}>
          {yes}
        </Button>
        {no !== undefined && (
          <Button variant="default" data-autofocus onClick={() => answer(false)}>
            {no}
          </Button>
        )}
      </Group>
    </Modal>
  );
}

export default function QuestionDialog(): ReactElement | null {
  const question = useQuestions(({ asked }) => asked[0]);
  return question === undefined ? null : <OneQuestion key={question.id} question={question} />;
}
