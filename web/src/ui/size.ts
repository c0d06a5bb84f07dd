import { formatNumber } from "@/i18n";

/** Writes a number of bytes as people read it. */
export function sizeText(bytes: number | undefined | null): string {
  if (bytes === undefined || bytes === null) {
    return "";
  }
  const [divisor, unit] = bytes < 1_024 ? [1, "B"] : bytes < 1_048_576 ? [1_024, "KiB"] : [1_048_576, "MiB"];
  return `${formatNumber(bytes / divisor, { maximumFractionDigits: 1 })} ${unit}`;
}
