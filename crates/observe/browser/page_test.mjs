// The page of `namewire-observe` in Chromium. `run.sh` says how to call it.
//
// Question: does an operator see values that move, with any theme, on a phone, by keyboard and with a screen reader,
// and does the page stay quick with 1,000 faces and 10,000 routes?
//
// Each check prints one line. Last line: `N passed, N failed`.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { accessible, check, DESKTOP, end, expect, PHONE, start, watchedPage } from "./checks.mjs";

const [nodeDir, outDir] = process.argv.slice(2);
const { browser, axe } = await start(nodeDir);

const VIEWS = ["overview", "faces", "routes", "tables", "drops", "settings", "network", "explain", "trace"];
const WAIT_MS = 20000;
const TAB_MS_MAX = 1000;
/** Starts the example and waits for its address. */
async function startDemo(...options) {
  const process = spawn(globalThis.process.env.DEMO, options, { stdio: ["ignore", "pipe", "inherit"] });
  const address = await new Promise((resolve, reject) => {
    createInterface({ input: process.stdout }).once("line", resolve);
    process.once("error", reject);
    process.once("exit", code => reject(new Error(`the demo ended with ${code}`)));
  });
  const stop = () => new Promise(resolve => {
    process.once("exit", resolve);
    process.kill("SIGKILL");
  });
  return { address, stop };
}

/** Opens the page and keeps what goes wrong in it, and every address that it asks. */
async function openPage(browser, address, viewport, colorScheme, more = {}) {
  const page = await watchedPage(browser, viewport, colorScheme, more);
  page.setDefaultTimeout(WAIT_MS);
  await page.addInitScript(() => {
    globalThis.longTasks = [];
    const note = list => globalThis.longTasks.push(...list.getEntries().map(entry => entry.duration));
    new PerformanceObserver(note).observe({ type: "longtask" });
  });
  await page.goto(address);
  await live(page);
  return page;
}

const live = page => page.waitForFunction(() => document.getElementById("state").textContent === "live");
const tile = (page, title) => page.$eval(`.tile:has(dt:text-is("${title}")) dd span`, node => node.textContent);
const focused = page => page.evaluate(() => document.activeElement.id || document.activeElement.textContent.trim());

async function openView(page, view) {
  await page.click(`#tab-${view}`);
  await page.waitForSelector(`#panel-${view}:not([hidden])`);
  if (view === "routes") await page.waitForSelector("#tree li");
  if (view === "settings") await page.waitForSelector("#settingtable td");
  if (view === "network") await page.waitForSelector("#map .router");
}

async function valuesMove(page) {
  await page.waitForFunction(() => /[kM]b\/s/.test(document.querySelector("#tiles dd span").textContent));
  const first = await tile(page, "Received");
  await page.waitForFunction(before => document.querySelector("#tiles dd span").textContent !== before, first);
  const title = await page.title();
  expect(title === "router.example – Namewire", `the title is ${title}`);
  const line = await page.$eval("#graph .link.ok", link => Number(link.getAttribute("stroke-width")));
  expect(line > 1.5, `the line of a busy face is ${line} thick`);
}

/** All views once: a picture, axe, and nothing wider than the window. */
async function lookAround(page, name) {
  for (const view of VIEWS) {
    await openView(page, view);
    if (view === "explain") {
      await page.fill("#name", "/example/name");
      await page.press("#name", "Enter");
      await page.waitForSelector("#explanation dl");
    }
    if (view === "trace") await startTrace(page);
    if (view === "network") {
      await page.waitForSelector("#map .link.bad");
      await page.waitForTimeout(2500);
      await page.screenshot({ path: join(outDir, `${name}-network-map.png`), fullPage: true });
      await page.fill("#fatename", "/example/lost");
      await page.press("#fatename", "Enter");
      await page.waitForSelector("#fateanswer li");
    }
    if (view === "drops") await page.waitForSelector('#lastdrops td:text-is("engine.no-route")');
    if (view === "routes") for (const row of await page.$$("#tree > li > button")) await row.click();
    await page.waitForTimeout(1200);
    await page.screenshot({ path: join(outDir, `${name}-${view}.png`), fullPage: view !== "routes" });
    await accessible(axe, page, view);
    const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(width <= 0, `${view} is ${width} px wider than the window`);
    if (view === "trace") await stopTrace(page);
  }
}

/** Starts a trace, and sees packets come and go on coming. */
async function startTrace(page) {
  await page.fill("#traceprefix", "/example");
  await page.press("#traceprefix", "Enter");
  await page.waitForSelector("#traced li");
  const first = await page.$eval("#traced li", row => row.textContent);
  await page.waitForFunction(before => document.querySelector("#traced li").textContent !== before, first);
  await page.waitForFunction(() => /^Tracing: \d+ packets, \d+ packets? left out\.$/.test(document.getElementById("tracestate").textContent));
}

async function stopTrace(page) {
  await page.click("#tracebutton");
  await page.waitForFunction(() => document.getElementById("tracestate").textContent === "Stopped.");
  const count = await page.$$eval("#traced li", rows => rows.length);
  await page.waitForTimeout(1200);
  expect((await page.$$eval("#traced li", rows => rows.length)) === count, "packets come after the end");
}

/** Says why there is no trace. The browser calls that an error, too. */
async function refusedTrace(page) {
  await openView(page, "trace");
  await page.fill("#traceprefix", "no name");
  await page.press("#traceprefix", "Enter");
  await page.waitForFunction(() => document.getElementById("tracestate").textContent.includes("is no name"));
  expect((await page.textContent("#tracebutton")) === "Start", "a trace that was refused runs");
}

/** From the top by keyboard alone: skip link, tabs, sorting, details of a face and back. */
async function keyboardWalk(page) {
  await openView(page, "overview");
  await page.reload();
  await live(page);
  await page.keyboard.press("Tab");
  expect((await focused(page)) === "Skip to the content", `the first stop is ${await focused(page)}`);
  await page.keyboard.press("Enter");
  expect((await focused(page)) === "main", `the skip link leads to ${await focused(page)}`);
  await page.focus("#theme");
  await page.keyboard.press("Tab");
  expect((await focused(page)) === "tab-overview", `after the theme comes ${await focused(page)}`);
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  expect(outline === "solid", `focus looks like ${outline}`);
  await page.keyboard.press("ArrowRight");
  expect((await focused(page)) === "tab-faces", `the arrow leads to ${await focused(page)}`);
  await page.keyboard.press("Tab");
  expect((await focused(page)) === "facefilter", `after the tabs comes ${await focused(page)}`);
  const peers = await page.$$eval("#facetable td:nth-child(2)", cells => cells.map(cell => cell.textContent));
  expect(peers.includes("application (4001): /org/app0, /org/app1, /org/app2 and 1 more"), `the peers are ${peers.join("; ")}`);
  await page.focus("#facetable th button");
  await page.keyboard.press("Enter");
  const sorted = await page.$eval("#facetable th", head => head.getAttribute("aria-sort"));
  expect(sorted === "descending", `sorted by number: ${sorted}`);
  await page.focus("#facetable td button");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#face[open]");
  await accessible(axe, page, "details of a face");
  await page.screenshot({ path: join(outDir, "light-face.png") });
  await page.keyboard.press("Escape");
  await page.waitForSelector("#face:not([open])", { state: "attached" });
  const back = await page.evaluate(() => document.activeElement.getAttribute("aria-label"));
  expect(/^Details of face/.test(back), `the focus returns to ${back}`);
}

/** Those that somebody chose come first; what a command changes is seen; defaults can be hidden. */
async function settings(page) {
  await openView(page, "settings");
  const column = place => page.$$eval(`#settingtable td:nth-child(${place})`, cells => cells.map(cell => cell.textContent));
  expect((await column(1)).length === 100, `${(await column(1)).length} rows at a time`);
  expect((await page.textContent("#settingcount")) === "154 settings", await page.textContent("#settingcount"));
  const from = (await column(3)).slice(0, 5).join(" ");
  expect(from === "command --workers /etc/namewire/namewire.toml:7 /etc/namewire/namewire.toml:19 default", from);
  const policyIs = value => document.querySelector("#settingtable td:nth-child(2)").textContent === value;
  await page.waitForFunction(policyIs, '"lru"');
  await page.waitForFunction(policyIs, '"fifo"');
  await page.focus("#settingchanged");
  await page.keyboard.press("Space");
  const keys = (await column(1)).join(" ");
  expect(keys === "cs.policy router.workers cs.capacity tables.regions", `not at their default: ${keys}`);
  expect((await page.textContent("#settingcount")) === "4 of 154 settings", await page.textContent("#settingcount"));
  await page.fill("#settingfilter", "TOML:7");
  expect((await column(1)).join() === "cs.capacity", `the filter finds ${await column(1)}`);
  await page.fill("#settingfilter", "nothing");
  expect(await page.isVisible("text=There is nothing to show."), "an empty table says so");
  await page.fill("#settingfilter", "");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
  expect((await column(1)).length === 100, "all are back");
}

/** Five routers, one of which is away; the links between them; and where a name is dropped. */
async function network(page) {
  await openView(page, "network");
  await page.waitForFunction(() => /^5 routers: /.test(document.getElementById("networkstate").textContent));
  const state = await page.textContent("#networkstate");
  expect(/trouble, 1 unknown.*4 links between them/.test(state), state);
  const texts = await page.$$eval("#map .router", nodes => nodes.map(node => [...node.querySelectorAll("text")].map(row => row.textContent)));
  const of = name => texts.find(([first]) => first === name) || [];
  expect(of("gone")[1] === "unknown" && of("gone")[2] === "unreachable", `gone says ${of("gone")}`);
  expect(of("south")[1] === "trouble" && /^face 257 .*is down$/.test(of("south")[2]), `south says ${of("south")}`);
  expect(/^↓ .*b\/s  ↑ .*b\/s$/.test(of("mid")[3]), `mid says ${of("mid")}`);
  const dashed = await page.$$eval("#map .link", lines => lines.filter(line => getComputedStyle(line).strokeDasharray !== "none").length);
  expect(dashed === 1, `${dashed} links are dashed`);
  await page.fill("#fatename", "/example/lost/1");
  await page.press("#fatename", "Enter");
  await page.waitForSelector("#fateanswer li");
  const verdict = await page.textContent("#fateanswer p");
  expect(verdict === "Dropped at east, where mid and south send it: no route covers the name: a Nack (NoRoute) goes back.", verdict);
  const order = await page.$$eval("#fateanswer li b", names => names.map(name => name.textContent).join(" "));
  expect(/router\.example mid .*east gone$/.test(order), `the order is ${order}`);
  expect((await page.$$("#map .way")).length === 3, "the ways are drawn");
  await page.fill("#fatename", "no name");
  await page.press("#fatename", "Enter");
  await page.waitForFunction(() => document.getElementById("fateanswer").textContent.includes("is no name"));
  page.errors.length = 0;
  await page.click("#fateclear");
  expect((await page.$$("#map .way")).length === 0, "the ways are gone");
}

async function themes(page) {
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const automatic = await back();
  await page.click("#theme");
  expect((await page.textContent("#theme")) === "Theme: light", "the first theme is light");
  await page.click("#theme");
  const dark = await back();
  expect(dark !== automatic, "dark has another background");
  await page.reload();
  expect((await back()) === dark, "a theme stays");
  await page.click("#theme");
  expect((await back()) === automatic, "automatic is back");
}

async function filters(page) {
  await openView(page, "faces");
  await page.fill("#facefilter", "udp4");
  const rows = await page.$$eval("#facetable tbody tr", rows => rows.map(row => row.textContent));
  expect(rows.length === 3 && rows.every(row => row.includes("udp4")), `${rows.length} faces fit udp4`);
  await page.fill("#facefilter", "");
  await openView(page, "routes");
  await page.fill("#routefilter", "ucla/set0/object1");
  const routes = await page.$$eval("#tree li", rows => rows.length);
  expect(routes > 0 && routes < 20, `${routes} routes fit`);
  await page.fill("#routefilter", "");
}

/** The router goes away and comes back at the same address. */
async function reconnects(page, demo) {
  const before = page.errors.length;
  await demo.stop();
  await page.waitForFunction(() => document.getElementById("state").textContent === "not connected");
  expect(/broke/.test(await page.textContent("#trouble")), "the page says so");
  await page.screenshot({ path: join(outDir, "light-broken.png") });
  const again = await startDemo("--listen", new URL(demo.address).host);
  await live(page);
  expect((await page.textContent("#trouble")) === "", "the warning is gone");
  page.errors.length = before;
  return again;
}

/** From a click until the next frame is drawn, measured in the page. */
const clickMs = (page, selector) => page.evaluate(async selector => {
  const began = performance.now();
  document.querySelector(selector).click();
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - began;
}, selector);

async function staysQuick(page) {
  const times = new Map();
  // The better of several times counts: other programs run on the machine too.
  const note = (what, ms) => times.set(what, Math.round(Math.min(ms, times.get(what) ?? Infinity)));
  for (const view of [...VIEWS, ...VIEWS]) note(view, await clickMs(page, `#tab-${view}`));
  await openView(page, "routes");
  for (let turn = 0; turn < 3; turn++) note("a branch", await clickMs(page, "#tree button"));
  expect((await page.$$("#tree li li")).length >= 40, "a branch has its children");
  for (let turn = 0; turn < 2; turn++) {
    await openView(page, "faces");
    await page.click("#tab-overview");
    note("routes, filled", await clickMs(page, "#tab-routes"));
  }
  await page.screenshot({ path: join(outDir, "large-routes.png") });
  await openView(page, "faces");
  for (let turn = 0; turn < 2; turn++) note("next rows", await clickMs(page, "#facetable .pager button + button"));
  await page.screenshot({ path: join(outDir, "large-faces.png") });
  await openView(page, "overview");
  await page.waitForTimeout(1200);
  await page.screenshot({ path: join(outDir, "large-overview.png"), fullPage: true });
  await openView(page, "settings");
  const count = await page.textContent("#settingcount");
  expect(/^154 settings; 1 more of strategies/.test(count), `settings that do not fit: ${count}`);
  const longest = Math.max(0, ...(await page.evaluate(() => globalThis.longTasks)));
  note("the longest task", longest);
  const text = [...times].map(([what, ms]) => `${what} ${ms} ms`).join(", ");
  console.log(`      ${text}`);
  expect(Math.max(...times.values()) < TAB_MS_MAX, `something took ${TAB_MS_MAX} ms or more: ${text}`);
  const more = await page.textContent("#graphmore");
  expect(/And 960 more/.test(more), `the graph says ${more}`);
}

async function small(browser) {
  let demo = await startDemo();
  const page = await openPage(browser, demo.address, DESKTOP, "light");
  await check("values move", () => valuesMove(page));
  await page.waitForTimeout(8000);
  await check("all views, light", () => lookAround(page, "light"));
  await check("by keyboard", () => keyboardWalk(page));
  await check("filters", () => filters(page));
  await check("settings", () => settings(page));
  await check("network", () => network(page));
  await check("themes", () => themes(page));
  await check("a broken stream", async () => { demo = await reconnects(page, demo); });
  const pages = [page];
  const looks = [["dark", DESKTOP, "dark"], ["phone", PHONE, "light"], ["phone-dark", PHONE, "dark"]];
  for (const [name, viewport, scheme] of looks) {
    const other = await openPage(browser, demo.address, viewport, scheme, { reducedMotion: "reduce" });
    await other.waitForTimeout(6000);
    await check(`all views, ${name}`, () => lookAround(other, name));
    const motion = await other.$eval(".link", link => getComputedStyle(link).transitionDuration);
    await check(`no motion, ${name}`, async () => expect(/^0s$/.test(motion), `a transition takes ${motion}`));
    pages.push(other);
  }
  await check("no errors in the console", async () => {
    const errors = pages.flatMap(page => page.errors);
    expect(!errors.length, errors.join("; "));
  });
  await check("nothing from elsewhere", async () => {
    const isOurs = url => url.startsWith(demo.address) || url.startsWith("data:");
    const foreign = pages.flatMap(page => page.asked).filter(url => !isOurs(url));
    expect(!foreign.length, foreign.join(", "));
  });
  await demo.stop();
}

async function large(browser) {
  const demo = await startDemo("--large");
  const page = await openPage(browser, demo.address, DESKTOP, "light");
  await page.waitForTimeout(3000);
  await check("1,000 faces and 10,000 routes", () => staysQuick(page));
  await check("no errors with many faces", async () => expect(!page.errors.length, page.errors.join("; ")));
  await check("a trace that is refused", () => refusedTrace(page));
  await demo.stop();
}

try {
  await small(browser);
  await large(browser);
} finally {
  await browser.close();
}
end();
