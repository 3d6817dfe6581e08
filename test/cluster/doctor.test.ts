/** `holdfast doctor` on real processes and on their directories, by the commands of docs/operations.md. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { performance } from "node:perf_hooks";
import { after, before, describe, it } from "node:test";
import { runCli } from "../cli/cli-process.js";
import { statusOf, TestCluster } from "../harness/cluster.js";
import type { TestNode } from "../harness/cluster.js";
import { assertInRefusals, commandsOf, run } from "../harness/operations-page.js";
import { until } from "../harness/until.js";

interface Finding {
  readonly severity: "ok" | "warning" | "problem";
  readonly check: string;
  readonly node: string | null;
  readonly seen: string;
  readonly mend: string | null;
}

interface Told {
  readonly code: number | string;
  readonly findings: readonly Finding[];
  /** Those that speak of no machine under load: what a disk or a CPU shared with other tests makes of a cluster is no finding here. */
  readonly faults: readonly Finding[];
}

const exits = { ok: 0, warning: 3, problem: 4 } as const;

function doctor(...words: readonly string[]): Promise<Told> {
  return examined(["holdfast", "doctor", ...words]);
}

/** `command`: of the page, or with other options. */
async function examined(command: readonly string[], environment: Record<string, string> = {}): Promise<Told> {
  const { code, out, err } = await run([...command, "--json"], environment);
  assert.notEqual(out, "", err);
  const { verdict, findings } = JSON.parse(out) as { verdict: keyof typeof exits; findings: readonly Finding[] };
  assert.equal(code, exits[verdict], out);
  const ofLoad = ["disk sync", "stalls"];
  return {
    code,
    findings,
    faults: findings.filter(({ severity, check }) => severity !== "ok" && !ofLoad.includes(check)),
  };
}

function linesOf(findings: readonly Finding[]): readonly string[] {
  return findings.map(({ severity, check, node }) => `${severity} ${check} ${node}`);
}

/** Every file with the hash of its bytes, but for those of the directory's lock. */
function contentsOf(directory: string): Record<string, string> {
  const files = readdirSync(directory, { withFileTypes: true, recursive: true }).filter((entry) => entry.isFile());
  const paths = files
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !relative(directory, path).startsWith("lock/"));
  return Object.fromEntries(
    paths.map((path) => [relative(directory, path), createHash("sha256").update(readFileSync(path)).digest("hex")]),
  );
}

describe("holdfast doctor", { timeout: 480_000 }, () => {
  let cluster: TestCluster;
  let leader: TestNode;
  let follower: TestNode;

  before(async () => {
    // Patient nodes: an election that the load of other tests brings about would be a finding.
    const timing = { heartbeatMs: 400, electionTimeoutMs: 2_000 };
    cluster = await TestCluster.start({ timing, limits: { snapshotEntries: 20 }, leaderMs: 90_000 });
    const client = await cluster.connect();
    for (let at = 0; at < 40; at += 1) await (await client.acquire(`work:${at % 7}`, { waitMs: 120_000 })).release();
  });
  after(async () => cluster?.close());

  /** The page's commands: of the cluster, of the cluster compared with its file, of a stopped node's directory, of a store. */
  function commands(directory: string): string[][] {
    const words = {
      "/etc/holdfast/cluster.json": join(cluster.root, "cluster.json"),
      "/var/lib/holdfast": directory,
      "postgres://app@db.example/app": "postgres://app@127.0.0.1:1/app",
    };
    return commandsOf("Doctor", 4, { words });
  }

  it("looks at a store with the driver of the folder where it is called, or says which is missing", async () => {
    const [, , , store = []] = commands("");
    const { code, err } = await run([...store, "--json"], {});
    const { error } = JSON.parse(err) as { error: { code: string; message: string } };
    assert.deepEqual([code, error.code], [1, "driver_missing"]);
    assert.match(error.message, /npm install pg/);
  });

  it("finds nothing wrong with a healthy cluster, and learns its other nodes from one", async () => {
    // An election that the load of other tests brings about is told too, and rightly.
    const [told, named] = await until(
      "a look without an election in it",
      async () => {
        leader = await cluster.leader(90_000);
        const [look = [], compared = []] = commands(leader.directory);
        const looks = await Promise.all([
          examined([...look, "--seconds", "1"], { HOLDFAST_ENDPOINTS: leader.endpoint }),
          examined([...compared, "--seconds", "1"]),
        ]);
        return looks.every(({ faults }) => faults.length === 0) ? looks : null;
      },
      90_000,
    );
    for (const { findings } of [told, named]) {
      const checks = [...new Set(findings.map(({ check }) => check))].sort();
      const all = ["clock rate", "cluster id", "configuration", "disk space", "disk sync", "lag", "leader", "limits"];
      assert.deepEqual(checks, [...all, "links", "reachable", "stalls", "versions"]);
      assert.equal(findings.find(({ check }) => check === "reachable")?.seen, "all nodes answer: n1, n2, n3");
    }
  });

  it("compares with a file that says something else", async () => {
    const file = join(cluster.root, "other.json");
    const content = JSON.parse(readFileSync(join(cluster.root, "cluster.json"), "utf8")) as object;
    writeFileSync(file, JSON.stringify({ ...content, timing: { heartbeatMs: 400, electionTimeoutMs: 2_100 } }));
    const { findings } = await doctor("--config", file, "--seconds", "1");
    const found = findings.filter(({ check }) => check === "configuration");
    assert.match(found.map(({ seen }) => seen).join(), /timing\.electionTimeoutMs is 2100, not 2000/);
  });

  it("sees a clock that runs 3 % too fast", async () => {
    leader = await cluster.leader(90_000);
    [follower] = cluster.others(leader) as [TestNode, TestNode];
    const { bin } = follower;
    const fast = join(cluster.root, "fast.mjs");
    const patch =
      "const { performance } = await import('node:perf_hooks'); const now = performance.now.bind(performance);";
    writeFileSync(fast, `${patch} performance.now = () => 1.03 * now(); await import(${JSON.stringify(bin)});\n`);
    await follower.kill();
    follower.bin = fast;
    follower.start();
    const found = await until(
      "the clock is found",
      async () => {
        const { findings } = await doctor("--endpoints", cluster.endpoints.join(), "--seconds", "2");
        const rates = findings.filter(({ check }) => check === "clock rate");
        return rates.some(({ node }) => node === follower.id) ? rates : null;
      },
      60_000,
    );
    assert.deepEqual(linesOf(found), [`problem clock rate ${follower.id}`]);
    const [, least = ""] = /at least ([\d.]+) % faster/.exec(found[0]?.seen ?? "") ?? [];
    assert.ok(Number(least) >= 1 && Number(least) <= 3, least);
    await follower.kill();
    follower.bin = bin;
    follower.start();
  });

  it("doesn't wait for a node that stands still", async () => {
    leader = await cluster.leader(90_000);
    [follower] = cluster.others(leader) as [TestNode, TestNode];
    // It may have been started just now, and a process that is stopped before it listens refuses connections instead of keeping them waiting.
    await until("it answers", () => statusOf(follower), 90_000);
    follower.signal("SIGSTOP");
    try {
      const startedMs = performance.now();
      const { code, findings } = await doctor("--endpoints", cluster.endpoints.join(), "--seconds", "1");
      assert.ok(performance.now() - startedMs < 30_000, "not held up");
      assert.equal(code, 4);
      const [reach] = findings.filter(({ check, node }) => check === "reachable" && node === follower.id);
      assert.equal(reach?.severity, "problem");
      assert.match(reach.seen, /no answer within 3000 ms/);
    } finally {
      follower.signal("SIGCONT");
    }
  });

  it("says of a node that is down how it comes back, and of a majority that is down that nobody leads", async () => {
    await follower.kill();
    const [other] = cluster.others(leader).filter((node) => node !== follower) as [TestNode];
    const look = async (): Promise<readonly Finding[] | null> => {
      const { faults } = await doctor("--endpoints", leader.endpoint, "--seconds", "1");
      return faults.length === 1 ? faults : null;
    };
    const down = await until("no fault but that", look, 90_000);
    assert.deepEqual(linesOf(down), [`problem reachable ${follower.id}`]);
    assert.match(down[0]?.mend ?? "", new RegExp(`start it; .*holdfast member replace ${follower.id} NEW`));
    await other.kill();
    const lostLook = async (): Promise<Finding | null> => {
      const { faults } = await doctor("--endpoints", leader.endpoint, "--seconds", "1");
      return faults.find(({ check, seen }) => check === "leader" && seen.startsWith("nobody leads")) ?? null;
    };
    const lost = await until("nobody leads", lostLook, 90_000);
    assert.match(lost.seen, /^nobody leads: 1 of 3 voters answers/);
    assert.match(lost.mend ?? "", /#lost-majority/);
    const none = await runCli(["doctor", "--endpoints", follower.endpoint, "--seconds", "1"], {});
    assert.equal(none.code, 4);
    assert.match(none.out, /^problem {2}reachable {2}127\.0\.0\.1:\d+ doesn't answer: connect ECONNREFUSED/);
    other.start();
    await cluster.leader(90_000);
  });

  it("reads all of a stopped node's directory and changes nothing in it; a running node's it leaves alone", async () => {
    const running = await runCli(["doctor", "--data", leader.directory], {});
    assert.equal(running.code, 73);
    assert.match(running.err, new RegExp(`is in use by process ${leader.pid};`));
    const contents = contentsOf(follower.directory);
    const [, , examine = []] = commands(follower.directory);
    const { code, findings } = await examined(examine);
    assert.equal(code, 0, JSON.stringify(findings));
    assert.deepEqual(
      findings.map(({ check }) => check),
      ["identity", "mark", "hard state", "log", "snapshot", "state", "configuration", "disk space"],
    );
    assert.match(findings.find(({ check }) => check === "snapshot")?.seen ?? "", /^of index \d+, \d+ chunks/);
    assert.deepEqual(contentsOf(follower.directory), contents);
  });

  it("tells the damage in a directory, each time, and the node still finds it by itself", async () => {
    const copy = `${follower.directory}.damaged`;
    cpSync(follower.directory, copy, { recursive: true });
    // The log of its last life, or the table into which a start has moved it.
    const names = readdirSync(join(copy, "db")).filter((name) => /^\d+\.(log|ldb)$/.test(name));
    const [log = ""] = names.sort((a, b) => statSync(join(copy, "db", b)).size - statSync(join(copy, "db", a)).size);
    const bytes = readFileSync(join(copy, "db", log));
    assert.ok(bytes.length > 200);
    bytes[100] = (bytes[100] as number) ^ 0x40;
    writeFileSync(join(copy, "db", log), bytes);
    const contents = contentsOf(copy);
    for (let look = 0; look < 2; look += 1) {
      const { code, findings } = await doctor("--data", copy);
      assert.equal(code, 4);
      const [first] = findings;
      assert.deepEqual([first?.severity, first?.check, first?.node], ["problem", "integrity", follower.id]);
      assert.match(first?.seen ?? "", new RegExp(`^db/${log} is damaged: `));
      assert.match(first?.mend ?? "", /holdfast member replace .*holdfast restore --from-data /);
    }
    assert.deepEqual(contentsOf(copy), contents);
    rmSync(follower.directory, { recursive: true });
    cpSync(copy, follower.directory, { recursive: true });
    follower.start();
    assert.equal(await follower.exited(), 74);
    assertInRefusals(follower.log(), 74);
    const { findings } = await doctor("--data", follower.directory);
    assert.deepEqual(linesOf(findings).slice(0, 2), [
      `problem quarantine ${follower.id}`,
      `problem integrity ${follower.id}`,
    ]);
  });

  it("takes no options that don't belong together, and no other directory for one", async () => {
    const cases = [
      [["--data", cluster.root, "--seconds", "1"], 2],
      [["--endpoints", "here"], 2],
      [["--seconds", "0"], 2],
      [["--config", join(cluster.root, "none.json")], 2],
      [["--data", cluster.root], 74],
      [["--data", join(cluster.root, "none")], 74],
    ] as const;
    const ends = await Promise.all(cases.map(([words]) => runCli(["doctor", ...words], {})));
    for (const [at, { code, out, err }] of ends.entries()) {
      const [words, expected] = cases[at] as (typeof cases)[number];
      assert.equal(code, expected, `${words.join(" ")}: ${err}`);
      assert.equal(out, "");
    }
  });
});
