/**
 * docs/http.md is run from top to bottom at a cluster, in one shell, and has to show what it says. Its address is a follower's, so that
 * redirects have their part in it. Numbers of sessions, tokens and entries, and keys, are others each time; the version another some day.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { TestCluster } from "../harness/cluster.js";

const page = readFileSync(new URL("../../../docs/http.md", import.meta.url), "utf8");

interface Example {
  readonly commands: string;
  readonly shown: string;
}

/** A block of commands, and the block of what they show right behind it. */
const examples: readonly Example[] = [...page.matchAll(/^```sh\n(.*?)^```\n(?:```(?:json|text)\n(.*?)^```\n)?/gms)].map(
  ([, commands = "", shown = ""]) => ({ commands, shown }),
);

const version = /^curl (\d+)\.(\d+)/.exec(spawnSync("curl", ["--version"], { encoding: "utf8" }).stdout ?? "");
const hasCurl = version !== null && Number(version[1]) * 1_000 + Number(version[2]) >= 7_082;

describe("docs/http.md", { timeout: 240_000, skip: hasCurl ? false : "curl 7.82 is missing" }, () => {
  let cluster: TestCluster;
  let outputs: string[] = [];

  before(async () => {
    cluster = await TestCluster.start({ leaderMs: 90_000 });
    await cluster.raise();
    const [follower] = cluster.others(await cluster.leader());
    const script = examples.map(({ commands }) => `${commands}echo "${border}"\n`).join("");
    const text = await run(script.replace("http://127.0.0.1:7101", `http://${follower?.endpoint}`));
    outputs = text.split(`${border}\n`);
  });
  after(async () => cluster?.close());

  it("has examples of each operation", () => {
    const all = examples.map(({ commands }) => commands).join("");
    const [, table = ""] = /^## Operations\n(.*?)^## /ms.exec(page) ?? [];
    const paths = [...table.matchAll(/^\| `\w+ (\/v1\/[^`]*)`/gm)].map(([, path = ""]) => path.replace("NAME", ""));
    assert.equal(paths.length, 15);
    for (const path of paths) assert.ok(all.includes(`$node${path}`) || path === "/v1/openapi.json", path);
  });

  for (const [at, { commands, shown }] of examples.entries()) {
    it(commands.split("\n", 1)[0] ?? "", () => {
      assert.equal(likeEveryTime(outputs[at] ?? ""), likeEveryTime(shown));
    });
  }
});

const border = "-- the next example --";

/** What a run shows that another wouldn't. */
function likeEveryTime(text: string): string {
  return text
    .trim()
    .replaceAll(/[0-9a-f]{32}/g, "KEY")
    .replaceAll(/"(session|token|index|clusterVersion)":\d+/g, '"$1":N')
    .replaceAll(/^id: \d+$/gm, "id: N")
    .replaceAll(/"credential":"\d+/g, '"credential":"N');
}

/** Resolves with all that it writes; fails when it says something on the side. */
function run(script: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const shell = spawn("bash", ["-eu", "-c", script], { stdio: ["ignore", "pipe", "pipe"] });
    let [text, errors] = ["", ""];
    shell.stdout.on("data", (data: Buffer) => (text += data.toString()));
    shell.stderr.on("data", (data: Buffer) => (errors += data.toString()));
    shell.on("error", reject);
    shell.on("close", (code) => {
      if (code === 0 && errors === "") resolve(text);
      else reject(new Error(`exit code ${code}: ${errors}\n${text}`));
    });
  });
}
