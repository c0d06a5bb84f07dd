// Pictures that forms save: read from files, made smaller, or put into the gallery of the tenant.

import { upload } from "@/api/upload";
import { number, text, type Json } from "@/dashboard/json";
import { t } from "@/i18n";
import { messageOf } from "@/ui/feedback";

/** A picture that is kept in an attribute may have this size, bytes; bigger ones belong into the gallery. */
export const MOST_BYTES = 500_000;

/** What a photo of the camera is where settings say nothing. */
export const CAMERA = { maxWidth: 640, maxHeight: 480, imageFormat: "image/jpeg", imageQuality: 0.92 };

/** Reads the settings of photos. */
export function readCamera(settings: Json): typeof CAMERA & { toGallery: boolean; isPublic: boolean } {
  return {
    maxWidth: number(settings["maxWidth"]) ?? CAMERA.maxWidth,
    maxHeight: number(settings["maxHeight"]) ?? CAMERA.maxHeight,
    imageFormat: text(settings["imageFormat"]) ?? CAMERA.imageFormat,
    imageQuality: number(settings["imageQuality"]) ?? CAMERA.imageQuality,
    toGallery: settings["saveToGallery"] === true,
    isPublic: settings["usePublicGalleryLink"] === true,
  };
}

/** Reads a file as an address that holds the picture itself. */
export function dataUrlOf(file: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(new Error(t("The file can't be read.")));
    reader.readAsDataURL(file);
  });
}

/** Whether an address may be shown as a picture: one that holds it, or one of this server or the web. */
export function isPicture(address: string): boolean {
  return /^data:image\/(png|jpeg|gif|webp|bmp|svg\+xml|x-icon)[;,]/i.test(address);
}

/** Returns the size of a picture that fits into limits, with its proportions. */
export function fitted(width: number, height: number, mostWidth: number, mostHeight: number): { width: number; height: number } {
  const share = Math.min(1, mostWidth / Math.max(1, width), mostHeight / Math.max(1, height));
  return { width: Math.max(1, Math.round(width * share)), height: Math.max(1, Math.round(height * share)) };
}

/** Puts a picture into the gallery and returns its address. */
export async function toGallery(picture: Blob, title: string, isPublic: boolean): Promise<string> {
  const ending = picture.type === "image/jpeg" ? "jpg" : picture.type === "image/webp" ? "webp" : "png";
  const file = new File([picture], `${title}.${ending}`, { type: picture.type });
  const sent = upload<{ link: string; publicLink?: string }>({ path: "/api/image", file, fields: { title }, told: () => undefined });
  const { link, publicLink } = await sent.catch((error: unknown) => {
    throw new Error(t("The gallery did not take the picture: {problem}", { problem: messageOf(error) }));
  });
  return isPublic && publicLink !== undefined ? publicLink : link;
}
