import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { Server } from "node:http";
import { createServer as createSocketServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chooseSource } from "../../src/commands/backup.js";
import type { BackupSource, SourceStatus } from "../../src/commands/backup.js";
import { lossText } from "../../src/commands/restore.js";
import { runCli } from "../../src/program.js";
import { MemoryIo } from "../memory-io.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-backup-"));
after(() => rmSync(folder, { recursive: true, force: true }));

function source(id: string, role: string, lastApplied: number): BackupSource {
  return { endpoint: `${id}:1`, status: { id, role, lastApplied, nodes: [] } };
}

test("a backup comes from the node that has applied most, and from a follower rather than the leader", () => {
  const [leader, fresh, slow] = [source("n1", "leader", 9), source("n2", "follower", 9), source("n3", "follower", 8)];
  const mute = { endpoint: "n4:1", status: null };
  assert.equal(chooseSource([mute, leader, slow, fresh], null), fresh);
  assert.equal(chooseSource([fresh, leader], null), fresh);
  assert.equal(chooseSource([slow, leader, mute], null), leader);
  assert.equal(chooseSource([leader, fresh, slow], "n3"), slow);
  assert.equal(chooseSource([leader, mute], "n4"), null);
  assert.equal(chooseSource([mute], null), null);
});

async function run(...words: string[]): Promise<{ code: number; out: string; err: string }> {
  const io = new MemoryIo();
  const code = await runCli(words, io);
  return { code, out: io.stdout, err: io.stderr };
}

describe("holdfast backup", () => {
  const servers: Server[] = [];
  after(() => {
    for (const server of servers) {
      server.close();
      server.closeAllConnections();
    }
  });

  /** A node that answers a question for a backup with `body`, and then ends the connection in the middle of what it announced. */
  async function node(answer: { status: number; body: string; isBrokenOff?: boolean }): Promise<string> {
    const status: SourceStatus = { id: "n1", role: "leader", lastApplied: 5, nodes: [] };
    const server = createServer((request, response) => {
      if (request.url === "/v1/status") {
        response.end(JSON.stringify(status));
        return;
      }
      response.writeHead(answer.status);
      response.write(answer.body, () => (answer.isBrokenOff === true ? response.destroy() : response.end()));
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  it("leaves no file when what it gets is no backup, is broken off or refused", async () => {
    const cases = [
      [{ status: 200, body: "<html>hello" }, 74, "not_a_backup"],
      [{ status: 200, body: "HFBACK" }, 74, "cut_short"],
      [{ status: 200, body: "HFBACK", isBrokenOff: true }, 1, "unreachable"],
      [{ status: 503, body: JSON.stringify({ code: "overloaded", detail: "one already" }) }, 1, "overloaded"],
      [{ status: 404, body: "nothing here" }, 1, "unreachable"],
    ] as const;
    const path = join(folder, "empty");
    mkdirSync(path);
    for (const [answer, exitCode, code] of cases) {
      const { code: found, err } = await run("backup", join(path, "b"), "--json", "--endpoints", await node(answer));
      const { error } = JSON.parse(err) as { error: { code: string; message: string } };
      assert.deepEqual([found, error.code], [exitCode, code], error.message);
      assert.deepEqual(readdirSync(path), []);
    }
  });

  it("says which node doesn't answer", async () => {
    const endpoint = await node({ status: 200, body: "" });
    const { code, err } = await run("backup", join(folder, "b"), "--node", "n7", "--endpoints", endpoint);
    assert.equal(code, 1);
    assert.match(err, /node n7 doesn't answer/);
  });

  it("says so, in a process of its own, when whoever listens hangs up at once", async () => {
    const server = createSocketServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const endpoint = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const program = fileURLToPath(new URL("../../../bin/holdfast.js", import.meta.url));
    const child = spawn(process.execPath, [program, "backup", join(folder, "b"), "--endpoints", endpoint]);
    let err = "";
    child.stderr.on("data", (text: Buffer) => (err += text.toString()));
    const [code] = (await once(child, "close")) as [number];
    server.close();
    assert.equal(code, 1, err);
    assert.match(err, /no node answers \(127\.0\.0\.1:\d+: the connection was closed without an answer\)/);
  });

  it("refuses what is no list of nodes, and a file that is there", async () => {
    assert.equal((await run("backup", join(folder, "b"), "--endpoints", "a b:1")).code, 2);
    const file = join(folder, "there");
    writeFileSync(file, "precious");
    const endpoint = await node({ status: 200, body: "" });
    const { code, err } = await run("backup", file, "--endpoints", endpoint);
    assert.equal(code, 1);
    assert.match(err, /exists already: --force replaces it/);
    const link = join(folder, "link");
    symlinkSync(file, link);
    const refused = await run("backup", link, "--force", "--json", "--endpoints", endpoint);
    assert.equal(refused.code, 1);
    assert.match(refused.err, /"not_a_file".*link is a symbolic link, and only a file is replaced: name another/);
    assert.equal((await run("backup", "", "--endpoints", endpoint)).code, 2);
  });
});

describe("holdfast restore", () => {
  const target = ["--id", "n1", "--peer", "127.0.0.1:1", "--client", "127.0.0.1:2"];

  it("refuses words that don't belong together", async () => {
    const data = ["--data", join(folder, "new")];
    const cases: readonly (readonly [RegExp, readonly string[]])[] = [
      [/one of FILE and --from-data/, data],
      [/one of FILE and --from-data/, ["f", "--from-data", "d", ...data, ...target]],
      [/none of them may be empty/, ["", ...data, ...target]],
      [/none of them may be empty/, ["--from-data", "", ...data, ...target]],
      [/none of them may be empty/, ["--from-data", "d", "--to", ""]],
      [/none of them may be empty/, ["f", "--data", "", ...target]],
      [/--to belongs to --from-data/, ["f", "--to", "t", ...data, ...target]],
      [/--data is missing/, ["f", ...target]],
      [/--data is missing/, ["--from-data", "d"]],
      [/--id must name/, ["f", ...data]],
      [/--id must name/, ["f", ...data, "--id", "../n1", ...target.slice(2)]],
      [/--peer must be an address/, ["f", ...data, "--id", "n1"]],
      [/--client must be an address/, ["f", ...data, ...target.slice(0, 4), "--client", "nowhere"]],
      [/no whole number from 0 to 4503599627370496/, ["f", ...data, ...target, "--above", "9007199254740993"]],
    ];
    for (const [problem, words] of cases) {
      const { code, err } = await run("restore", ...words);
      assert.equal(code, 2, err);
      assert.match(err, problem);
    }
  });

  it("refuses a file that isn't there or is none, a directory in use, and one that has nothing", async () => {
    const file = join(folder, "rubbish");
    writeFileSync(file, "rubbish");
    const used = join(folder, "used");
    mkdirSync(used);
    writeFileSync(join(used, "mine"), "");
    const data = join(folder, "new");
    const cases: readonly (readonly [number, string, readonly string[], RegExp])[] = [
      [74, "storage", [join(folder, "none"), "--data", data], /none can't be read: no such file/],
      [74, "not_a_backup", [file, "--data", data], /rubbish: it is no Holdfast backup/],
      [74, "storage", [file, "--data", file], /rubbish is no directory/],
      [1, "directory_not_empty", [file, "--data", used], /used is not empty: it has mine/],
      [74, "storage", ["--from-data", join(folder, "none"), "--data", data], /none/],
      [74, "storage", ["--from-data", used, "--data", data], /used is no data directory/],
    ];
    for (const [exitCode, code, words, problem] of cases) {
      const { code: found, err } = await run("restore", ...words, ...target, "--json");
      const { error } = JSON.parse(err) as { error: { code: string; message: string } };
      assert.deepEqual([found, error.code], [exitCode, code], error.message);
      assert.match(error.message, problem);
    }
    assert.equal(readdirSync(folder).includes("new"), false);
  });

  it("says what may be lost", () => {
    const base = { position: { term: 3, index: 77 } };
    const header = { nodeId: "n2", base };
    const salvaged = { header, machine: null, entries: 4, problem: "old copy: n1 knows more" };
    const text = lossText(salvaged as unknown as Parameters<typeof lossText>[0]);
    assert.match(text, /what other nodes had committed after index 77/);
    assert.match(text, /which of its newest 4 entries were never committed/);
    assert.match(text, /old copy: n1 knows more/);
  });
});
