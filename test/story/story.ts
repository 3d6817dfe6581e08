/**
 * The case this project exists for, on real processes: `npm run story`, or `npm run story -- --fast` with a lease of 2 s. Prints a
 * timeline, checks itself, and exits with 1 if anything went another way than it should.
 */
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { statusOf, TestCluster } from "../harness/cluster.js";
import { machineMs } from "../harness/machine-clock.js";
import { embeddedPostgres, missingDrivers } from "../harness/postgres.js";
import type { TestPostgres } from "../harness/postgres.js";
import { until } from "../harness/until.js";
import { StoryWorker } from "./story-process.js";

const isFast = process.argv.includes("--fast");
const ttlMs = isFast ? 2_000 : 10_000;
const stoppedMs = isFast ? 4_000 : 12_000;
const original = "a text";

class Timeline {
  private startMs = 0;
  readonly problems: string[] = [];

  restart(): void {
    this.startMs = machineMs();
  }

  say(who: string, what: string, atMs: number = machineMs()): void {
    const seconds = ((atMs - this.startMs) / 1_000).toFixed(2).padStart(6);
    process.stdout.write(`  ${seconds} s  ${who.padEnd(10)} ${what}\n`);
  }

  check(what: string, isSo: boolean): void {
    process.stdout.write(`     ${isSo ? "ok  " : "NOT SO"} ${what}\n`);
    if (!isSo) this.problems.push(what);
  }
}

interface Ending {
  readonly tokenA: number;
  readonly tokenB: number;
  readonly stateOfA: string | undefined;
  readonly refused: number;
  readonly body: string;
  readonly leaderChanged: boolean;
}

/** The plot, with the guard or without it. */
async function play(database: TestPostgres, guarded: boolean, document: string, timeline: Timeline): Promise<Ending> {
  const pool = database.pool({ max: 1 });
  await pool.query("INSERT INTO documents (id, body) VALUES ($1, $2)", [document, original]);
  const cluster = await TestCluster.start();
  timeline.restart();
  const task = { endpoints: cluster.endpoints, ttlMs, database: database.url, document, guarded };
  const a = new StoryWorker({ ...task, name: "worker A" });
  let b: StoryWorker | null = null;
  try {
    const leader = await cluster.leader();
    timeline.say("cluster", `three nodes; ${leader.id} leads`);
    const grantedA = await a.event("granted");
    const tokenA = Number(grantedA.token);
    timeline.say("worker A", `holds document:${document} with token ${tokenA}, and edits "${original}"`, grantedA.atMs);
    a.signal("SIGSTOP");
    const stoppedAt = performance.now();
    timeline.say("worker A", `is stopped (SIGSTOP), for ${stoppedMs / 1_000} s; its lease is ${ttlMs / 1_000} s`);
    b = new StoryWorker({ ...task, name: "worker B" });
    leader.signal("SIGKILL");
    timeline.say("cluster", `${leader.id}, the leader, is killed (SIGKILL)`);
    const next = await cluster.leader();
    timeline.say(
      "cluster",
      `${next.id} leads now, in term ${(await statusOf(next))?.term ?? "?"}; A's silence is counted on`,
    );
    const grantedB = await b.event("granted");
    const tokenB = Number(grantedB.token);
    timeline.say("worker B", `holds document:${document} with token ${tokenB}: A's lease had run out`, grantedB.atMs);
    b.say("save");
    const savedB = await b.event("saved");
    timeline.say("worker B", `saves its edit with token ${tokenB}`, savedB.atMs);
    const leftMs = stoppedMs - (performance.now() - stoppedAt);
    if (leftMs > 0) await sleep(leftMs);
    // The order to save lies in A's input already: it saves as soon as it wakes, as a program does that has just been paused.
    a.say("save");
    a.signal("SIGCONT");
    timeline.say(
      "worker A",
      `wakes after ${((performance.now() - stoppedAt) / 1_000).toFixed(1)} s and goes on where it was: it saves`,
    );
    const stateA = await a.event("state");
    const lostA = await a.event("lost");
    timeline.say("worker A", `its library says ${String(stateA.state)} (${String(lostA.reason)})`, lostA.atMs);
    const end = await until("A's save has ended", () => a.find("refused") ?? a.find("saved") ?? a.find("failed"));
    if (end.event === "refused") {
      timeline.say(
        "database",
        `refuses A's save: token ${end.presented}, and ${end.highest} was here before`,
        end.atMs,
      );
    } else if (end.event === "saved") {
      timeline.say("database", "takes A's save: nobody looked at the token", end.atMs);
    } else {
      timeline.say("database", `fails: ${end.message ?? ""}`, end.atMs);
    }
    const { rows } = await pool.query("SELECT body FROM documents WHERE id = $1", [document]);
    const body = String(rows[0]?.["body"]);
    timeline.say("document", `"${body}"`);
    const refused = end.event === "refused" ? 1 : 0;
    return { tokenA, tokenB, stateOfA: stateA.state, refused, body, leaderChanged: next.id !== leader.id };
  } finally {
    a.kill();
    b?.kill();
    await cluster.close();
  }
}

async function main(): Promise<number> {
  const missing = missingDrivers();
  if (missing !== null) {
    process.stderr.write(`${missing}\n`);
    return 2;
  }
  process.stdout.write("Starting a database (PostgreSQL, embedded)...\n");
  const database = await embeddedPostgres();
  const timeline = new Timeline();
  try {
    await database
      .pool({ max: 1 })
      .query("CREATE TABLE documents (id text PRIMARY KEY, body text NOT NULL, fence bigint NOT NULL DEFAULT 0)");
    process.stdout.write("\nWith the guard\n\n");
    const one = await play(database, true, "42", timeline);
    process.stdout.write("\nThe same without the guard\n\n");
    const two = await play(database, false, "43", timeline);
    process.stdout.write("\nWhat must be so\n\n");
    for (const [title, ending] of [
      ["guarded", one],
      ["unguarded", two],
    ] as const) {
      timeline.check(`${title}: another node took over`, ending.leaderChanged);
      timeline.check(
        `${title}: B's token ${ending.tokenB} is higher than A's ${ending.tokenA}`,
        ending.tokenB > ending.tokenA,
      );
      timeline.check(`${title}: A's library said lost before A saved`, ending.stateOfA === "lost");
    }
    timeline.check("guarded: A's late save was refused, once", one.refused === 1);
    timeline.check("guarded: B's work is there, and A's is not", one.body === `${original}, then edited by worker B`);
    timeline.check("unguarded: nothing was refused", two.refused === 0);
    timeline.check(
      "unguarded: A's late save has overwritten B's work",
      two.body === `${original}, then edited by worker A`,
    );
  } finally {
    await database.stop();
  }
  const refused =
    timeline.problems.length === 0
      ? "Everything as it should be: 1 write refused with the guard, 1 lost without it."
      : "";
  process.stdout.write(`\n${refused || `${timeline.problems.length} things are not as they should be.`}\n`);
  return timeline.problems.length === 0 ? 0 : 1;
}

process.exitCode = await main();
