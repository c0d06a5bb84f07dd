// The gallery of images or SCADA symbols.

import { Badge, Checkbox, Group, Image, SegmentedControl, Title } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import { useSession } from "@/app/session";
import { formatTime, t } from "@/i18n";
import { DataTable, type Column } from "@/ui/list/DataTable";
import { useImage } from "@/ui/images";
import { ImportButton } from "@/ui/ImportButton";
import { UploadButton } from "@/ui/UploadButton";
import { sizeText } from "@/ui/size";
import { ImageDrawer } from "./ImageDrawer";
import { ImageGrid } from "./ImageGrid";
import { isOfSystem, versionOf, type Gallery, type StoredFile } from "./model";

function Thumbnail({ file }: { file: StoredFile }): ReactElement {
  const { url } = useImage(versionOf(file, "/preview"));
  return <Image src={url ?? null} alt="" w={36} h={28} fit="contain" style={{ visibility: url === undefined ? "hidden" : "visible" }} />;
}

const COLUMNS: Column<StoredFile>[] = [
  { key: "preview", label: "Preview", px: 80, least: 70, whole: true, text: () => "", show: (row) => <Thumbnail file={row} /> },
  { key: "title", label: "Title", px: 260, least: 140, sortable: true, text: (row) => row.title },
  { key: "resolution", label: "Size in pixels", px: 126, least: 110, text: ({ descriptor }) => ((descriptor?.width ?? 0) > 0 ? `${descriptor?.width} × ${descriptor?.height}` : "") },
  { key: "size", label: "Size", px: 90, least: 80, text: ({ descriptor }) => sizeText(descriptor?.size) },
  { key: "mediaType", label: "Type", px: 130, least: 100, text: ({ descriptor }) => descriptor?.mediaType ?? "" },
  { key: "public", label: "Public", px: 90, least: 80, text: (row) => (row.public === true ? t("Yes") : "") },
  { key: "system", label: "Of the installation", px: 156, least: 100, text: (row) => (isOfSystem(row) ? t("Yes") : ""), show: (row) => (isOfSystem(row) ? <Badge variant="outline">{t("Yes")}</Badge> : "") },
  { key: "createdTime", label: "Created", px: 200, least: 184, whole: true, sortable: true, text: (row) => formatTime(row.createdTime), value: (row) => row.createdTime },
];

export default function Images({ gallery }: { gallery: Gallery }): ReactElement {
  const { authority } = useSession();
  const cache = useQueryClient();
  const [opened, setOpened] = useState<StoredFile>();
  const [withSystem, setWithSystem] = useState(false);
  const [view, setView] = useLocalStorage<"list" | "grid">({ key: "fieldline_images", defaultValue: "list" });
  const query = { imageSubType: gallery.subType, includeSystemImages: authority === "SYS_ADMIN" || withSystem };
  const filters = authority === "TENANT_ADMIN" && (
    <Checkbox label={t("Those of the installation, too")} checked={withSystem} onChange={(event) => setWithSystem(event.currentTarget.checked)} />
  );
  const refresh = (): Promise<void> => cache.invalidateQueries({ queryKey: ["list"] });
  const bringIn = async (text: string): Promise<void> => {
    setOpened(await api.put<StoredFile>("/api/image/import", JSON.parse(text)));
    await refresh();
  };
  return (
    <>
      <Group justify="space-between" mb="md">
        <Title order={1} size="h2">
          {t(gallery.label)}
        </Title>
        <Group gap="xs">
          <SegmentedControl
            aria-label={t("View")}
            value={view}
            onChange={(next) => setView(next === "grid" ? "grid" : "list")}
            data={[{ value: "list", label: t("List") }, { value: "grid", label: t("Pictures") }]}
          />
          <ImportButton take={bringIn} />
          <UploadButton<StoredFile>
            label={t("Upload")}
            accept={gallery.accept}
            to={(file) => ({ path: "/api/image", fields: { title: file.name.replace(/\.\w+$/, ""), imageSubType: gallery.subType } })}
            onDone={async (stored) => {
              await refresh();
              setOpened(stored);
            }}
          />
        </Group>
      </Group>
      {view === "grid" ? (
        <ImageGrid query={query} filters={filters} empty={t(gallery.hint)} onOpen={setOpened} />
      ) : (
        <DataTable<StoredFile>
          label={t(gallery.label)}
          path="/api/images"
          query={query}
          columns={COLUMNS}
          rowKey={(row) => row.id.id}
          sort={{ key: "createdTime", order: "DESC" }}
          onOpen={setOpened}
          filters={filters}
          whenEmpty={t(gallery.hint)}
        />
      )}
      {opened !== undefined && (
        <ImageDrawer
          file={opened}
          accept={gallery.accept}
          onClose={() => setOpened(undefined)}
          onChange={(file) => {
            setOpened(file);
            void refresh();
          }}
        />
      )}
    </>
  );
}
