// The images of a gallery as pictures beside each other.

import { Button, Card, Center, Image, SimpleGrid, Text, TextInput, UnstyledButton } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState, type ReactElement, type ReactNode } from "react";
import { api, type Query } from "@/api/client";
import type { PageData } from "@/api/types";
import { plural, t } from "@/i18n";
import { EmptyState, Problem, Waiting } from "@/ui/feedback";
import { useImage } from "@/ui/images";
import { versionOf, type StoredFile } from "./model";

const PAGE = 40;

function Picture({ file, onOpen }: { file: StoredFile; onOpen: () => void }): ReactElement {
  const { url } = useImage(versionOf(file, "/preview"));
  return (
    <UnstyledButton onClick={onOpen} aria-label={file.title}>
      <Card withBorder p="xs">
        <Center h={110}>{url !== undefined && <Image src={url} alt="" mah={110} fit="contain" />}</Center>
        <Text size="sm" truncate ta="center">
          {file.title}
        </Text>
      </Card>
    </UnstyledButton>
  );
}

export function ImageGrid({ query, filters, empty, onOpen }: { query: Query; filters: ReactNode; empty: string; onOpen: (file: StoredFile) => void }): ReactElement {
  const [search, setSearch] = useState("");
  const [wanted] = useDebouncedValue(search, 200);
  const pages = useInfiniteQuery({
    queryKey: ["list", "grid", query, wanted],
    initialPageParam: 0,
    queryFn: ({ pageParam }) => api.get<PageData<StoredFile>>("/api/images", { ...query, textSearch: wanted, pageSize: PAGE, page: pageParam, sortProperty: "createdTime", sortOrder: "DESC" }),
    getNextPageParam: (last, all) => (last.hasNext ? all.length : undefined),
  });
  const files = pages.data?.pages.flatMap((page) => page.data) ?? [];
  return (
    <>
      <TextInput aria-label={t("Search")} placeholder={t("Search")} maw={240} mb="sm" value={search} onChange={(event) => setSearch(event.currentTarget.value)} />
      {filters}
      <Text size="sm" role="status" my="xs">
        {pages.isPending ? "" : plural(pages.data?.pages[0]?.totalElements ?? 0, "{n} image", "{n} images")}
      </Text>
      {pages.isPending && <Waiting />}
      {pages.isError && <Problem error={pages.error} />}
      {!pages.isPending && !pages.isError && files.length === 0 && <EmptyState>{wanted === "" ? empty : t("Nothing matches the search.")}</EmptyState>}
      <SimpleGrid cols={{ base: 2, sm: 3, md: 4, xl: 6 }}>
        {files.map((file) => (
          <Picture key={file.id.id} file={file} onOpen={() => onOpen(file)} />
        ))}
      </SimpleGrid>
      {pages.hasNextPage && (
        <Button mt="md" variant="default" loading={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          {t("Show more")}
        </Button>
      )}
    </>
  );
}
