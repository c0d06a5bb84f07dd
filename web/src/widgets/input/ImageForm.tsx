// A picture from a file, saved into an attribute.

import { Button, FileButton, Group } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { currentClaims } from "@/api/session";
import { latestOf } from "@/dashboard/source";
import { t } from "@/i18n";
import { EmptyState } from "@/ui/feedback";
import { useImage } from "@/ui/images";
import { reasonOf } from "../control/rpc";
import { saveValues } from "../control/useControl";
import type { WidgetProps } from "../registry";
import { dataUrlOf, isPicture, MOST_BYTES } from "./pictures";
import classes from "./input.module.css";

export default function ImageForm({ widget, sources, entities }: WidgetProps): ReactElement {
  const { settings, fqn } = widget;
  const entity = entities[0];
  const key = sources[0]?.source.dataKeys[0];
  const [chosen, setChosen] = useState<string>();
  const stored = entity === undefined || key === undefined ? "" : (latestOf(entity, key)?.value ?? "");
  const { url } = useImage(chosen ?? (stored === "" ? undefined : stored));
  const [state, setState] = useState<{ saving: boolean; done: boolean; problem: string | undefined }>({ saving: false, done: false, problem: undefined });
  if (entity === undefined || key === undefined) {
    return <EmptyState>{t(entity === undefined ? "No entity is chosen for this." : "This form has no keys yet.")}</EmptyState>;
  }
  const isVisitor = currentClaims()?.isPublic === true;
  const save = async (value: string): Promise<void> => {
    setState({ saving: true, done: false, problem: undefined });
    try {
      await saveValues(entity.id, fqn.includes("_shared_") ? "SHARED_SCOPE" : "SERVER_SCOPE", { [key.name]: value });
      setState({ saving: false, done: true, problem: undefined });
      setChosen(undefined);
    } catch (error) {
      setState({ saving: false, done: false, problem: reasonOf(error, entity.name) });
    }
  };
  const take = async (file: File | null): Promise<void> => {
    if (file === null) {
      return;
    }
    if (file.size > MOST_BYTES) {
      setState({ saving: false, done: false, problem: t("The picture has {n} kB; an attribute takes {most} kB.", { n: Math.ceil(file.size / 1_000), most: MOST_BYTES / 1_000 }) });
      return;
    }
    const value = await dataUrlOf(file);
    setState({ saving: false, done: false, problem: isPicture(value) ? undefined : t("This file is no picture that a browser shows.") });
    if (isPicture(value)) {
      setChosen(value);
      if (settings["displayApplyButton"] === false) {
        await save(value);
      }
    }
  };
  return (
    <div className={classes["form"]} aria-busy={state.saving}>
      {settings["displayPreview"] !== false && (
        <div className={classes["picture"]}>
          {url !== undefined ? <img src={url} alt={t("{key} of {name}", { key: key.label, name: entity.name })} /> : <EmptyState>{t("There is no picture yet.")}</EmptyState>}
        </div>
      )}
      {state.problem !== undefined && <p role="alert" className={classes["problem"]}>{t("Not saved: {problem}", { problem: state.problem })}</p>}
      {isVisitor ? (
        <p className={classes["note"]}>{t("Visitors of a public link see this and change nothing.")}</p>
      ) : (
        <Group gap="xs" className={classes["buttons"] ?? ""}>
          {state.done && settings["showResultMessage"] !== false && <span role="status" className={classes["note"]}>{t("Saved")}</span>}
          {settings["displayClearButton"] === true && stored !== "" && (
            <Button size="compact-sm" variant="default" onClick={() => void save("")}>
              {t("Remove the picture")}
            </Button>
          )}
          <FileButton accept="image/png,image/jpeg,image/gif,image/webp,image/svg+xml" onChange={(file) => void take(file)}>
            {(props) => (
              <Button size="compact-sm" variant="default" {...props}>
                {t("Choose a picture")}
              </Button>
            )}
          </FileButton>
          {settings["displayDiscardButton"] !== false && (
            <Button size="compact-sm" variant="default" disabled={chosen === undefined} onClick={() => setChosen(undefined)}>
              {t("Undo")}
            </Button>
          )}
          {settings["displayApplyButton"] !== false && (
            <Button size="compact-sm" loading={state.saving} disabled={chosen === undefined} onClick={() => void save(chosen ?? "")}>
              {t("Save")}
            </Button>
          )}
        </Group>
      )}
    </div>
  );
}
