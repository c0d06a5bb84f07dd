// Search over screens, actions and entities from anywhere, by Ctrl+K.

import { Modal, NavLink, TextInput, useMantineColorScheme } from "@mantine/core";
import { useDebouncedValue, useHotkeys } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState, type KeyboardEvent, type ReactElement } from "react";
import { useLocation } from "wouter";
import { api } from "@/api/client";
import type { Entity, PageData } from "@/api/types";
import { KINDS, nameOf } from "@/entities/kinds";
import { t, useLanguage } from "@/i18n";
import { BROKER_PAGES } from "@/screens/broker/pages";
import { useAppearance } from "@/ui/appearance";
import { EmptyState, Problem } from "@/ui/feedback";
import { actionsFor, matches } from "./actions";
import { useBroker } from "./broker";
import { menuFor } from "./menu";
import { isSearchWished, takeSearchWish } from "./searchWish";
import { useSession } from "./session";

/** The most entities of a kind that are offered. */
const MOST = 4;

interface Offer {
  id: string;
  label: string;
  kind: string;
  /** Where it leads, or what it does. */
  path?: string;
  run?: () => void;
}

/** The chosen one stays in view when keys go through a long list. */
function showIt(element: HTMLButtonElement | null): void {
  element?.scrollIntoView({ block: "nearest" });
}

export function Palette({ opened, onOpen, onClose }: { opened: boolean; onOpen: () => void; onClose: () => void }): ReactElement {
  const { authority, customerId } = useSession();
  const [, go] = useLocation();
  const { colorScheme: scheme, setColorScheme } = useMantineColorScheme();
  const { contrast, density, direction } = useAppearance();
  const language = useLanguage();
  const broker = useBroker();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [wanted] = useDebouncedValue(text.trim(), 150);
  useHotkeys([["mod+K", onOpen]], []);
  useEffect(() => {
    if (isSearchWished()) {
      onOpen();
    } else {
      takeSearchWish();
    }
  }, [onOpen]);
  const found = useQuery({
    queryKey: ["palette", wanted],
    enabled: opened && wanted.length > 1,
    queryFn: async () => {
      const kinds = KINDS.filter((kind) => kind.list[authority] !== undefined);
      const pages = await Promise.all(
        kinds.map((kind) =>
          api.get<PageData<Entity>>((kind.list[authority] ?? "").replace("{customerId}", customerId), { pageSize: MOST, page: 0, textSearch: wanted }),
        ),
      );
      return pages.flatMap((page, n) => {
        const kind = kinds[n];
        return kind === undefined ? [] : page.data.map((row): Offer => ({ id: row.id.id, path: `${kind.path}/${row.id.id}`, label: nameOf(row), kind: kind.singular }));
      });
    },
  });
  const screens = [...menuFor(authority, broker.data).flatMap(({ items }) => items), ...(broker.data === true ? BROKER_PAGES.slice(1) : [])]
    .map((item): Offer => ({ id: item.path, path: item.path, label: t(item.label), kind: "Screen" }))
    .filter((offer) => matches(text.trim(), offer.label));
  const actions = actionsFor(authority, { scheme, contrast, density, direction, language }, setColorScheme)
    .filter((action) => matches(text.trim(), `${action.label} ${action.words}`))
    .map((action): Offer => ({ ...action, kind: "Action" }));
  const offers = [...screens, ...actions, ...(wanted.length > 1 ? (found.data ?? []) : [])];
  const take = (offer: Offer | undefined): void => {
    if (offer !== undefined) {
      onClose();
      setText("");
      offer.run?.();
      if (offer.path !== undefined) {
        go(offer.path);
      }
    }
  };
  const keys = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setAt((at + step + offers.length) % Math.max(1, offers.length));
    } else if (event.key === "Enter") {
      take(offers[at]);
    }
  };
  return (
    <Modal opened={opened} onClose={onClose} title={t("Search")} closeButtonProps={{ "aria-label": t("Close") }}>
      <TextInput
        data-autofocus
        aria-label={t("Search screens, actions, devices, dashboards and all else")}
        placeholder={t("Search screens, actions, devices, dashboards and all else")}
        value={text}
        // Until it has the keyboard, what was typed had no place to go to.
        onFocus={() => setText((before) => before + takeSearchWish())}
        onKeyDown={keys}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
      />
      {offers.map((offer, n) => (
        <NavLink key={offer.id} component="button" {...(n === at ? { ref: showIt } : {})} label={offer.label} description={t(offer.kind)} active={n === at} onClick={() => take(offer)} />
      ))}
      {found.isError && wanted.length > 1 && <Problem error={found.error} />}
      {offers.length === 0 && !found.isError && text.trim() !== "" && <EmptyState>{t(found.isFetching || wanted !== text.trim() ? "Loading" : "Nothing matches the search.")}</EmptyState>}
    </Modal>
  );
}
