import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { whyNot } from "../../../src/machine/command.js";
import { entrance, missingDelay, notAlone } from "../../../src/network/netns/enter.js";
import { findRules } from "../../../src/network/netns/filter.js";
import { NetnsNetwork } from "../../../src/network/netns/netns-network.js";
import { until } from "../../until.js";

const here = await entrance();
const skip = here.missing ?? false;
const enter = here.command ?? [];
const isRoot = process.getuid?.() === 0;
/** As Debian's user that owns nothing. */
const asNobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];
const enterAsUser = ["unshare", "--user", "--map-current-user", "--keep-caps", "--net", "--mount", "--"];
const delayMissing = skip === false ? ((await missingInside("tc")) ?? "") : "";

async function missingInside(tool: "tc" | "iptables"): Promise<string | null> {
  const trial = tool === "tc" ? ["tc", "qdisc", "add", "dev", "lo", "root", "netem"] : ["iptables", "-w", "-nL"];
  return whyNot([...enter, ...trial]);
}

function inside(prefix: readonly string[], file: string, ...words: string[]): ReturnType<typeof spawn> {
  const script = fileURLToPath(new URL(file, import.meta.url));
  const [program = "", ...rest] = [...prefix, process.execPath, script, ...words];
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  return spawn(program, rest, { env, cwd: "/", stdio: ["ignore", "pipe", "pipe"] });
}

function firstLine(child: ReturnType<typeof spawn>): Promise<string> {
  return new Promise((resolve, reject) => {
    child.stdout?.setEncoding("utf8").once("data", (text: string) => resolve(text.trim()));
    child.once("exit", () => reject(new Error("it ended")));
  });
}

async function passes(prefix: readonly string[], file: string, ...words: string[]): Promise<void> {
  const child = inside(prefix, file, ...words);
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding("utf8").on("data", (text) => (said += text));
  const code = await new Promise((resolve) => child.once("close", resolve));
  assert.equal(code, 0, said);
}

describe("namespaces", { timeout: 240_000 }, () => {
  it("hold a network that is cut with nft", { skip }, async (test) => {
    const problem = await whyNot([...enter, "nft", "list", "ruleset"]);
    if (problem !== null) return test.skip(problem);
    await passes(enter, "./inside.js", "nft", delayMissing);
  });

  it("hold a network that is cut with iptables", { skip }, async (test) => {
    const problem = await missingInside("iptables");
    if (problem !== null) return test.skip(problem);
    await passes(enter, "./inside.js", "iptables", delayMissing);
  });

  it("hold a network without root", { skip: isRoot ? skip : "this whole test runs without root" }, async (test) => {
    const prefix = [...asNobody, ...enterAsUser];
    // A checkout below /root can't be read by others.
    const canRead = [...asNobody, "test", "-r", fileURLToPath(import.meta.url)];
    const problem = (await whyNot(canRead)) ?? (await whyNot([...prefix, "nft", "list", "ruleset"]));
    if (problem !== null) return test.skip(problem);
    await passes(prefix, "./inside.js", "nft", delayMissing);
  });

  it("vanish when who opened them is killed", { skip }, async () => {
    const child = inside(enter, "./stays-behind.js");
    const line = await firstLine(child);
    const { pid, keepers } = JSON.parse(line) as { pid: number; keepers: number[] };
    assert.equal(keepers.length, 3);
    for (const keeper of keepers) assert.ok(existsSync(`/proc/${keeper}`));
    process.kill(pid, "SIGKILL");
    await until("nobody holds a namespace", () => keepers.every((keeper) => !existsSync(`/proc/${keeper}`)));
  });

  it("are entered by a program that starts itself anew, which dies with who started it", { skip }, async () => {
    const child = inside([], "./anew.js");
    const line = await firstLine(child);
    assert.match(line, /^\d+ with the same words$/);
    const pid = Number(line.split(" ")[0]);
    child.kill("SIGKILL");
    await until("both are gone", () => !existsSync(`/proc/${pid}`));
    const ending = inside([], "./anew.js", "end");
    assert.equal(await new Promise((resolve) => ending.once("exit", resolve)), 7);
  });

  it("are refused where packets could leave the machine", async (test) => {
    const problem = await notAlone();
    if (problem === null) return test.skip("this process's network leads nowhere");
    const opened = NetnsNetwork.open({ nodes: ["n1"], workers: [] });
    await assert.rejects(opened, { name: "NetnsError", code: "unavailable" });
  });

  it("say what is missing", { skip: isRoot ? skip : "only root's tools are sure to be tried" }, async () => {
    assert.equal(typeof (await missingDelay()), delayMissing === "" ? "object" : "string");
    assert.ok("rules" in (await findRules()));
  });
});
