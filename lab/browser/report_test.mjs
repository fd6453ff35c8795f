// The page of `namewire-lab report` in Chromium. `crates/observe/browser/run.sh` says how to call it.
//
// Question: does a reader find every experiment, read it with any theme, on a phone, on paper and with a screen reader,
// and use the legends, without anything from outside?
//
// Environment: REPORT   the page, with its folder `report` beside it
// Each check prints one line. Last line: `N passed, N failed`.
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { accessible, check, DESKTOP, end, expect, PHONE, start, watchedPage } from "../../crates/observe/browser/checks.mjs";

const [nodeDir, outDir] = process.argv.slice(2);
const { browser, axe } = await start(nodeDir);

const report = resolve(process.env.REPORT);
const BYTES_MAX = 5_000_000;

async function openPage(browser, viewport, colorScheme) {
  const page = await watchedPage(browser, viewport, colorScheme);
  await page.goto(pathToFileURL(report).href);
  return page;
}

const page = await openPage(browser, DESKTOP, "light");

await check("the page has at most 5 MB and asks for nothing", async () => {
  expect(readFileSync(report).length <= BYTES_MAX, `${readFileSync(report).length} bytes`);
  expect(page.asked.length === 1, page.asked.join(" "));
  expect(page.errors.length === 0, page.errors.join("; "));
});

await check("the contents lead to every section, and every section has a plot", async () => {
  const links = await page.$$eval("nav .contents a", all => all.map(link => link.getAttribute("href")));
  const sections = await page.$$eval("main section", all => all.map(section => `#${section.id}`));
  expect(links.length > 0 && links.join() === sections.join(), `${links} and ${sections}`);
  const bare = await page.$$eval("main section", all => all.filter(one => !one.querySelector("figure svg")).map(one => one.id));
  expect(bare.length === 0, bare.join());
});

await check("every plot has a description, its values and its files", async () => {
  const files = readdirSync(join(dirname(report), "report"));
  const figures = await page.$$eval("figure", all => all.map(figure => ({
    title: figure.querySelector("h3").textContent,
    label: figure.querySelector("svg").getAttribute("aria-label") ?? "",
    rows: figure.querySelectorAll("tbody tr").length,
    links: [...figure.querySelectorAll("figcaption a")].map(link => link.getAttribute("href")),
  })));
  for (const { title, label, rows, links } of figures) {
    expect(label.length > 40 && rows > 0 && links.length === 2, title);
    for (const link of links) expect(files.includes(link.replace("report/", "")), link);
  }
});

await check("a click in the legend mutes a curve, and another one brings it back", async () => {
  const figure = page.locator("figure", { has: page.locator("h3", { hasText: "Power of both routers" }) }).first();
  const muted = () => figure.locator("g.tt.muted").count();
  const entry = figure.locator("g.legend-entry").first();
  expect(await muted() === 0, "muted before the click");
  await entry.click();
  expect(await muted() > 0, "the click mutes nothing");
  await entry.click();
  expect(await muted() === 0, "the second click brings nothing back");
});

await check("a point says its value", async () => {
  const titles = await page.$$eval("figure svg g.tt title", all => all.slice(0, 50).map(title => title.textContent));
  expect(titles.length === 50 && titles.every(title => /: [\d.,-]+$/.test(title)), titles.slice(0, 3).join());
});

for (const scheme of ["light", "dark"]) {
  for (const [name, viewport] of [["desktop", DESKTOP], ["phone", PHONE]]) {
    const other = await openPage(browser, viewport, scheme);
    await check(`${scheme}, ${name}: nothing is wider than the screen`, async () => {
      const wide = await other.evaluate(() => document.documentElement.scrollWidth - globalThis.innerWidth);
      expect(wide <= 0, `${wide} pixels too wide`);
    });
    await check(`${scheme}, ${name}: axe finds nothing serious`, async () => {
      await other.$$eval("details", all => all.forEach(details => { details.open = true; }));
      await accessible(axe, other, `${scheme}, ${name}`);
    });
    await other.screenshot({ path: join(outDir, `report-${scheme}-${name}.png`) });
    await other.close();
  }
}

for (const scheme of ["light", "dark"]) {
  const other = await openPage(browser, DESKTOP, scheme);
  for (const section of ["prefetch", "power", "cache-policies", "fib-binary"]) {
    await other.locator(`#${section}`).screenshot({ path: join(outDir, `report-${section}-${scheme}.png`) });
  }
  await other.close();
}

await check("it prints, with what is folded on the screen", async () => {
  await page.emulateMedia({ media: "print" });
  expect(await page.locator("figure details table").first().isVisible(), "the values of a plot are not printed");
  const pdf = await page.pdf({ path: join(outDir, "report.pdf"), format: "A4" });
  expect(pdf.length > 10000, `${pdf.length} bytes`);
});

await browser.close();
end();
