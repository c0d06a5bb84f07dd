// A button that takes a JSON file which somebody has saved before.

import { Button, FileButton } from "@mantine/core";
import type { ReactElement } from "react";
import { t } from "@/i18n";
import { notify } from "./feedback";

interface Props {
  label?: string;
  /** Takes the text of the file; what it throws is told. */
  take: (text: string) => Promise<void>;
}

export function ImportButton({ label = t("Import"), take }: Props): ReactElement {
  const bringIn = async (file: File | null): Promise<void> => {
    try {
      if (file !== null) {
        await take(await file.text());
      }
    } catch (error) {
      notify.error(error instanceof SyntaxError ? new Error("This file is no JSON.") : error);
    }
  };
  return (
    <FileButton accept="application/json" onChange={(file) => void bringIn(file)}>
      {(props) => (
        <Button variant="default" {...props}>
          {label}
        </Button>
      )}
    </FileButton>
  );
}
