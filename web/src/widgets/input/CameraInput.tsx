// A photo from the camera of this computer or phone, saved as a value of an entity.

import { Button, Group } from "@mantine/core";
import { useEffect, useRef, useState, type ReactElement } from "react";
import { currentClaims } from "@/api/session";
import { useSession } from "@/app/session";
import { latestOf } from "@/dashboard/source";
import { t } from "@/i18n";
import { EmptyState } from "@/ui/feedback";
import { useImage } from "@/ui/images";
import { reasonOf } from "../control/rpc";
import { saveValues } from "../control/useControl";
import type { WidgetProps } from "../registry";
import { dataUrlOf, fitted, readCamera, toGallery } from "./pictures";
import classes from "./input.module.css";

/** Returns why there is no camera here, in words of what can be done. */
export function cameraProblem(error: unknown): string {
  const name = error instanceof Error ? error.name : "";
  if (name === "NotAllowedError") {
    return t("The browser may not use the camera. Allow it beside the address of the page.");
  }
  return name === "NotFoundError" || name === "OverconstrainedError" ? t("This computer has no camera.") : t("The camera can't be used: {problem}", { problem: error instanceof Error ? error.message : String(error) });
}

interface Photo {
  blob: Blob;
  url: string;
}

export default function CameraInput({ widget, sources, entities }: WidgetProps): ReactElement {
  const settings = readCamera(widget.settings);
  const { authority } = useSession();
  const entity = entities[0];
  const key = sources[0]?.source.dataKeys[0];
  const stored = entity === undefined || key === undefined ? "" : (latestOf(entity, key)?.value ?? "");
  const { url: kept } = useImage(stored === "" ? undefined : stored);
  const video = useRef<HTMLVideoElement>(null);
  const shown = useRef(true);
  const [stream, setStream] = useState<MediaStream>();
  const [photo, setPhoto] = useState<Photo>();
  const [problem, setProblem] = useState<string>();
  const [saving, setSaving] = useState(false);
  useEffect(() => {
    if (video.current !== null && stream !== undefined) {
      video.current.srcObject = stream;
    }
    return () => stream?.getTracks().forEach((track) => track.stop());
  }, [stream]);
  useEffect(() => {
    shown.current = true;
    return () => {
      shown.current = false;
    };
  }, []);
  if (entity === undefined || key === undefined) {
    return <EmptyState>{t(entity === undefined ? "No entity is chosen for this." : "This form has no keys yet.")}</EmptyState>;
  }
  const isVisitor = currentClaims()?.isPublic === true;
  const open = async (): Promise<void> => {
    setProblem(undefined);
    if (!isSecureContext || navigator.mediaDevices === undefined) {
      setProblem(t("Browsers give a camera only to pages that came over HTTPS."));
      return;
    }
    try {
      const opened = await navigator.mediaDevices.getUserMedia({ video: true });
      if (shown.current) {
        setStream(opened);
      } else {
        // Nobody sees this any more, and nothing else would turn the camera off.
        opened.getTracks().forEach((track) => track.stop());
      }
    } catch (error) {
      setProblem(cameraProblem(error));
    }
  };
  const shoot = (): void => {
    const from = video.current;
    if (from === null) {
      return;
    }
    const canvas = document.createElement("canvas");
    Object.assign(canvas, fitted(from.videoWidth, from.videoHeight, settings.maxWidth, settings.maxHeight));
    canvas.getContext("2d")?.drawImage(from, 0, 0, canvas.width, canvas.height);
    canvas.toBlob(
      (blob) => {
        if (blob !== null) {
          void dataUrlOf(blob).then((url) => setPhoto({ blob, url }));
          setStream(undefined);
        }
      },
      settings.imageFormat,
      settings.imageQuality,
    );
  };
  const save = async ({ blob, url }: Photo): Promise<void> => {
    setSaving(true);
    setProblem(undefined);
    try {
      // Only administrators have a gallery to write to; photos of all others stay with the entity.
      const isGallery = settings.toGallery && authority === "TENANT_ADMIN";
      const value = isGallery ? await toGallery(blob, `${entity.name} ${key.label}`, settings.isPublic) : url;
      await saveValues(entity.id, key.type === "timeseries" ? undefined : "SERVER_SCOPE", { [key.name]: value });
      setPhoto(undefined);
    } catch (error) {
      setProblem(t("Not saved: {problem}", { problem: reasonOf(error, entity.name) }));
    } finally {
      setSaving(false);
    }
  };
  return (
    <div className={classes["form"]} aria-busy={saving}>
      <div className={classes["picture"]}>
        {stream !== undefined ? (
          <video ref={video} autoPlay muted playsInline aria-label={t("What the camera sees")} />
        ) : photo !== undefined ? (
          <img src={photo.url} alt={t("The photo that was taken")} />
        ) : kept !== undefined ? (
          <img src={kept} alt={t("{key} of {name}", { key: key.label, name: entity.name })} />
        ) : (
          <EmptyState>{stored === "" ? t("There is no picture yet.") : t("Stored: {value}", { value: stored.slice(0, 200) })}</EmptyState>
        )}
      </div>
      {problem !== undefined && <p role="alert" className={classes["problem"]}>{problem}</p>}
      {isVisitor ? (
        <p className={classes["note"]}>{t("Visitors of a public link see this and change nothing.")}</p>
      ) : (
        <Group gap="xs" className={classes["buttons"] ?? ""}>
          {stream !== undefined ? (
            <>
              <Button size="compact-sm" variant="default" onClick={() => setStream(undefined)}>{t("Cancel")}</Button>
              <Button size="compact-sm" onClick={shoot}>{t("Take a photo")}</Button>
            </>
          ) : photo !== undefined ? (
            <>
              <Button size="compact-sm" variant="default" onClick={() => setPhoto(undefined)}>{t("Discard")}</Button>
              <Button size="compact-sm" loading={saving} onClick={() => void save(photo)}>{t("Save")}</Button>
            </>
          ) : (
            <Button size="compact-sm" variant="default" onClick={() => void open()}>{t("Open the camera")}</Button>
          )}
        </Group>
      )}
    </div>
  );
}
