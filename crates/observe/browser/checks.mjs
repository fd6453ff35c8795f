// What the tests of pages share: checks that print one line each, a browser, and axe.
import { createRequire } from "node:module";
import { join } from "node:path";

export const DESKTOP = { width: 1280, height: 900 };
export const PHONE = { width: 360, height: 740 };

let passed = 0;
let failed = 0;

/** Runs a check and prints whether it passed. */
export async function check(title, run) {
  try {
    await run();
    passed++;
    console.log(`ok    ${title}`);
  } catch (error) {
    failed++;
    console.log(`FAILED  ${title}: ${error.message}`);
  }
}

export function expect(condition, text) {
  if (!condition) throw new Error(text);
}

/** Prints the last line and ends the program. */
export function end() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
}

/** The browser and axe of the packages in `nodeDir`. */
export async function start(nodeDir) {
  const require = createRequire(join(nodeDir, "package.json"));
  const { chromium } = require("playwright-core");
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
  return { browser, axe: require("axe-core") };
}

/** A page that keeps what goes wrong in it, and every address that it asks. */
export async function watchedPage(browser, viewport, colorScheme, more = {}) {
  const page = await (await browser.newContext({ viewport, colorScheme, ...more })).newPage();
  page.errors = [];
  page.asked = [];
  page.on("console", message => message.type() === "error" && page.errors.push(message.text()));
  page.on("pageerror", error => page.errors.push(String(error)));
  page.on("request", request => page.asked.push(request.url()));
  return page;
}

/** Fails on serious and critical findings of axe. */
export async function accessible(axe, page, where) {
  await page.evaluate(axe.source);
  const found = await page.evaluate(() => globalThis.axe.run());
  const grave = found.violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const places = nodes => nodes.slice(0, 3).map(node => node.target.join(" ")).join(", ");
  const lines = grave.map(({ id, nodes }) => `${id} at ${places(nodes)}`);
  expect(!lines.length, `${where}: ${lines.join("; ")}`);
}
