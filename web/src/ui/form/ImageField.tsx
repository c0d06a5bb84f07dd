// Chooses a picture: from the gallery, or by its address.

import { Group, Image, Select, Stack, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { PageData } from "@/api/types";
import { t } from "@/i18n";
import { useImage } from "@/ui/images";

interface Picture {
  link: string;
  title: string;
}

/** Links in dashboards say by this that a picture is stored here. */
const STORED = "tb-image;";

interface ImageFieldProps {
  label: string;
  value: string;
  onChange: (link: string | null) => void;
}

export function ImageField({ label, value, onChange }: ImageFieldProps): ReactElement {
  const [search, setSearch] = useState("");
  const [wanted] = useDebouncedValue(search, 200);
  const found = useQuery({
    queryKey: ["pictures", wanted],
    retry: false,
    queryFn: () => api.get<PageData<Picture>>("/api/images", { pageSize: 30, page: 0, textSearch: wanted, includeSystemImages: true }),
  });
  const { url, failed } = useImage(value === "" ? undefined : value);
  const pictures = (found.data?.data ?? []).map(({ link, title }) => ({ value: STORED + link, label: title }));
  const chosen = pictures.some((one) => one.value === value) ? value : null;
  return (
    <Stack gap={6}>
      <Select
        label={label}
        placeholder={t("of the gallery")}
        searchable
        clearable
        clearButtonProps={{ "aria-label": t("Clear the choice") }}
        filter={({ options }) => options}
        nothingFoundMessage={t("Nothing matches the search.")}
        data={pictures}
        value={chosen}
        onSearchChange={setSearch}
        onChange={onChange}
      />
      <Group gap="xs" wrap="nowrap" align="end">
        <TextInput flex={1} label={t("or its address")} error={failed ? t("This picture can't be loaded.") : undefined} value={value} onChange={(event) => onChange(event.currentTarget.value || null)} />
        {url !== undefined && <Image src={url} alt={t("Preview")} h={48} w={72} fit="contain" />}
      </Group>
    </Stack>
  );
}
