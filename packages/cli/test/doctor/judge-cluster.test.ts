/** Facts in, findings out. Each row is a healthy cluster with one thing wrong; what is expected is all that isn't "ok". */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ClusterFacts } from "../../src/doctor/cluster-facts.js";
import type { Finding } from "../../src/doctor/finding.js";
import { judgeCluster } from "../../src/doctor/judge-cluster.js";
import { addressesOf, clockAt, config, gib, healthy } from "./facts.js";
import type { Changeable } from "./facts.js";

type Facts = Changeable<ClusterFacts>;
type Node = Facts["nodes"][number];

/** Each finding that isn't "ok" as a line: severity, check, node, what was seen. */
function linesOf(findings: readonly Finding[]): string {
  return findings
    .filter(({ severity }) => severity !== "ok")
    .map(({ severity, check, node, seen }) => `${severity} ${check} ${node ?? "-"}: ${seen}`)
    .join("\n");
}

function nodeOf(facts: Facts, id: string): Node {
  const node = facts.nodes.find(({ endpoint }) => endpoint === addressesOf(id).client);
  assert.ok(node !== undefined);
  return node;
}

type Told = NonNullable<Node["after"]>;

/** What it says after the time of measuring; `both`: before it too. */
function change(facts: Facts, ids: readonly string[], edit: (told: Told) => void, both = false): void {
  for (const id of ids) {
    const { before, after } = nodeOf(facts, id);
    assert.ok(before !== null && after !== null);
    edit(after);
    if (both) edit(before);
  }
}

function hostOf(told: Told): NonNullable<Told["host"]> {
  assert.ok(told.host !== null);
  return told.host;
}

function statusOf(told: Told): NonNullable<Told["status"]> {
  assert.ok(told.status !== null);
  return told.status;
}

function silence(facts: Facts, id: string, message = "connect ECONNREFUSED"): void {
  Object.assign(nodeOf(facts, id), { before: null, after: null, error: { kind: "silent", message }, samples: [] });
}

function unlink(facts: Facts, from: string, to: string): void {
  change(facts, [from], ({ links }) => links.forEach((link) => (link.isLinked &&= link.id !== to)), true);
}

/** Nobody hears it any more. */
function lose(facts: Facts, id: string): void {
  for (const other of ["n1", "n2", "n3"])
    if (other !== id && nodeOf(facts, other).after !== null) unlink(facts, other, id);
  silence(facts, id);
}

/** By a change of members that both others know. */
function remove(facts: Facts, id: string): void {
  const others = ["n1", "n2", "n3"].filter((each) => each !== id);
  change(
    facts,
    others,
    (told) => {
      const host = hostOf(told);
      host.configuration.voters = host.configuration.voters.filter((voter) => voter.id !== id);
      host.removed = [id];
      host.followers = host.followers.filter((follower) => follower.id !== id);
    },
    true,
  );
}

function storedMs(p50Ms: number, p99Ms: number, maxMs: number): NonNullable<NonNullable<Told["host"]>["syncs"]> {
  return { count: 1_000, p50Ms, p99Ms, maxMs };
}

interface Row {
  readonly name: string;
  readonly edit: (facts: Facts) => void;
  readonly expected: string;
}

const table: readonly Row[] = [
  { name: "nothing", edit: () => undefined, expected: "" },
  {
    name: "a node is down",
    edit: (facts) => lose(facts, "n3"),
    expected: "problem reachable n3: 10.0.0.3:7101 doesn't answer: connect ECONNREFUSED",
  },
  {
    name: "a node stands still, or its client port is cut off",
    edit: (facts) => silence(facts, "n3", "no answer within 3000 ms"),
    expected: "problem reachable n3: 10.0.0.3:7101 doesn't answer: no answer within 3000 ms; linked with n1, n2",
  },
  {
    name: "a node stops while it is watched",
    edit: (facts) => Object.assign(nodeOf(facts, "n3"), { after: null, error: { kind: "silent", message: "gone" } }),
    expected: "problem reachable n3: 10.0.0.3:7101 has ceased to answer: gone; linked with n1, n2",
  },
  {
    name: "an address of nobody",
    edit: ({ nodes }) =>
      void nodes.push({
        endpoint: "old:7101",
        before: null,
        after: null,
        error: { kind: "silent", message: "ENOTFOUND" },
        samples: [],
      }),
    expected: "warning reachable -: old:7101 doesn't answer: ENOTFOUND",
  },
  {
    name: "an address of a node that was removed, by a node's own file",
    edit: (facts) => {
      remove(facts, "n3");
      silence(facts, "n3");
    },
    expected: "warning reachable n3: 10.0.0.3:7101 doesn't answer: n3 was removed from the cluster",
  },
  {
    name: "a file that names a node that was removed",
    edit: (facts) => {
      remove(facts, "n3");
      facts.nodes.pop();
      Object.assign(facts, { file: { name: "cluster.json", content: config } });
    },
    expected: "warning configuration -: cluster.json names n3, which was removed from the cluster",
  },
  {
    name: "another program at an address",
    edit: ({ nodes }) =>
      void nodes.push({
        endpoint: "web:80",
        before: null,
        after: null,
        error: { kind: "foreign", message: "HTTP status 404" },
        samples: [],
      }),
    expected: "problem reachable -: web:80 answers, and can't be examined: HTTP status 404",
  },
  {
    name: "nobody answers",
    edit: (facts) => ["n1", "n2", "n3"].forEach((id) => silence(facts, id)),
    expected: [1, 2, 3]
      .map((at) => `problem reachable -: 10.0.0.${at}:7101 doesn't answer: connect ECONNREFUSED`)
      .join("\n"),
  },
  {
    name: "a node that waits for the others to form the cluster",
    edit: (facts) => {
      facts.nodes.splice(1);
      unlink(facts, "n1", "n3");
      change(facts, ["n1"], (told) => {
        Object.assign(told, { host: null, status: null });
        told.health = { isLive: true, isReady: false, problem: "the cluster is not formed yet" };
      });
    },
    expected: "problem reachable n1: is up, and not part of a cluster yet: the cluster is not formed yet",
  },
  {
    name: "a node has formed the cluster below what the others were told",
    edit: (facts) => {
      change(facts, ["n2", "n3"], (told) => {
        const reason = "its log begins at 1, and this node was told to begin at 100";
        Object.assign(told, { host: null, status: null, refusedBeginning: { from: "n1", problem: reason } });
        told.health = { isLive: true, isReady: false, problem: "the cluster is not formed yet" };
      });
      change(facts, ["n1"], (told) => Object.assign(statusOf(told), { role: "preCandidate", leader: null }), true);
    },
    expected: [
      "problem reachable n2: is up, and refuses the cluster that n1 has formed: its log begins at 1, and this node was told to begin at 100",
      "problem reachable n3: is up, and refuses the cluster that n1 has formed: its log begins at 1, and this node was told to begin at 100",
      "problem leader -: nobody leads: 1 of 3 voters answers (n1)",
    ].join("\n"),
  },
  {
    name: "two of three are down",
    edit: (facts) => {
      lose(facts, "n2");
      lose(facts, "n1");
      change(facts, ["n3"], (told) => (statusOf(told).leader = null));
    },
    expected: [
      "problem reachable n1: 10.0.0.1:7101 doesn't answer: connect ECONNREFUSED",
      "problem reachable n2: 10.0.0.2:7101 doesn't answer: connect ECONNREFUSED",
      "problem leader -: nobody leads: 1 of 3 voters answers (n3)",
    ].join("\n"),
  },
  {
    name: "an old majority is gone in the middle of a change",
    edit: (facts) => {
      for (const id of ["n1", "n2"]) lose(facts, id);
      change(facts, ["n3"], (told) => {
        const { configuration } = hostOf(told);
        configuration.outgoing = configuration.voters;
        configuration.voters = configuration.voters.slice(2);
        statusOf(told).leader = null;
      });
    },
    expected: [
      "problem reachable n1: 10.0.0.1:7101 doesn't answer: connect ECONNREFUSED",
      "problem reachable n2: 10.0.0.2:7101 doesn't answer: connect ECONNREFUSED",
      "warning configuration -: a change of members is under way: from n1, n2, n3 to n3",
      "problem leader -: nobody leads: 1 of 3 voters answers (n3)",
    ].join("\n"),
  },
  {
    name: "all are up and nobody leads",
    edit: (facts) =>
      change(facts, ["n1", "n2", "n3"], (told) =>
        Object.assign(statusOf(told), { role: "preCandidate", leader: null }),
      ),
    expected: "problem leader -: nobody leads, although a majority answers: n1, n2, n3",
  },
  {
    name: "a node believes in an old leader",
    edit: (facts) => change(facts, ["n3"], (told) => Object.assign(statusOf(told), { leader: "n2", term: 3 }), true),
    expected: "problem leader n3: takes n2 for the leader in term 3, and n1 leads in term 4",
  },
  {
    name: "two lead, one of them in an older term",
    edit: (facts) =>
      change(facts, ["n3"], (told) => Object.assign(statusOf(told), { role: "leader", leader: "n3", term: 3 }), true),
    expected: "problem leader n3: takes n3 for the leader in term 3, and n1 leads in term 4",
  },
  {
    name: "an election in between",
    edit: (facts) => change(facts, ["n1", "n2", "n3"], (told) => (statusOf(told).term = 5)),
    expected: "warning leader n1: leads since a moment ago: term 4 became 5 in the meantime",
  },
  {
    name: "a node of another cluster",
    edit: (facts) => change(facts, ["n2"], (told) => (statusOf(told).clusterId = "beef")),
    expected: "problem cluster id -: these addresses lead to 2 clusters: cafe (n1, n3), beef (n2)",
  },
  {
    name: "a restored n1 beside an old cluster: nothing is said that compares them",
    edit: (facts) => {
      const restored = structuredClone(nodeOf(facts, "n1"));
      const [before, after] = [restored.before, restored.after];
      assert.ok(before !== null && after !== null);
      restored.endpoint = "10.0.0.9:7101";
      for (const told of [before, after]) {
        Object.assign(statusOf(told), { clusterId: "beef", commitIndex: 10 ** 15, lastApplied: 10 ** 15, term: 9 });
        hostOf(told).configurationIndex = 10 ** 15;
        told.links = [];
      }
      facts.nodes.push(restored);
    },
    expected: "problem cluster id -: these addresses lead to 2 clusters: cafe (n1, n2, n3), beef (n1)",
  },
  {
    name: "two nodes of one id",
    edit: (facts) => {
      const twin = structuredClone(nodeOf(facts, "n3"));
      assert.ok(twin.after !== null);
      twin.endpoint = "10.0.0.9:7101";
      twin.after.dataDirectory = "/tmp/copy";
      facts.nodes.push(twin);
    },
    expected: "problem cluster id n3: there are two nodes of this id; one has its data in /tmp/copy",
  },
  {
    name: "one has not learnt of a new member; that the nodes' own files don't name it is no fault",
    edit: (facts) =>
      change(facts, ["n1", "n2"], (told) => {
        const host = hostOf(told);
        host.configuration.learners = [{ ...addressesOf("n4"), instance: "in4" }];
        host.configurationIndex = 900;
      }),
    expected: "warning configuration n3: goes by the configuration of index 0, and the newest is that of 900",
  },
  {
    name: "members that the file that was named doesn't have",
    edit: (facts) =>
      Object.assign(facts, { file: { name: "my.json", content: { ...config, nodes: [addressesOf("n1")] } } }),
    expected: [
      "warning configuration -: my.json doesn't name n2, a member of the cluster",
      "warning configuration -: my.json doesn't name n3, a member of the cluster",
    ].join("\n"),
  },
  {
    name: "one configuration, which a node has from its snapshot",
    edit: (facts) => change(facts, ["n2"], (told) => (hostOf(told).configurationIndex = 80)),
    expected: "",
  },
  {
    name: "one index, two configurations",
    edit: (facts) => change(facts, ["n3"], (told) => void hostOf(told).configuration.voters.splice(0, 1)),
    expected: "problem configuration n3: has another configuration of index 0 than the others",
  },
  {
    name: "a file with another address",
    edit: (facts) =>
      change(facts, ["n2"], ({ file }) => (file.nodes[2] = { id: "n3", peer: "10.9.9.9:1", client: "10.0.0.3:7101" })),
    expected:
      "warning configuration n2: the file of n2 has n3 at 10.9.9.9:1 and 10.0.0.3:7101, and the cluster at 10.0.0.3:7201 and 10.0.0.3:7101",
  },
  {
    name: "files with other times and limits, and a stranger in the one that was named",
    edit: (facts) => {
      change(facts, ["n3"], ({ file }) => {
        file.timing.electionTimeoutMs = 900;
        file.limits.sessionsMax = 5;
      });
      const nodes = [...config.nodes, { ...addressesOf("n7") }];
      Object.assign(facts, { file: { name: "my.json", content: { ...config, cluster: "mine", nodes } } });
    },
    expected: [
      "warning configuration -: my.json names n7, which is no member of the cluster",
      `warning configuration n3: the file of n3 differs from the file of n1: timing.electionTimeoutMs is 900, not 500; limits.sessionsMax is 5, not ${config.limits.sessionsMax}`,
      "warning configuration -: my.json differs from the file of n1: cluster is mine, not test",
    ].join("\n"),
  },
  {
    name: "a link is missing in one direction",
    edit: (facts) => unlink(facts, "n3", "n2"),
    expected: "problem links n2: is not linked with n3 (says n3)",
  },
  {
    name: "the leader doesn't hear a follower",
    edit: (facts) =>
      change(facts, ["n1"], (told) => (hostOf(told).followers = [{ id: "n2", behindEntries: 0, heardMsAgo: 1_001 }])),
    expected: "warning links n2: the leader n1 has not heard it for 1001 ms",
  },
  {
    name: "a follower that catches up, and one that doesn't",
    edit: (facts) => {
      for (const id of ["n2", "n3"]) change(facts, [id], (told) => (statusOf(told).lastApplied = 100), true);
      change(facts, ["n3"], (told) => (statusOf(told).lastApplied = 999));
      change(facts, ["n1"], (told) => (statusOf(told).commitIndex = 1_010));
    },
    expected: [
      "problem lag n2: is 910 entries behind n1, and stands still",
      "warning lag n3: is 11 entries behind n1, and catching up",
    ].join("\n"),
  },
  {
    name: "a follower that is only as far behind as the questions were apart",
    edit: (facts) => change(facts, ["n1"], (told) => (statusOf(told).commitIndex = 5_000)),
    expected: "",
  },
  {
    name: "clocks that differ by less than is noted",
    edit: (facts) => (nodeOf(facts, "n2").samples = clockAt(1.004)),
    expected: "",
  },
  {
    name: "a clock that differs by more than is noted",
    edit: (facts) => (nodeOf(facts, "n2").samples = clockAt(1.008)),
    expected: "warning clock rate n2: its clock runs at least 0.73 % faster than that of this machine",
  },
  {
    name: "a clock that differs by more than the promises bear",
    edit: (facts) => (nodeOf(facts, "n3").samples = clockAt(0.97)),
    expected: "problem clock rate n3: its clock runs at least 2.94 % slower than that of this machine",
  },
  {
    name: "this machine's own clock differs from all others",
    edit: ({ nodes }) => nodes.forEach((node) => (node.samples = clockAt(1.02))),
    expected: "problem clock rate this machine: its clock runs at least 1.90 % slower than that of n1",
  },
  {
    name: "clocks over round trips that explain everything",
    edit: ({ nodes }) =>
      nodes.forEach((node, at) => {
        node.samples = clockAt(at === 1 ? 1.02 : 1).map((each) => ({ ...each, receivedMs: each.receivedMs + 150 }));
      }),
    expected: "",
  },
  {
    name: "a disk that is slow, one that is too slow, and one that hangs",
    edit: (facts) => {
      change(facts, ["n1"], (told) => (hostOf(told).syncs = storedMs(20, 100, 499)));
      change(facts, ["n2"], (told) => (hostOf(told).syncs = storedMs(20, 500, 900)));
      change(facts, ["n3"], (told) => (hostOf(told).isDiskOverdue = true));
    },
    expected: [
      "warning disk sync n1: of its last 1000 writes one in a hundred takes 100 ms or more (median 20, longest 499)",
      "problem disk sync n2: of its last 1000 writes one in a hundred takes 500 ms or more (median 20, longest 900)",
      "problem disk sync n3: a write to its disk has been under way for more than 1000 ms",
    ].join("\n"),
  },
  {
    name: "a disk of which too little is known, one that had a bad moment at its start, and one that is slow from the start",
    edit: (facts) => {
      change(facts, ["n1"], (told) => (hostOf(told).syncs = { ...storedMs(900, 900, 900), count: 9 }));
      change(facts, ["n2"], (told) => (hostOf(told).syncs = { ...storedMs(9, 900, 900), count: 189 }));
      change(facts, ["n3"], (told) => (hostOf(told).syncs = { ...storedMs(600, 900, 950), count: 20 }));
    },
    expected: "problem disk sync n3: of its last 20 writes half take 600 ms or more (median 600, longest 950)",
  },
  {
    name: "a disk that fills, and one that is full",
    edit: (facts) => {
      change(facts, ["n1"], (told) => (told.disk = { freeBytes: 1.5 * gib, totalBytes: 9 * gib }));
      change(facts, ["n2"], (told) => (told.disk = { freeBytes: gib / 5, totalBytes: 9 * gib }));
      change(facts, ["n3"], (told) => (told.disk = null));
    },
    expected: [
      "warning disk space n1: 1.5 GiB are left where /var/lib/holdfast is",
      "problem disk space n2: 204 MiB are left where /var/lib/holdfast is",
    ].join("\n"),
  },
  {
    name: "an upgrade half-way",
    edit: (facts) =>
      change(facts, ["n1"], (told) => Object.assign(told, { release: "1.1.0", versions: { min: 1, max: 2 } })),
    expected:
      "warning versions -: the nodes run different releases: n1 1.1.0 (protocol 1), n2 1.0.0 (protocol 1), n3 1.0.0 (protocol 1)",
  },
  {
    name: "an upgrade that was not finalized",
    edit: (facts) => change(facts, ["n1", "n2", "n3"], (told) => (told.versions = { min: 1, max: 2 })),
    expected: "warning versions -: the cluster is at version 1, and all nodes run version 2",
  },
  {
    name: "a node that can't follow",
    edit: (facts) => {
      change(facts, ["n1", "n2"], (told) => {
        told.versions = { min: 1, max: 2 };
        statusOf(told).clusterVersion = 2;
      });
    },
    expected: "problem versions n3: runs versions 1 to 1, and the cluster is at 2",
  },
  {
    name: "limits that are near, and reached",
    edit: (facts) => {
      change(facts, ["n1", "n2"], (told) => (statusOf(told).sessions = 0.8 * config.limits.sessionsMax));
      change(facts, ["n3"], (told) => (told.connections = config.limits.clientConnectionsMax));
    },
    expected: [
      `warning limits n1: ${0.8 * config.limits.sessionsMax} of ${config.limits.sessionsMax} sessions`,
      `problem limits n3: ${config.limits.clientConnectionsMax} of ${config.limits.clientConnectionsMax} connections`,
    ].join("\n"),
  },
  {
    name: "a loop that stood still just now, one that does so often, and one that did so once",
    edit: (facts) => {
      change(facts, ["n1"], (told) => (hostOf(told).stalls = { count: 1, longestMs: 400, lastMsAgo: 10 }));
      change(facts, ["n2"], (told) => (hostOf(told).stalls = { count: 7, longestMs: 300, lastMsAgo: 9_000 }), true);
      change(facts, ["n3"], (told) => (hostOf(told).stalls = { count: 6, longestMs: 300, lastMsAgo: 9_000 }), true);
    },
    expected: [
      "warning stalls n1: its loop stood still 1 times since its start, the longest for 400 ms, and while it was watched",
      "warning stalls n2: its loop stood still 7 times since its start, the longest for 300 ms",
    ].join("\n"),
  },
];

describe("judging a cluster", () => {
  for (const { name, edit, expected } of table) {
    it(name, () => {
      const facts = healthy();
      edit(facts);
      assert.equal(linesOf(judgeCluster(facts)), expected);
    });
  }

  it("gives the command for each who doesn't answer: a voter, a learner, one that was removed", () => {
    const mendFor = (edit: (facts: Facts) => void): string | null => {
      const facts = healthy();
      edit(facts);
      lose(facts, "n3");
      return judgeCluster(facts).find(({ check, node }) => check === "reachable" && node === "n3")?.mend ?? null;
    };
    assert.match(mendFor(() => undefined) ?? "", /start it; .*holdfast member replace n3 NEW --peer/);
    const learning = mendFor((facts) =>
      change(facts, ["n1", "n2"], (told) => {
        const { configuration } = hostOf(told);
        configuration.learners = configuration.voters.splice(2);
      }),
    );
    assert.match(learning ?? "", /start it; .*holdfast member remove n3$/);
    // Nobody can be replaced without a majority.
    const lost = mendFor((facts) => {
      lose(facts, "n2");
      change(facts, ["n1"], (told) => Object.assign(statusOf(told), { role: "follower", leader: null }));
    });
    assert.match(lost ?? "", /start it; .*if its disk is lost: docs\/operations.md#lost-majority/);
    assert.doesNotMatch(lost ?? "", /member replace/);
    assert.match(mendFor((facts) => remove(facts, "n3")) ?? "", /gets a new id: holdfast member add ID --peer/);
  });

  it("says of everything that was looked at that it is well", () => {
    const findings = judgeCluster(healthy());
    assert.deepEqual(
      findings.map(({ check, seen }) => `${check}: ${seen}`),
      [
        "reachable: all nodes answer: n1, n2, n3",
        "cluster id: all belong to cafe",
        "configuration: equal on all, and no file says otherwise: voters n1, n2, n3",
        "leader: n1 leads in term 4, and all know it",
        "links: each hears each other",
        "lag: all have applied what was committed before (index 1000)",
        "clock rate: no clock differs by 0.067 % or more",
        "disk sync: p50/p99/max in ms of the last writes: n1 1.5/9.0/31, n2 1.5/9.0/31, n3 1.5/9.0/31",
        "disk space: free: n1 50.0 GiB, n2 50.0 GiB, n3 50.0 GiB",
        "versions: all run release 1.0.0; the cluster is at version 1",
        "limits: sessions: 7, locks: 9",
        "stalls: no loop has stood still",
      ],
    );
  });
});
