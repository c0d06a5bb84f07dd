// A form by which users of a customer take a device as their own.

import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent, type ReactElement } from "react";
import { api, ApiError } from "@/api/client";
import { currentClaims } from "@/api/session";
import { useSession } from "@/app/session";
import { text, type Json } from "@/dashboard/model";
import { t } from "@/i18n";
import { messageOf } from "@/ui/feedback";
import type { WidgetProps } from "../registry";
import classes from "../widgets.module.css";

/** Returns why a device could not be claimed, in words of the settings where they have some. */
export function claimProblem(error: unknown, name: string, settings: Json = {}): string {
  const answer = error instanceof ApiError ? error : undefined;
  if (answer?.status === 404) {
    return text(settings["deviceNotFound"]) ?? t("There is no device {name}.", { name });
  }
  if (answer?.status === 400 && /CLAIMED/.test(answer.message)) {
    return t("Somebody has claimed {name} already.", { name });
  }
  return answer?.status === 400 && /FAILURE/.test(answer.message) ? (text(settings["failedClaimDevice"]) ?? t("{name} can't be claimed with this key, or not any more.", { name })) : messageOf(error);
}

export default function ClaimForm({ widget }: WidgetProps): ReactElement {
  return <Claiming settings={widget.settings} label={widget.title || t("Claim a device")} />;
}

export function Claiming({ settings, label }: { settings: Json; label: string }): ReactElement {
  const { authority } = useSession();
  const cache = useQueryClient();
  const [name, setName] = useState("");
  const [secret, setSecret] = useState("");
  const [busy, setBusy] = useState(false);
  const [result, setResult] = useState<{ text: string; failed: boolean }>();
  const hasSecret = settings["deviceSecret"] !== false;
  const claim = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setResult(undefined);
    try {
      await api.post(`/api/customer/device/${encodeURIComponent(name.trim())}/claim`, hasSecret ? { secretKey: secret } : {});
      setResult({ text: text(settings["successfulClaimDevice"]) ?? t("{name} is yours now.", { name }), failed: false });
      setName("");
      setSecret("");
      await cache.invalidateQueries({ queryKey: ["list"] });
    } catch (error) {
      setResult({ text: claimProblem(error, name, settings), failed: true });
    } finally {
      setBusy(false);
    }
  };
  if (authority !== "CUSTOMER_USER" || currentClaims()?.isPublic === true) {
    return <Text size="sm">{t("Users of a customer claim devices here; you see the form without its fields.")}</Text>;
  }
  return (
    <form className={classes["scroll"]} onSubmit={(event) => void claim(event)} aria-label={label}>
      <Stack gap="xs">
        <TextInput label={text(settings["deviceLabel"]) ?? t("Name of the device")} required value={name} onChange={(event) => setName(event.currentTarget.value)} />
        {hasSecret && <TextInput label={text(settings["secretKeyLabel"]) ?? t("Secret key")} required autoComplete="off" value={secret} onChange={(event) => setSecret(event.currentTarget.value)} />}
        {result !== undefined && (
          <Text role={result.failed ? "alert" : "status"} size="sm" {...(result.failed ? { c: "var(--mantine-color-error)" } : {})}>
            {result.text}
          </Text>
        )}
        <Group justify="end">
          <Button type="submit" loading={busy}>
            {text(settings["labelClaimButon"]) ?? t("Claim the device")}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
