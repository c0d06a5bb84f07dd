// A quiet word in the frame of all screens when something is throttled or lags behind.

import { Anchor, Box } from "@mantine/core";
import type { ReactElement } from "react";
import { Link, useLocation } from "wouter";
import { plural } from "@/i18n";
import { useOverload } from "@/screens/overload/useOverload";
import { useSession } from "./session";

/** Nobody waits for it, so it is asked for seldom, milliseconds. */
const EVERY_MS = 15_000;

export function OverloadHint(): ReactElement | null {
  const { authority } = useSession();
  const [path] = useLocation();
  const isWanted = authority !== "CUSTOMER_USER" && path !== "/overload";
  const overload = useOverload(EVERY_MS, isWanted);
  const active = overload.data?.entries.filter((entry) => entry.active).length ?? 0;
  return !isWanted || active === 0 ? null : (
    <Box role="status" miw={0}>
      <Anchor component={Link} href="/overload" display="block" size="sm" truncate px="xs" py={4} bg="var(--mantine-color-yellow-light)" style={{ borderRadius: 6 }}>
        {plural(active, "Overload: {n}", "Overload: {n}")}
      </Anchor>
    </Box>
  );
}
