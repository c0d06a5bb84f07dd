import { expect, it } from "vitest";
import { cssUrl, drawingText, plainImageUrl, storedImagePath } from "./images";

it("knows stored pictures from others", () => {
  expect(storedImagePath("tb-image;/api/images/tenant/plan.png")).toBe("/api/images/tenant/plan.png");
  expect(storedImagePath("/api/images/system/map.svg")).toBe("/api/images/system/map.svg");
  expect(storedImagePath("tb-image;/api/images/../auth/user")).toBeUndefined();
  expect(storedImagePath("tb-image;/api/user/1")).toBeUndefined();
  expect(storedImagePath("https://example.org/a.png")).toBeUndefined();
});

it("shows pictures of the web and in the text, and nothing that runs", () => {
  expect(plainImageUrl("https://example.org/a.png")).toBe("https://example.org/a.png");
  expect(plainImageUrl("tb-image:bmFtZQ==:dGl0bGU=;data:image/png;base64,AA==")).toBe("data:image/png;base64,AA==");
  expect(plainImageUrl("assets/widget/x.svg")).toBe("/assets/widget/x.svg");
  expect(plainImageUrl("javascript:alert(1)")).toBeUndefined();
  expect(plainImageUrl("data:text/html,<script>")).toBeUndefined();
});

it("keeps an address inside its style", () => {
  expect(cssUrl('https://a/"); color: red')).toBe('url("https://a/%22); color: red")');
});

it("reads a drawing from its data URL", async () => {
  expect(await drawingText("data:image/svg+xml;base64,PHN2Zy8+")).toBe("<svg/>");
  expect(await drawingText("data:image/svg+xml;utf8,%3Csvg/%3E")).toBe("<svg/>");
});
