/** What may come in at a party, by sender: rules in the receiver's own namespace, for nft or for iptables. */
import { runCommand, whyNot } from "../../machine/command.js";
import { iptablesRules } from "./iptables-rules.js";
import { nftRules } from "./nft-rules.js";

/** Of one way, at its end. */
export interface WayState {
  readonly isCut: boolean;
  /** Of the packets that aren't cut off. */
  readonly lossFraction: number;
}

/** A way that comes in: `id` is unique in the receiver's namespace. */
export interface Incoming {
  readonly id: number;
  readonly address: string;
}

/** Sending packets on a way: they get this class of the sender's queue. */
export interface Outgoing {
  readonly address: string;
  readonly classId: number;
}

/** A program with its input. All programs are started in the party's namespace. */
export interface Order {
  readonly command: readonly string[];
  readonly input: string;
}

/** The language of one tool; pure. */
export interface Rules {
  /** Everything, at the start: all ways open, counted from 0. Of IPv6 nothing comes in, for no way speaks it. */
  setUp(incoming: readonly Incoming[], outgoing: readonly Outgoing[]): Order;
  /** In one transaction: no packet meets half of it. */
  change(way: number, state: WayState): Order;
  count(way: number): Order;
  /** Bytes, from what `count` printed; null when it is something else. */
  counted(printed: string): number | null;
}

/** `nft` first: it needs no lock file, so it works without root. `inside`: what brings a command into a namespace to try it in. */
export async function findRules(
  inside: readonly string[] = ["unshare", "--net", "--"],
): Promise<{ readonly rules: Rules } | { readonly missing: string }> {
  const problems: string[] = [];
  for (const rules of [nftRules, iptablesRules]) {
    const problem = await tryOut(rules, inside);
    if (problem === null) return { rules };
    problems.push(problem);
  }
  return { missing: `neither nft nor iptables works here: ${problems.join("; ")}` };
}

async function tryOut(rules: Rules, inside: readonly string[]): Promise<string | null> {
  const { command, input } = rules.setUp([{ id: 1, address: "10.0.0.1" }], [{ address: "10.0.0.1", classId: 1 }]);
  return whyNot([...inside, ...command], input);
}

/** `inside`: the words before a command that bring it into the party's namespace. */
export async function obey(inside: readonly string[], { command, input }: Order): Promise<string> {
  return runCommand([...inside, ...command], input);
}
