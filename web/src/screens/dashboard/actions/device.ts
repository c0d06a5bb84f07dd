// What a browser can do of what ThingsBoard's mobile application does.

import type { MobileType } from "@/dashboard/mobile";
import { t } from "@/i18n";
import { fitted } from "@/widgets/input/pictures";

/** Bigger pictures are made smaller: functions keep them in attributes. */
const MOST_PIXELS = 1_920;
const QUALITY = 0.85;

export interface FoundCode {
  rawValue: string;
  format: string;
}

interface Detector {
  detect: (from: HTMLVideoElement) => Promise<FoundCode[]>;
}

/** Returns what reads codes from pictures; not all browsers have that. */
export function codeDetector(): Detector | undefined {
  const { BarcodeDetector } = globalThis as { BarcodeDetector?: new () => Detector };
  return BarcodeDetector === undefined ? undefined : new BarcodeDetector();
}

/** Whether this browser can do something, here and now. */
export function canDo(type: MobileType): boolean {
  // Browsers hide their devices from pages that came without HTTPS.
  const devices = navigator.mediaDevices as Partial<MediaDevices> | undefined;
  switch (type) {
    case "deviceProvision":
      return false;
    case "getLocation":
      return isSecureContext && "geolocation" in navigator;
    case "scanQrCode":
      return codeDetector() !== undefined && devices?.getUserMedia !== undefined;
    case "takeScreenshot":
      return devices?.getDisplayMedia !== undefined;
    default:
      return true;
  }
}

function pictureOf(source: CanvasImageSource, width: number, height: number): Promise<Blob> {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, fitted(width, height, MOST_PIXELS, MOST_PIXELS));
  canvas.getContext("2d")?.drawImage(source, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob === null ? reject(new Error("This is no picture.")) : resolve(blob)), "image/jpeg", QUALITY));
}

/** Returns a chosen picture as it is, or smaller if it is large. */
export async function smallPicture(file: File): Promise<Blob> {
  const bitmap = await createImageBitmap(file).catch(() => {
    throw new Error("This is no picture.");
  });
  return Math.max(bitmap.width, bitmap.height) <= MOST_PIXELS && /^image\/(png|jpeg|webp)$/.test(file.type) ? file : pictureOf(bitmap, bitmap.width, bitmap.height);
}

/** Takes a picture of what somebody chooses of their screen; the browser asks for it. */
export async function screenshot(): Promise<Blob> {
  const wanted = { video: true, preferCurrentTab: true };
  const stream = await navigator.mediaDevices.getDisplayMedia(wanted);
  try {
    const video = document.createElement("video");
    video.muted = true;
    video.srcObject = stream;
    await video.play();
    return await pictureOf(video, video.videoWidth, video.videoHeight);
  } finally {
    stream.getTracks().forEach((track) => track.stop());
  }
}

export function position(): Promise<{ latitude: number; longitude: number }> {
  return new Promise((resolve, reject) =>
    navigator.geolocation.getCurrentPosition(
      ({ coords: { latitude, longitude } }) => resolve({ latitude, longitude }),
      ({ code, message }) => reject(new Error(code === 1 ? "The browser may not tell the position. Allow it beside the address of the page." : t("The position is not known: {problem}", { problem: message }))),
      { enableHighAccuracy: true, timeout: 30_000 },
    ),
  );
}
