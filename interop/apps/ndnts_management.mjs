// NDNts as an operator: uses every management module that it supports on our router.
//
// Question: can an unmodified NDNts client manage our router, and does it get the same
// answers as from NFD?
// Options: --transport unix:///path, --trusted (may send commands) or not (may only
// register itself). Prints one line per step; exit status 0 only if all pass.
import { strict as assert } from "node:assert";
import { parseArgs } from "node:util";

import { consume, produce } from "@ndn/endpoint";
import { Forwarder } from "@ndn/fw";
import {
  ControlParameters, CsInfo, enableNfdPrefixReg, FacePersistency, FaceQuery, FaceStatus, GeneralStatus, invoke,
  invokeCsErase, list, PrefixAnn, RibEntry, StrategyChoice,
} from "@ndn/nfdmgmt";
import { TcpTransport, UnixTransport } from "@ndn/node-transport";
import { Data, Interest, Name } from "@ndn/packet";

const REGISTERED_MS = 500;

const { values: options } = parseArgs({
  options: { transport: { type: "string" }, trusted: { type: "boolean" } },
});
const { protocol, hostname, port, pathname } = new URL(options.transport);
const openFace = (fw) => (protocol === "unix:" ?
  UnixTransport.createFace({ fw }, pathname) :
  TcpTransport.createFace({ fw }, hostname, Number(port)));

const operator = Forwarder.create();
await openFace(operator);
const viaOperator = { cOpts: { fw: operator } };
const command = async (verb, parameters, status = 200) => {
  const response = await invoke(verb, parameters, viaOperator);
  assert.equal(response.statusCode, status, `${verb}: ${response.statusCode} ${response.statusText}`);
  return status === 200 ? ControlParameters.decodeFromResponseBody(response) : response;
};
const dataset = (type) => list(type, viaOperator);
const prefix = new Name("/ndnts-management");

async function general() {
  const [status] = await dataset(GeneralStatus);
  assert(status.currentTimestamp >= status.startTimestamp);
  assert(status.nInInterests > 0);
}

async function facesAndRoutes() {
  const made = await command("faces/create", {
    uri: "udp4://127.0.0.1:7001", facePersistency: FacePersistency.Permanent, mtu: 1300,
  });
  assert.equal(made.facePersistency, FacePersistency.Permanent);
  assert.equal(made.mtu, 1300);
  const { faceId } = made;
  const again = await command("faces/create", { uri: "udp4://127.0.0.1:7001" }, 409);
  assert.equal(ControlParameters.decodeFromResponseBody(again).faceId, faceId);
  const updated = await command("faces/update", { faceId, mtu: 1250 });
  assert.deepEqual([updated.faceId, updated.mtu], [faceId, 1250]);
  const [face] = await dataset(FaceQuery({ faceId }));
  assert.deepEqual([face.uri, face.mtu], ["udp4://127.0.0.1:7001", 1250]);
  assert((await dataset(FaceStatus)).length >= 2);

  const registered = await command("rib/register", { faceId, name: prefix });
  assert.deepEqual([registered.faceId, registered.origin, registered.cost], [faceId, 0, 0]);
  assert.deepEqual([registered.flagChildInherit, registered.flagCapture], [true, false]);
  const routes = await dataset(RibEntry);
  assert(routes.some((entry) => entry.name.equals(prefix) && entry.route[0].faceId === faceId));
  await command("rib/unregister", { faceId, name: prefix });
  await command("faces/destroy", { faceId });
  assert.deepEqual(await dataset(FaceQuery({ faceId })), []);
}

async function strategies() {
  const strategy = (name) => new Name(`/localhost/nfd/strategy/${name}`);
  await command("strategy-choice/set", { name: prefix, strategy: strategy("unknown") }, 404);
  for (const name of ["best-route", "multicast", "asf", "access", "random", "self-learning"]) {
    const { strategy: set } = await command("strategy-choice/set", { name: prefix, strategy: strategy(name) });
    assert(strategy(name).isPrefixOf(set) && set.length === 5, `${set} has a version`);
  }
  const choices = await dataset(StrategyChoice);
  assert(choices.some((choice) => choice.name.equals(prefix)));
  await command("strategy-choice/unset", { name: prefix });
}

/** Serves `name` through a connection of its own, registered or announced, until `use` is done. */
async function serving(name, producing, registering, use) {
  const fw = Forwarder.create();
  const face = await openFace(fw);
  enableNfdPrefixReg(face, registering);
  const producer = produce(name, async (interest) => new Data(interest.name, Data.FreshnessPeriod(60_000)), {
    ...producing, fw,
  });
  await new Promise((resolve) => { setTimeout(resolve, REGISTERED_MS); });
  try {
    await use();
  } finally {
    producer.close();
    face.close();
  }
}

const fetchOne = (name) => consume(new Interest(name), { fw: operator, retx: 2 });

async function contentStore() {
  const cached = prefix.append("cached");
  await serving(cached, {}, {}, async () => {
    for (let i = 0; i < 300; ++i) {
      await fetchOne(cached.append(`${i}`));
    }
  });
  const [before] = await dataset(CsInfo);
  assert.equal(await invokeCsErase(cached, viaOperator), 300);
  await new Promise((resolve) => { setTimeout(resolve, 1100); }); // the dataset stays fresh for a second
  const [after] = await dataset(CsInfo);
  assert(before.nCsEntries - after.nCsEntries >= 300);
}

async function prefixAnnouncement() {
  const announced = prefix.append("announced");
  const announcement = await PrefixAnn.build({ announced, expirationPeriod: 600_000 });
  await serving(announced, { announcement }, { PrefixAnn }, async () => {
    await fetchOne(announced.append("1"));
    const entry = (await dataset(RibEntry)).find(({ name }) => name.equals(announced));
    assert.deepEqual([entry.route[0].origin, entry.route[0].cost], [129, 2048]);
  });
}

/** An untrusted client may register itself; the router refuses its other commands with a reason. */
async function stranger() {
  const refused = await command("faces/create", { uri: "udp4://127.0.0.1:7002" }, 403);
  assert.match(refused.statusText, /^authorization rejected: ./);
  await command("strategy-choice/set", { name: prefix, strategy: new Name("/localhost/nfd/strategy/asf") }, 403);
  const own = prefix.append("own");
  await serving(own, {}, {}, () => fetchOne(own.append("1")));
}

const steps = options.trusted ?
  { general, facesAndRoutes, strategies, contentStore, prefixAnnouncement } :
  { general, stranger };
try {
  for (const [name, step] of Object.entries(steps)) {
    await step();
    console.log("done", name);
  }
  console.log(`${Object.keys(steps).length} modules`);
  process.exit(0);
} catch (err) {
  console.log(String(err?.stack ?? err));
  process.exit(1);
}
