// What the camera sees, until there is a code in it.

import { Text } from "@mantine/core";
import { useEffect, useRef, type ReactElement } from "react";
import { t } from "@/i18n";
import { cameraProblem } from "@/widgets/input/CameraInput";
import { codeDetector, type FoundCode } from "./device";

/** How often the picture is looked at, milliseconds. */
const EVERY_MS = 200;

interface Props {
  onFound: (code: FoundCode) => void;
  onFailure: (error: unknown) => void;
}

export function CodeScanner({ onFound, onFailure }: Props): ReactElement {
  const video = useRef<HTMLVideoElement>(null);
  const newest = useRef({ onFound, onFailure });
  newest.current = { onFound, onFailure };
  useEffect(() => {
    let stream: MediaStream | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let wanted = true;
    const detector = codeDetector();
    const look = async (): Promise<void> => {
      const [found] = video.current === null ? [] : ((await detector?.detect(video.current).catch(() => [])) ?? []);
      if (!wanted) {
        return;
      }
      if (found === undefined) {
        timer = setTimeout(() => void look(), EVERY_MS);
      } else {
        newest.current.onFound(found);
      }
    };
    const begin = async (): Promise<void> => {
      stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
      if (!wanted || video.current === null) {
        // Nobody sees this any more, and nothing else would turn the camera off.
        stream.getTracks().forEach((track) => track.stop());
        return;
      }
      video.current.srcObject = stream;
      await video.current.play();
      await look();
    };
    begin().catch((error: unknown) => wanted && newest.current.onFailure(new Error(cameraProblem(error))));
    return () => {
      wanted = false;
      clearTimeout(timer);
      stream?.getTracks().forEach((track) => track.stop());
    };
  }, []);
  return (
    <>
      <video ref={video} muted playsInline aria-label={t("What the camera sees")} style={{ width: "100%", maxHeight: "60vh", background: "#000" }} />
      <Text size="sm">{t("Hold the code before the camera.")}</Text>
    </>
  );
}
