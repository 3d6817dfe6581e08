/** The ways into a party in the words of nftables. */
import type { Incoming, Order, Outgoing, Rules, WayState } from "./filter.js";
import { lossParts, lossPartsMax, packetPriority } from "./packets.js";

const table = "inet ways";

export const nftRules: Rules = {
  setUp: (incoming, outgoing) => nft(setUpText(incoming, outgoing)),
  change: (way, state) => nft([`flush chain ${table} way_${way}`, ...wayRules(way, state)]),
  count: (way) => ({ command: ["nft", "list", "counter", ...table.split(" "), `passed_${way}`], input: "" }),
  counted: (printed) => {
    const bytes = /packets \d+ bytes (\d+)/.exec(printed)?.[1];
    return bytes === undefined ? null : Number(bytes);
  },
};

function setUpText(incoming: readonly Incoming[], outgoing: readonly Outgoing[]): string[] {
  const open: WayState = { isCut: false, lossFraction: 0 };
  return [
    `add table ${table}`,
    `add chain ${table} in { type filter hook input priority 0; policy accept; }`,
    `add chain ${table} out { type filter hook output priority 0; policy accept; }`,
    `add rule ${table} in iif lo accept`,
    `add rule ${table} in meta nfproto ipv6 drop`,
    ...incoming.flatMap(({ id, address }) => [
      `add counter ${table} passed_${id}`,
      `add chain ${table} way_${id}`,
      ...wayRules(id, open),
      `add rule ${table} in ip saddr ${address} jump way_${id}`,
    ]),
    ...outgoing.map(
      ({ address, classId }) =>
        `add rule ${table} out ip daddr ${address} meta priority set 0x${packetPriority(classId).toString(16)}`,
    ),
  ];
}

function wayRules(way: number, { isCut, lossFraction }: WayState): string[] {
  const add = `add rule ${table} way_${way}`;
  const parts = lossParts(lossFraction);
  if (isCut || parts === lossPartsMax) return [`${add} drop`];
  const lost = parts === 0 ? [] : [`${add} numgen random mod ${lossPartsMax} < ${parts} drop`];
  return [...lost, `${add} counter name passed_${way}`];
}

function nft(lines: readonly string[]): Order {
  return { command: ["nft", "-f", "-"], input: `${lines.join("\n")}\n` };
}
