// A button that takes a file and sends it, with its progress.

import { Button, FileButton, Group, Progress, type ButtonProps } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { upload, type Upload } from "@/api/upload";
import { t } from "@/i18n";
import { notify } from "./feedback";

interface Props<T> extends ButtonProps {
  label: string;
  accept?: string;
  /** Where the file goes; none to leave it. */
  to: (file: File) => Omit<Upload, "file" | "told"> | undefined;
  onDone: (answer: T) => void | Promise<void>;
}

export function UploadButton<T>({ label, accept, to, onDone, ...look }: Props<T>): ReactElement {
  const [percent, setPercent] = useState<number>();
  const send = async (file: File | null): Promise<void> => {
    const target = file === null ? undefined : to(file);
    if (file === null || target === undefined) {
      return;
    }
    setPercent(0);
    try {
      await onDone(await upload<T>({ ...target, file, told: setPercent }));
    } catch (error) {
      notify.error(error);
    } finally {
      setPercent(undefined);
    }
  };
  return (
    <Group gap="xs" wrap="nowrap">
      <FileButton onChange={(file) => void send(file)} {...(accept === undefined ? {} : { accept })}>
        {(props) => (
          <Button loading={percent !== undefined} {...look} {...props}>
            {label}
          </Button>
        )}
      </FileButton>
      {percent !== undefined && <Progress w={140} aria-label={t("Progress")} value={percent} />}
    </Group>
  );
}
