/** `holdfast completion`: the scripts, in the shells that they are for. */
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { holdfastBin, TestCluster } from "../harness/cluster.js";
import { until } from "../harness/until.js";
import { runCli } from "./cli-process.js";

const isThere = (shell: string): boolean => spawnSync(shell, ["--version"]).status === 0;
const needs = (shell: string): { skip: string | false } => ({ skip: isThere(shell) ? false : `${shell} is missing` });
let cluster: TestCluster;
let folder = "";
let environment: Record<string, string> = {};

before(async () => {
  cluster = await TestCluster.start();
  const holdfast = await cluster.connect();
  for (const name of ["doc:41", "doc:42", "my docs", "a\u202eb"]) await holdfast.acquire(name);
  folder = mkdtempSync(join(tmpdir(), "holdfast-completion-"));
  mkdirSync(join(folder, "bin"));
  const program = join(folder, "bin", "holdfast");
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${holdfastBin}' "$@"\n`);
  chmodSync(program, 0o755);
  const PATH = `${join(folder, "bin")}:${process.env["PATH"]}`;
  environment = { PATH, HOLDFAST_ENDPOINTS: cluster.endpoints.join(","), HOME: folder };
});

after(async () => {
  await cluster.close();
  rmSync(folder, { recursive: true });
});

/** The words that a script prints, a line each. Not synchronous: the locks are held by this very process. */
async function inShell(shell: string, script: string): Promise<readonly string[]> {
  const env = { ...process.env, ...environment };
  const { stdout } = await promisify(execFile)(shell, ["-c", script], { env, cwd: folder });
  return stdout.split("\n").filter((each) => each !== "");
}

/** What bash would put in the place of the last part of the line. */
function inBash(line: string): Promise<readonly string[]> {
  const words = line.split(/([\s:=]+)/).filter((each) => each.trim() !== "");
  if (/\s$/.test(line)) words.push("");
  const script = `source <(holdfast completion bash)
    compopt() { echo "compopt $*"; }
    COMP_LINE=${JSON.stringify(line)} COMP_POINT=${line.length}
    COMP_WORDS=(${words.map((word) => JSON.stringify(word)).join(" ")}) COMP_CWORD=${words.length - 1}
    _holdfast && printf '%s\\n' "\${COMPREPLY[@]}"`;
  return inShell("bash", script);
}

/** The cluster gets a second to tell its names: on a busy machine it may need another try. */
async function becomes(complete: () => Promise<readonly string[]>, expected: readonly string[]): Promise<void> {
  await until(expected.join(", "), async () => {
    assert.deepEqual(await complete(), expected);
    return true;
  });
}

test("bash: commands, options, names of locks behind their colon, files, programs", needs("bash"), async () => {
  assert.deepEqual(await inBash("holdfast sta"), ["status"]);
  assert.deepEqual(await inBash("holdfast lock --t"), ["--timeout", "--ttl"]);
  await becomes(() => inBash("holdfast show doc:4"), ["41", "42"]);
  // What a terminal would turn around is left out.
  await becomes(() => inBash("holdfast show "), ["doc:41", "doc:42", "my\\ docs"]);
  assert.deepEqual(await inBash("holdfast node --config ./"), ["compopt -o default"]);
  assert.ok((await inBash("holdfast lock a -- prin")).includes("printf"));
  await becomes(() => inBash("holdfast member remove n"), ["n1", "n2", "n3"]);
});

test("fish: the same", needs("fish"), async () => {
  const complete = async (line: string): Promise<readonly string[]> => {
    const script = `holdfast completion fish | source; complete -C ${JSON.stringify(line)}`;
    return (await inShell("fish", script)).map((each) => each.split("\t")[0] ?? "");
  };
  assert.deepEqual(await complete("holdfast sta"), ["status"]);
  await becomes(() => complete("holdfast show doc:4"), ["doc:41", "doc:42"]);
  assert.deepEqual(await complete("holdfast lock --t"), ["--timeout", "--ttl"]);
});

test("zsh: the same", needs("zsh"), async () => {
  const complete = (words: readonly string[]): Promise<readonly string[]> => {
    const script = `compdef() { }; source <(holdfast completion zsh)
      compadd() { shift; print -rl -- "$@"; }
      words=(${words.map((word) => JSON.stringify(word)).join(" ")}) CURRENT=${words.length}
      _holdfast`;
    return inShell("zsh", script);
  };
  assert.deepEqual(await complete(["holdfast", "sta"]), ["status"]);
  await becomes(() => complete(["holdfast", "show", "doc:4"]), ["doc:41", "doc:42"]);
  await becomes(() => complete(["holdfast", "member", "remove", ""]), ["n1", "n2", "n3"]);
});

test("a cluster that doesn't answer completes nothing, and another shell is refused", async () => {
  const silent = { HOLDFAST_ENDPOINTS: "127.0.0.1:1" };
  const { code, out, err } = await runCli(["complete", "--", "holdfast show d"], silent);
  assert.deepEqual([code, out, err], [0, "words\nd\n", ""]);
  const other = await runCli(["completion", "tcsh"], silent);
  assert.equal(other.code, 2);
  assert.match(other.err, /tcsh.*bash, zsh, fish/);
});
