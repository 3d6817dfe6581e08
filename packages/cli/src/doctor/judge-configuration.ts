/** Whether all nodes go by the same configuration: the log's, which counts, and the file's, which gives addresses, times and limits. Pure. */
import type { ClusterFacts, ConfigurationFile, Examined } from "./cluster-facts.js";
import { listed, removedIn } from "./cluster-facts.js";
import { findingsOr, manual, problem, warning } from "./finding.js";
import type { Finding } from "./finding.js";

type InForce = NonNullable<Examined["after"]["host"]>;

export function judgeConfiguration(facts: ClusterFacts, examined: readonly Examined[]): readonly Finding[] {
  const newest = newestOf(examined);
  const inForce = newest?.configuration ?? null;
  const files = [
    ...examined.map(({ id, after }) => ({ node: id, name: `the file of ${id}`, file: after.file })),
    ...(facts.file === null ? [] : [{ node: null, name: facts.file.name, file: facts.file.content }]),
  ];
  const faults = [
    ...(newest === null ? [] : agreementFaults(examined, newest)),
    ...files.flatMap(({ node, name, file }) => (inForce === null ? [] : addressFaults(node, name, file, inForce))),
    ...(facts.file === null || inForce === null
      ? []
      : memberFaults(facts.file.name, facts.file.content, inForce, removedIn(examined))),
    ...fileFaults(files),
  ];
  const voters = inForce?.voters.map(({ id }) => id) ?? [];
  const learners = inForce?.learners.map(({ id }) => id) ?? [];
  const seen =
    newest === null
      ? "not formed yet, and the files are equal"
      : `equal on all, and no file says otherwise: voters ${listed(voters)}${learners.length === 0 ? "" : `, learners ${listed(learners)}`}`;
  return findingsOr("configuration", faults, seen);
}

function newestOf(examined: readonly Examined[]): InForce | null {
  const hosts = examined.flatMap(({ after }) => after.host ?? []);
  return hosts.reduce<InForce | null>(
    (newest, host) => (newest === null || host.configurationIndex > newest.configurationIndex ? host : newest),
    null,
  );
}

function agreementFaults(examined: readonly Examined[], newest: InForce): readonly Finding[] {
  const faults: Finding[] = [];
  if (newest.configuration.outgoing.length > 0) {
    faults.push(
      warning("configuration", {
        node: null,
        seen: `a change of members is under way: from ${textOf(newest.configuration.outgoing)} to ${textOf(newest.configuration.voters)}`,
        why: "Until it is done a majority of both is needed.",
        mend: "wait, and run this again; with a leader holdfast member list shows how far it is",
      }),
    );
  }
  for (const { id, after } of examined) {
    if (after.host === null) continue;
    const { configuration, configurationIndex } = after.host;
    // After a snapshot it has the snapshot's index: the same configuration may bear several.
    if (JSON.stringify(configuration) === JSON.stringify(newest.configuration)) continue;
    if (configurationIndex < newest.configurationIndex) {
      faults.push(
        warning("configuration", {
          node: id,
          seen: `goes by the configuration of index ${configurationIndex}, and the newest is that of ${newest.configurationIndex}`,
          why: "It is behind, or cut off.",
          mend: "see lag and links, and run this again",
        }),
      );
    } else {
      faults.push(
        problem("configuration", {
          node: id,
          seen: `has another configuration of index ${configurationIndex} than the others`,
          why: "One index has one configuration in a sound cluster: these are two clusters, or something is badly wrong.",
          mend: `stop it, keep its directory, and check that: holdfast doctor --data ${after.dataDirectory}`,
        }),
      );
    }
  }
  return faults;
}

function textOf(members: InForce["configuration"]["voters"]): string {
  return listed(members.map(({ id }) => id));
}

/** A node calls the others where its file says; where the file doesn't name one, and at all other nodes, the log's address counts. */
function addressFaults(
  node: string | null,
  name: string,
  file: ConfigurationFile,
  { voters, learners }: InForce["configuration"],
): readonly Finding[] {
  return [...voters, ...learners].flatMap((member) => {
    const told = file.nodes.find(({ id }) => id === member.id);
    if (told === undefined || (told.peer === member.peer && told.client === member.client)) return [];
    return warning("configuration", {
      node,
      seen: `${name} has ${member.id} at ${told.peer} and ${told.client}, and the cluster at ${member.peer} and ${member.client}`,
      why: "Who has the file calls it where the file says; the others and the clients where the cluster says.",
      mend: `put the right addresses into the file on all machines: ${manual}#three-machines`,
    });
  });
}

/** A node's own file may be older than the members: what is judged is the one that somebody takes for the cluster's. */
function memberFaults(
  name: string,
  file: ConfigurationFile,
  { voters, outgoing, learners }: InForce["configuration"],
  removed: readonly string[],
): readonly Finding[] {
  const fault = (seen: string): Finding =>
    warning("configuration", {
      node: null,
      seen,
      why: "Who belongs to the cluster stands in its log; the file is out of date, or that of another cluster.",
      mend: "correct the file; holdfast member list tells who belongs to the cluster",
    });
  const members = [...voters, ...outgoing, ...learners].map(({ id }) => id);
  const named = file.nodes.map(({ id }) => id);
  return [
    ...members
      .filter((id) => !named.includes(id))
      .map((id) => fault(`${name} doesn't name ${id}, a member of the cluster`)),
    ...named
      .filter((id) => !members.includes(id))
      .map((id) =>
        fault(
          `${name} names ${id}, which ${removed.includes(id) ? "was removed from" : "is no member of"} the cluster`,
        ),
      ),
  ];
}

/** Times and limits must be the same everywhere: a leader that is patient, and followers that aren't, vote each other down. */
function fileFaults(
  files: readonly { readonly node: string | null; readonly name: string; readonly file: ConfigurationFile }[],
) {
  const [first, ...others] = files;
  if (first === undefined) return [];
  const expected = numbersIn(first.file);
  return others.flatMap(({ node, name, file }) => {
    const differing = [...numbersIn(file)].filter(([path, value]) => expected.get(path) !== value);
    if (differing.length === 0) return [];
    const told = differing.map(([path, value]) => `${path} is ${value}, not ${expected.get(path)}`);
    return warning("configuration", {
      node,
      seen: `${name} differs from ${first.name}: ${told.join("; ")}`,
      why: "Elections, leases and limits are reckoned with these: they must be the same on all nodes.",
      mend: `put one file on all machines and restart the nodes one by one: ${manual}#stopping-restarting-upgrading`,
    });
  });
}

function numbersIn({ cluster, timing, limits }: ConfigurationFile): Map<string, unknown> {
  const named = (section: string, values: object): [string, unknown][] =>
    Object.entries(values).map(([name, value]) => [`${section}.${name}`, value]);
  return new Map([["cluster", cluster], ...named("timing", timing), ...named("limits", limits)]);
}
