// A button that takes a JSON file which somebody has saved before.

import { Button, FileButton } from "@mantine/core";
import { useRef, type ReactElement } from "react";
import { t } from "@/i18n";
import { notify } from "./feedback";

interface Props {
  label?: string;
  /** Takes the text of the file; what it throws is told. */
  take: (text: string) => Promise<void>;
}

export function ImportButton({ label = t("Import"), take }: Props): ReactElement {
  const reset = useRef<() => void>(null);
  const bringIn = async (file: File | null): Promise<void> => {
    try {
      if (file !== null) {
        await take(await file.text());
      }
    } catch (error) {
      notify.error(error instanceof SyntaxError ? new Error("This file is no JSON.") : error);
    } finally {
      // The same file may be chosen again: otherwise nothing would have changed.
      reset.current?.();
    }
  };
  return (
    <FileButton resetRef={reset} accept="application/json" onChange={(file) => void bringIn(file)}>
      {(props) => (
        <Button variant="default" {...props}>
          {label}
        </Button>
      )}
    </FileButton>
  );
}
