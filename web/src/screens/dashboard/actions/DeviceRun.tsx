// An action that asks something of the device: a photo, the position, a call. Nothing is taken without a click on what says it.

import { Button, FileButton, Group, Modal, Stack, Text } from "@mantine/core";
import { useEffect, useRef, useState, type ReactElement, type ReactNode } from "react";
import { useSession } from "@/app/session";
import { object, type Json } from "@/dashboard/json";
import { mapAddress, mobileCall, phoneAddress, phoneFrom, placeFrom, readMobile, type MobileFunction } from "@/dashboard/mobile";
import { t } from "@/i18n";
import { messageOf, notify } from "@/ui/feedback";
import { dataUrlOf, toGallery } from "@/widgets/input/pictures";
import type { Call, Job } from "./ActionHost";
import { CodeScanner } from "./CodeScanner";
import { canDo, position, screenshot, smallPicture } from "./device";

/** What a function of the action has said that it is about. */
interface Target {
  text: string;
  address: string;
}

interface Props {
  job: Job;
  onCode: (job: Omit<Job, "id">) => void;
  onEnd: () => void;
}

export default function DeviceRun({ job, onCode, onEnd }: Props): ReactElement | null {
  const { action, entity, origin } = job;
  const { authority } = useSession();
  const [mobile] = useState(() => readMobile(action.mobile));
  const [target, setTarget] = useState<Target>();
  const [busy, setBusy] = useState(false);
  const begun = useRef(false);
  const over = useRef(false);
  const type = mobile?.type;
  const isLaunch = type === "makePhoneCall" || type === "mapDirection" || type === "mapLocation";

  /** Calls a function of the action, if it has it. */
  const run = (name: MobileFunction, values?: Json, more: Partial<Call> = {}, extra?: Json): boolean => {
    const call = mobile === undefined ? undefined : mobileCall(mobile, name, values);
    if (call !== undefined) {
      onCode({ action, entity, origin: extra === undefined ? origin : { ...origin, extra: { ...object(origin.extra), ...extra } }, call: { ...call, ...more } });
    }
    return call !== undefined;
  };
  /** Ends this with what the last function does; whatever comes after that comes too late. */
  const finish = (last: () => void): void => {
    if (!over.current) {
      over.current = true;
      last();
      onEnd();
    }
  };
  const fail = (error: unknown): void =>
    finish(() => {
      if (!run("handleErrorFunction", { error: messageOf(error) })) {
        notify.error(new Error(`${action.name}: ${messageOf(error)}`));
      }
    });
  const tried = (attempt: () => Promise<void>): void => {
    setBusy(true);
    attempt().catch(fail);
  };
  const giveUp = (): void => finish(() => run("handleEmptyResultFunction"));

  const ask = (): void => {
    if (mobile === undefined || type === undefined || !canDo(type)) {
      finish(() => {
        notify.error(new Error(t("“{name}” needs what this browser can't do here. It is an action for the mobile app.", { name: action.name })));
        run("handleNonMobileFallbackFunction");
      });
    } else if (isLaunch) {
      const take = (value: unknown): void => {
        try {
          const phone = type === "makePhoneCall" ? phoneFrom(value) : undefined;
          const place = type === "makePhoneCall" ? undefined : placeFrom(value);
          setTarget(phone !== undefined ? { text: phone, address: phoneAddress(phone) } : { text: place?.join(", ") ?? "", address: place === undefined ? "" : mapAddress(type === "mapDirection" ? type : "mapLocation", place) });
        } catch (error) {
          fail(error);
        }
      };
      if (!run(type === "makePhoneCall" ? "getPhoneNumberFunction" : "getLocationFunction", {}, { onResult: take, onFailure: (message) => fail(new Error(message)) })) {
        take(undefined);
      }
    }
  };
  const first = useRef(ask);
  useEffect(() => {
    if (!begun.current) {
      begun.current = true;
      first.current();
    }
  }, []);

  const takePicture = (picture: Blob): Promise<void> =>
    (async () => {
      const imageUrl = await dataUrlOf(picture);
      // Only administrators have a gallery to write to.
      const link = mobile?.saveToGallery === true && authority === "TENANT_ADMIN" ? await toGallery(picture, action.name, false) : undefined;
      finish(() => run("processImageFunction", { imageUrl }, {}, link === undefined ? {} : { imageInfo: { link } }));
    })();
  const choose = (file: File | null): void => {
    if (file !== null) {
      tried(async () => takePicture(await smallPicture(file)));
    }
  };
  const shoot = (): void => tried(async () => takePicture(await screenshot()));
  const locate = (): void =>
    tried(async () => {
      const { latitude, longitude } = await position();
      finish(() => run("processLocationFunction", { latitude, longitude }));
    });

  if (type === undefined || type === "deviceProvision" || (isLaunch && target === undefined) || (type === "takeScreenshot" && busy)) {
    return null;
  }
  const picker = (label: string, capture: boolean): ReactNode => (
    <FileButton accept="image/*" {...(capture ? { capture: "environment" } : {})} onChange={choose}>
      {(props) => (
        <Button {...props} loading={busy} data-autofocus>
          {t(label)}
        </Button>
      )}
    </FileButton>
  );
  const launch = (label: string): ReactNode => (
    <Button component="a" href={target?.address} {...(type === "makePhoneCall" ? {} : { target: "_blank" })} rel="noopener noreferrer" data-autofocus onClick={() => finish(() => run("processLaunchResultFunction", { launched: true }))}>
      {t(label)}
    </Button>
  );
  const asked: Record<typeof type, { words: string; button: ReactNode }> = {
    takePhoto: { words: "The dashboard gets the photo that you take.", button: picker("Take a photo", true) },
    takePictureFromGallery: { words: "The dashboard gets the picture that you choose.", button: picker("Choose a picture", false) },
    takeScreenshot: { words: "The dashboard gets a picture of the part of your screen that you choose.", button: <Button data-autofocus onClick={shoot}>{t("Choose what to show")}</Button> },
    getLocation: { words: "The dashboard gets to know where you are.", button: <Button data-autofocus loading={busy} onClick={locate}>{t("Tell where I am")}</Button> },
    scanQrCode: { words: "", button: null },
    makePhoneCall: { words: "Your device calls this number:", button: launch("Call") },
    mapLocation: { words: "A map of OpenStreetMap shows this place:", button: launch("Show the place") },
    mapDirection: { words: "A map of OpenStreetMap shows the way to this place:", button: launch("Show the way") },
  };
  const { words, button } = asked[type];
  return (
    <Modal opened onClose={giveUp} title={action.name} closeButtonProps={{ "aria-label": t("Close") }}>
      <Stack gap="sm">
        {words !== "" && <Text>{t(words)}</Text>}
        {target !== undefined && <Text fw={600}>{target.text}</Text>}
        {type === "scanQrCode" && <CodeScanner onFound={({ rawValue, format }) => finish(() => run("processQrCodeFunction", { code: rawValue, format: format.toUpperCase() }))} onFailure={fail} />}
        <Group gap="xs">
          {button}
          <Button variant="default" onClick={giveUp}>
            {t("Cancel")}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
