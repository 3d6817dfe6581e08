/** The ways into a party in the words of iptables, for systems without nft. */
import type { Incoming, Order, Outgoing, Rules, WayState } from "./filter.js";
import { lossParts, lossPartsMax, queueMajor } from "./packets.js";

export const iptablesRules: Rules = {
  setUp: (incoming, outgoing) => restore(setUpText(incoming, outgoing)),
  // A chain that is named is emptied first, in the same transaction. The counter has a chain of its own, which lives on.
  change: (way, state) => restore(["*filter", `:way_${way} - [0:0]`, ...wayRules(way, state), "COMMIT"]),
  count: (way) => ({ command: ["iptables", "-w", "-nvx", "-L", `passed_${way}`], input: "" }),
  counted: (printed) => {
    const bytes = /^\s*\d+\s+(\d+)\s+ACCEPT\b/m.exec(printed)?.[1];
    return bytes === undefined ? null : Number(bytes);
  },
};

function setUpText(incoming: readonly Incoming[], outgoing: readonly Outgoing[]): string[] {
  return [
    "*filter",
    ...incoming.flatMap(({ id }) => [`:way_${id} - [0:0]`, `:passed_${id} - [0:0]`]),
    "-A INPUT -i lo -j ACCEPT",
    ...incoming.flatMap(({ id, address }) => [
      `-A INPUT -s ${address} -j way_${id}`,
      ...wayRules(id, { isCut: false, lossFraction: 0 }),
      `-A passed_${id} -j ACCEPT`,
    ]),
    "COMMIT",
    "*mangle",
    ...outgoing.map(
      ({ address, classId }) =>
        `-A POSTROUTING -d ${address} -j CLASSIFY --set-class ${queueMajor.toString(16)}:${classId.toString(16)}`,
    ),
    "COMMIT",
  ];
}

function wayRules(way: number, { isCut, lossFraction }: WayState): string[] {
  const add = `-A way_${way}`;
  if (isCut) return [`${add} -j DROP`];
  const share = lossParts(lossFraction) / lossPartsMax;
  const lost = share === 0 ? [] : [`${add} -m statistic --mode random --probability ${share.toFixed(6)} -j DROP`];
  return [...lost, `${add} -j passed_${way}`];
}

/** `-w`: waits for another user of the tables. */
function restore(lines: readonly string[]): Order {
  return { command: ["iptables-restore", "-w", "--noflush"], input: `${lines.join("\n")}\n` };
}
