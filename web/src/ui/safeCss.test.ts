import { expect, test } from "vitest";
import { isLoadingStyle, loadsFromElsewhere } from "./safeCss";

test("styles may load nothing from elsewhere", () => {
  const bad = ["a: url(https://evil/)", "a: URL('//evil')", 'a: image-set("//evil" 1x)', "a: -webkit-cross-fade(url(x), url(y))", 'a: src("//evil")', "--a: u\\72l(//evil)", 'a: url("/evil")', "a: url('#x'), url(data:text/html,x)", "a: url(data:image/png;base64,x) url(//evil)", "@font-face { }", 'a: image("//evil")'];
  expect(bad.filter((style) => !loadsFromElsewhere(style))).toEqual([]);
  const good = ["color: red", 'fill: url("#gradient")', 'background: url("data:image/svg+xml,%3Csvg%3E") no-repeat', "background: linear-gradient(red, blue)", "width: calc(1px + var(--a))"];
  expect(good.filter(loadsFromElsewhere)).toEqual([]);
  expect(["background: url(#x)", "background: u\\72l(x)", "a/**/: b"].every(isLoadingStyle)).toBe(true);
});
