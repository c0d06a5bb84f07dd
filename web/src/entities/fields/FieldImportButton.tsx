// A button that takes the file of a calculated field or alarm rule; what the file lacks here is asked for before it is saved.

import { lazy, Suspense, useState, type ReactElement } from "react";
import type { EntityId } from "@/api/types";
import { ImportButton } from "@/ui/ImportButton";
import type { EntityKind } from "../kinds";
import type { ReadField } from "./imported";

const FieldImport = lazy(() => import("./FieldImport"));

/** `target` is whom it is for, where the page is of that. */
export function FieldImportButton({ kind, target }: { kind: EntityKind; target?: EntityId }): ReactElement {
  const [file, setFile] = useState<ReadField>();
  return (
    <>
      <ImportButton
        take={async (text) => {
          const { readField } = await import("./imported");
          setFile(readField(kind.type, text));
        }}
      />
      {file !== undefined && (
        <Suspense>
          <FieldImport kind={kind} file={file} target={target} onClose={() => setFile(undefined)} />
        </Suspense>
      )}
    </>
  );
}
