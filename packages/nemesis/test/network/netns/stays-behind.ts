/** Run by netns.test.ts: opens a network, says which processes hold it, and waits to be killed. */
import { readFileSync, readdirSync, readlinkSync } from "node:fs";
import { NetnsNetwork } from "../../../src/network/netns/netns-network.js";

await NetnsNetwork.open({ nodes: ["n1", "n2"], workers: ["w1"] });
const own = readlinkSync("/proc/self/ns/net");
const { pid } = process;
const children = readdirSync("/proc").filter((name) => {
  try {
    return /^\d+$/.test(name) && parentOf(name) === pid && readlinkSync(`/proc/${name}/ns/net`) !== own;
  } catch {
    return false;
  }
});
process.stdout.write(`${JSON.stringify({ pid, keepers: children.map(Number) })}\n`);
setInterval(() => {}, 1_000);

function parentOf(name: string): number {
  const status = readFileSync(`/proc/${name}/status`, "utf8");
  return Number(/^PPid:\s+(\d+)/m.exec(status)?.[1]);
}
