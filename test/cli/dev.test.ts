/** `holdfast dev` with real nodes, on free ports. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { freePorts, holdfastBin } from "../harness/cluster.js";
import { until } from "../harness/until.js";
import { CliProcess, isRunning, runCli } from "./cli-process.js";

interface Started {
  readonly pid: number;
  readonly leader: string;
  readonly endpoints: readonly string[];
  readonly nodes: readonly { readonly id: string; readonly pid: number; readonly log: string }[];
}

async function startDev(words: readonly string[]): Promise<{ dev: CliProcess; started: Started }> {
  const dev = new CliProcess(["dev", "--json", ...words], {});
  await until("the cluster is up", () => dev.out.endsWith("\n") || !isRunning(dev.pid), 60_000);
  assert.notEqual(dev.out, "", dev.err);
  return { dev, started: JSON.parse(dev.out) as Started };
}

/** A configuration on free ports, and the words that start it; both with spaces in their names. */
async function prepare(
  folder: string,
): Promise<{ readonly words: readonly string[]; readonly clients: readonly string[]; readonly config: string }> {
  const ports = await freePorts(6);
  const address = (index: number): string => `127.0.0.1:${ports[index]}`;
  const nodes = ["n1", "n2", "n3"].map((id, index) => ({ id, client: address(index), peer: address(index + 3) }));
  const config = join(folder, "my cluster.json");
  writeFileSync(config, JSON.stringify({ cluster: "dev-test", nodes }));
  return {
    words: ["--config", config, "--data", join(folder, "my data")],
    clients: nodes.map(({ client }) => client),
    config,
  };
}

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast dev-"));
  try {
    await body(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const onLinux = { skip: process.platform !== "linux" };

test("a cluster for the time of one command; its data outlives it", onLinux, () =>
  inFolder(async (folder) => {
    const { words, clients } = await prepare(folder);
    const first = await startDev(words);
    const environment = { HOLDFAST_ENDPOINTS: first.started.endpoints.join(",") };
    assert.deepEqual(first.started.endpoints, clients);
    const before = await runCli(["lock", "a", "--", "sh", "-c", "echo $HOLDFAST_TOKEN"], environment);
    assert.equal(before.code, 0, before.err);

    const victim = first.started.nodes.find(({ id }) => id !== first.started.leader);
    assert.ok(victim !== undefined);
    process.kill(victim.pid, "SIGKILL");
    await until("its end is told", () => first.dev.err.includes(`node ${victim.id} was ended by SIGKILL`));
    first.dev.child.kill("SIGKILL");
    await until("the nodes end with their parent", () => !first.started.nodes.some(({ pid }) => isRunning(pid)));

    const again = await startDev(words);
    const after = await runCli(
      ["lock", "a", "--", "sh", "-c", `test "$HOLDFAST_TOKEN" -gt ${before.out.trim()}`],
      environment,
    );
    assert.equal(after.code, 0, "tokens rise over the restart");
    again.dev.child.kill("SIGINT");
    assert.equal((await again.dev.ended).code, 0);
    assert.deepEqual(
      again.started.nodes.filter(({ pid }) => isRunning(pid)),
      [],
    );
  }),
);

test("a second cluster names what is in its way: the folder's, or the ports'", onLinux, () =>
  inFolder(async (folder) => {
    const { words, clients, config } = await prepare(folder);
    const first = await startDev(words);
    const second = await runCli(["dev", ...words], {});
    assert.equal(second.code, 73);
    assert.match(second.err, new RegExp(`process ${first.dev.pid}, ports ${clients[0]}, `));
    const elsewhere = await runCli(["dev", "--config", config, "--data", join(folder, "other")], {});
    assert.equal(elsewhere.code, 69);
    const port = clients[0]?.split(":")[1];
    assert.match(elsewhere.err, new RegExp(`ports are in use: ${port} \\(process ${first.started.nodes[0]?.pid}\\)`));
    assert.match(
      elsewhere.err,
      new RegExp(`kill ${first.dev.pid}\\)`),
      "the one to stop is the cluster, not its nodes",
    );
    first.dev.child.kill("SIGTERM");
    assert.equal((await first.dev.ended).code, 0);
  }),
);

test("the cluster ends with what started it, npm or a script", onLinux, () =>
  inFolder(async (folder) => {
    const { words } = await prepare(folder);
    const script = spawn("sh", ["-c", '"$@" & wait', "sh", process.execPath, holdfastBin, "dev", "--json", ...words], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let out = "";
    script.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
    await until("the cluster is up", () => out.endsWith("\n"), 60_000);
    const { pid, nodes } = JSON.parse(out) as Started;
    script.kill("SIGKILL");
    await until("dev and its nodes have ended", () => ![pid, ...nodes.map((node) => node.pid)].some(isRunning));
  }),
);
