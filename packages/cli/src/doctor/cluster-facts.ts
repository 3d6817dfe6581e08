/** What the nodes of a running cluster say of themselves, as it is judged. */
import type { CheckupAnswer, Config } from "@holdfast/server";
import type { ClockSample } from "./clock-rates.js";

export type ConfigurationFile = CheckupAnswer["file"];

/** A node, by one of its addresses. */
export interface NodeFacts {
  readonly endpoint: string;
  /** Null when it didn't answer. */
  readonly before: CheckupAnswer | null;
  /** After the time of measuring. */
  readonly after: CheckupAnswer | null;
  /** Why there is no answer; null when there is one. */
  readonly error: AskError | null;
  readonly samples: readonly ClockSample[];
}

export interface AskError {
  /** "silent": nobody is there, or nothing came in time. "foreign": somebody answered who can't be examined. */
  readonly kind: "silent" | "foreign";
  readonly message: string;
}

export interface ClusterFacts {
  /** One for each node that answered and each address that didn't. */
  readonly nodes: readonly NodeFacts[];
  /** The configuration file that was named; null when none was. */
  readonly file: { readonly name: string; readonly content: Pick<Config, keyof ConfigurationFile> } | null;
}

/** A node that answered to the end. */
export interface Examined {
  readonly id: string;
  readonly endpoint: string;
  readonly before: CheckupAnswer;
  readonly after: CheckupAnswer;
  readonly samples: readonly ClockSample[];
}

export function examinedIn({ nodes }: ClusterFacts): readonly Examined[] {
  const examined = nodes.flatMap(({ endpoint, before, after, samples }) =>
    before === null || after === null ? [] : [{ id: after.id, endpoint, before, after, samples }],
  );
  return examined.sort((a, b) => (a.id < b.id ? -1 : 1));
}

export interface KnownMember {
  readonly id: string;
  readonly peer: string;
  readonly client: string;
}

/** Everybody whom a configuration in force names, the newest configuration first. */
export function membersIn(examined: readonly Examined[]): readonly KnownMember[] {
  const members = new Map<string, KnownMember>();
  const hosts = examined.flatMap(({ after }) => after.host ?? []);
  for (const { configuration } of hosts.sort((a, b) => b.configurationIndex - a.configurationIndex)) {
    const { voters, outgoing, learners } = configuration;
    for (const member of [...voters, ...outgoing, ...learners]) {
      if (!members.has(member.id)) members.set(member.id, member);
    }
  }
  return [...members.values()];
}

/** Ids that are in use no more, for ever. */
export function removedIn(examined: readonly Examined[]): readonly string[] {
  // A release before this one doesn't tell.
  return examined.flatMap(({ after }) => after.host?.removed ?? []);
}

/** The one that leads in the highest term that any node knows; null when it isn't among those who answered. */
export function leaderIn(examined: readonly Examined[]): Examined | null {
  const termOf = ({ after }: Examined): number => after.status?.term ?? 0;
  const newest = Math.max(0, ...examined.map(termOf));
  return examined.find((node) => node.after.status?.role === "leader" && termOf(node) === newest) ?? null;
}

export function listed(ids: readonly string[]): string {
  return ids.join(", ");
}
