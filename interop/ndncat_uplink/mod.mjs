// Stands in for NDNts' @ndn/cli-common, which the package registry does not have: what its command line ndncat
// (@ndn/cat) needs to reach a router.
//
// Limits: only a Unix socket (environment: NDNTS_UPLINK=unix:///PATH), and DigestSha256 for Data and commands.
import { enableNfdPrefixReg } from "@ndn/nfdmgmt";
import { UnixTransport } from "@ndn/node-transport";
import { digestSigning } from "@ndn/packet";
import { Closers } from "@ndn/util";

export const exitClosers = new Closers();

export const exitHandler = () => exitClosers.close();

process.once("SIGINT", exitHandler);

export const getSigner = async () => digestSigning;

export async function openUplinks() {
  const face = await UnixTransport.createFace({}, new URL(process.env.NDNTS_UPLINK).pathname);
  enableNfdPrefixReg(face);
  exitClosers.push(face);
  return [face];
}
