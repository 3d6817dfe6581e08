/** Encodings for tests: a small multiplicative hash for the chain, one line of text for configurations. */
import type { Configuration, EntryCodec, Member, NodeId } from "../../src/index.js";

const kinds = { noop: 1, command: 2, configuration: 3 } as const;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export const testCodec: EntryCodec = {
  chainFor(previousChain, index, term, kind, payload) {
    let hash = mix(mix(mix(previousChain ^ 0x9e3779b9, index), term), kinds[kind]);
    for (const byte of payload) hash = mix(hash, byte);
    return hash >>> 0;
  },
  encodeConfiguration(configuration) {
    const parts = [
      ...[configuration.voters, configuration.outgoing, configuration.learners].map(idsOf),
      configuration.removed,
    ];
    if (parts.flat().some((id) => !/^\w+$/.test(id))) throw new Error("an id can't be written down");
    return encoder.encode(parts.map((ids) => ids.join(",")).join(";"));
  },
  decodeConfiguration(payload) {
    const parts = decoder.decode(payload).split(";");
    if (parts.length !== 4) throw new Error("no configuration");
    const [voters, outgoing, learners, removed] = parts.map((part) => (part === "" ? [] : part.split(",")));
    return configurationOf(voters ?? [], outgoing ?? [], learners ?? [], removed ?? []);
  },
};

export function configurationOf(
  voters: readonly NodeId[],
  outgoing: readonly NodeId[] = [],
  learners: readonly NodeId[] = [],
  removed: readonly NodeId[] = [],
): Configuration {
  return { voters: voters.map(memberOf), outgoing: outgoing.map(memberOf), learners: learners.map(memberOf), removed };
}

export function bytesOf(text: string): Uint8Array {
  return encoder.encode(text);
}

export function textOf(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

export function memberOf(id: NodeId): Member {
  return { id, instance: `${id}-1`, peer: `${id}:1`, client: `${id}:2` };
}

function idsOf(members: readonly Member[]): NodeId[] {
  return members.map((member) => member.id);
}

function mix(hash: number, value: number): number {
  const low = Math.imul(hash ^ (value | 0), 0x85ebca6b);
  return Math.imul(low ^ (low >>> 13) ^ Math.floor(value / 0x1_0000_0000), 0xc2b2ae35) ^ (low >>> 16);
}
