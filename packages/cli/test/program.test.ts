import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { test } from "node:test";
import { exitCodes as serverCodes } from "@holdfast/server";
import { exitCodes } from "../src/exit-codes.js";
import { runCli } from "../src/program.js";
import { freePorts, inFolder } from "./dev/folder.js";
import { MemoryIo } from "./memory-io.js";

async function run(words: readonly string[], environment = {}): Promise<{ code: number; out: string; err: string }> {
  const io = new MemoryIo(environment);
  const code = await runCli(words, io);
  return { code, out: io.stdout, err: io.stderr };
}

test("the exit codes are those of the server's table", () => {
  for (const [name, code] of Object.entries(exitCodes))
    assert.equal(code, serverCodes[name as keyof typeof exitCodes].code, name);
});

/** Commands of commands. */
const groups: Readonly<Record<string, RegExp>> = { member: /^ {2}replace /m, key: /^ {2}rotate /m };

test("help goes to stdout with 0; no command at all prints it to stderr with 2", async () => {
  const help = await run(["--help"]);
  assert.deepEqual([help.code, help.err], [0, ""]);
  const names = [...help.out.matchAll(/^ {2}([a-z]+) /gm)].map((match) => match[1] ?? "");
  const before = [
    "dev",
    "node",
    "lock",
    "elect",
    "status",
    "doctor",
    "ls",
    "show",
    "watch",
    "check",
    "release",
    "transfer",
  ];
  assert.deepEqual(names, [...before, "member", "key", "upgrade", "backup", "restore", "bench", "completion", "help"]);
  for (const name of names.filter((one) => one !== "help")) {
    const own = await run([name, "--help"]);
    assert.equal(own.code, 0);
    assert.match(own.out, new RegExp(`^Usage: holdfast ${name} `));
    assert.match(own.out, groups[name] ?? /--json/);
  }
  assert.match((await run(["lokc"])).err, /Did you mean lock\?/);
  const none = await run([]);
  assert.deepEqual([none.code, none.out], [2, ""]);
  assert.match(none.err, /^Usage: holdfast/);
  assert.match((await run(["--version"])).out, /^\d+\.\d+\.\d+\n$/);
});

test("a wrong command line ends with 2 and one line that names what is wrong", async () => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [["frobnicate"], /unknown command 'frobnicate'/],
    [["constructor"], /unknown command 'constructor'/],
    [["ls", "--frobnicate"], /unknown option '--frobnicate'/],
    [["ls", "a", "b"], /too many arguments/],
    [["show"], /missing required argument 'name'/],
    [["lock", "a", "--ttl", "10x", "--", "true"], /'--ttl <duration>' argument '10x' is invalid. "10x" is no duration/],
    [["lock", "a", "--wait", "-1s", "--", "true"], /--wait/],
    [["lock", "a", "--conflict-exit-code", "256", "--", "true"], /--conflict-exit-code.*whole number from 0 to 255/],
    [
      ["lock", "a", "--ttl", "9s", "--grace", "4s", "--", "true"],
      /--grace 4s is more than a third of --ttl: at most 3s/,
    ],
    [["lock", "a"], /write the command to run after --/],
    [["lock", "a", "--"], /write the command to run after --/],
    [["lock", "a", "true"], /write the command to run after --/],
    [["lock", "a", "b", "--", "true"], /write the command to run after --/],
    [["lock", "--", "true"], /write the command to run after --/],
    [["release", "a", "--token", "5"], /add --force/],
    [["release", "a", "--force"], /--token/],
    [["release", "a", "--token", "0", "--force"], /whole number from 1/],
    [["dev", "--nodes", "4"], /Allowed choices are 1, 3, 5/],
    [["dev", "--nodes", "3", "--config", "x"], /cannot be used with/],
    [["bench", "--clients", "0"], /--clients/],
    [["node", "--id", "n1"], /--config/],
    [["node", "--config", "x", "--listen-peer", "a:1"], /--listen-peer and --listen-client go with --join/],
    [
      [
        "node",
        "--join",
        "a:1",
        "--id",
        "n4",
        "--data",
        "d",
        "--peer",
        "a:1",
        "--client",
        "a:2",
        "--listen-client",
        "7104",
      ],
      /"7104" is no address/,
    ],
    [["ls", "--endpoints", "nonsense"], /--endpoints "nonsense" is no list of nodes/],
    [["ls", "--endpoints", "a:1,,b:2"], /--endpoints "a:1,,b:2" is no list of nodes/],
    [["show", "", "--endpoints", ""], /--endpoints "" is no list of nodes/],
    [["lock", "a", "--ttl", "2h", "--", "true"], /--ttl must be from 500ms to 1h, is 2h/],
    [["lock", "a", "--lock-delay", "61s", "--", "true"], /--lock-delay.* "61s" is out of bounds: from 0ms to 1m/],
    [["lock", "a", "--wait", "1s", "--no-wait", "--", "true"], /--wait and --no-wait can't be used together/],
    [["lock", "a", "--no-wait", "--wait=1s", "--", "true"], /--wait and --no-wait can't be used together/],
    [["lock", "", "--", "true"], /NAME must not be empty/],
    [["lock", "a", "--", ""], /CMD is empty/],
    [["dev", "--data", ""], /--data is empty/],
    [["dev", "--data", "/dev/null"], /\/dev\/null is a file; --data names a folder/],
    [["dev", "--config", "no-such-file.json"], /no-such-file\.json: there is no such file/],
  ];
  for (const [words, problem] of cases) {
    const { code, out, err } = await run(words);
    assert.deepEqual([code, out], [2, ""], words.join(" "));
    assert.match(err, /^holdfast: [^\n]+\n$/, words.join(" "));
    assert.match(err, problem);
    const asJson = await run([words[0] ?? "", "--json", ...words.slice(1)]);
    if (words[0] === "frobnicate") continue;
    const document = JSON.parse(asJson.err) as { error: { code: string; message: string } };
    assert.match(document.error.code, /^(usage|invalid_argument|invalid_config)$/);
    assert.match(document.error.message, problem);
  }
});

test("a signal ends a command at once, with its code and as JSON; those that end in order hear it themselves", async () => {
  // It accepts, and never says a word: whoever waits for it waits for long.
  const silent = createServer();
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  silent.on("connection", (socket) => socket.pause());
  const endpoints = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
  for (const [name, expected] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    const signals = new EventEmitter();
    const io = new MemoryIo();
    const words = ["member", "list", "--json", "--endpoints", endpoints, "--timeout", "2s"];
    const ended = runCli(words, io, signals);
    signals.emit(name, name);
    assert.equal(await ended, expected);
    assert.deepEqual(JSON.parse(io.stderr), { error: { code: "interrupted", message: `interrupted by ${name}` } });
    assert.deepEqual([io.stdout, signals.eventNames()], ["", []]);
  }
  const unheard = new EventEmitter();
  await runCli(["node"], new MemoryIo(), unheard);
  assert.deepEqual(unheard.eventNames(), []);
  silent.closeAllConnections();
  silent.close();
});

test("what stands after -- is the command's, whatever it looks like", async () => {
  const [port = 0] = await freePorts(1);
  const lock = ["lock", "a", "--endpoints", `127.0.0.1:${port}`, "--timeout", "300ms"];
  const { code, out, err } = await run([...lock, "--", "cmd", "--help", "--json", "--ttl", "x", "--", "--version"]);
  assert.deepEqual([code, out], [1, ""]);
  assert.match(err, /^holdfast: /, "not JSON: that --json is the command's");
});

test("no cluster: exit code 1, and unreachable as the code", async () => {
  const [port = 0] = await freePorts(1);
  const environment = { HOLDFAST_ENDPOINTS: `127.0.0.1:${port}` };
  for (const words of [
    ["ls"],
    ["show", "a"],
    ["transfer"],
    ["check", "holdfast1.x"],
    ["release", "a", "--token", "1", "--force"],
    ["bench"],
    ["lock", "a", "--", "true"],
  ]) {
    const { code, out, err } = await run(
      [words[0] ?? "", "--json", "--timeout", "200ms", ...words.slice(1)],
      environment,
    );
    assert.deepEqual([code, out], [1, ""], words.join(" "));
    assert.equal((JSON.parse(err) as { error: { code: string } }).error.code, "unreachable");
  }
  const status = await run(["status", "--json", "--timeout", "200ms"], environment);
  assert.equal(status.code, 1);
  const document = JSON.parse(status.out) as { leader: string | null; nodes: { endpoint: string; role: string }[] };
  assert.equal(document.leader, null);
  assert.deepEqual(
    document.nodes.map(({ endpoint, role }) => [endpoint, role]),
    [[`127.0.0.1:${port}`, "unreachable"]],
  );
});

test("no cluster: the message has every endpoint with its reason, and what to do", async () => {
  const [first = 0, second = 0] = await freePorts(2);
  const list = `127.0.0.1:${first},127.0.0.1:${second}`;
  const { code, err } = await run(["ls", "--endpoints", list, "--timeout", "300ms"]);
  assert.equal(code, 1);
  for (const port of [first, second]) assert.ok(err.includes(`127.0.0.1:${port}: ECONNREFUSED`), err);
  assert.match(
    err,
    /start a cluster on this machine with npx holdfast dev, or name the nodes of yours with --endpoints\n$/,
  );
  const status = await run(["status", "--endpoints", list, "--timeout", "300ms"]);
  for (const port of [first, second]) assert.ok(status.out.includes(`\n127.0.0.1:${port}: ECONNREFUSED\n`), status.out);
});

test("status says what a node that takes no clients yet says of itself", async () => {
  const server = createServer((_, response) => {
    response.writeHead(503, { "content-type": "application/problem+json" });
    response.end(JSON.stringify({ status: 503, detail: "the cluster is not formed yet" }));
  });
  server.on("upgrade", (_, socket) => socket.end("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const endpoint = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    const { code, out } = await run(["status", "--endpoints", endpoint, "--timeout", "300ms"]);
    assert.equal(code, 1);
    assert.ok(out.endsWith(`\n${endpoint}: the cluster is not formed yet\n`), out);
    const { err } = await run(["ls", "--endpoints", endpoint, "--timeout", "300ms"]);
    assert.equal(err, `holdfast: no node was ready within 300 ms (${endpoint}: the cluster is not formed yet)\n`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test("lock waits for a cluster, and says so once", async () => {
  const [port = 0] = await freePorts(1);
  const { err } = await run(["lock", "a", "--endpoints", `127.0.0.1:${port}`, "--timeout", "2500ms", "--", "true"]);
  assert.match(
    err,
    /^holdfast: no leader of the cluster is found yet; waiting on\nholdfast: no node was reached[^\n]+\n$/,
  );
});

test("dev: a folder below a file is one sentence and 74", async () => {
  const { code, err } = await run(["dev", "--data", "/dev/null/x"]);
  assert.equal(code, 74);
  assert.match(err, /^holdfast: \/dev\/null\/x can't be used: ENOTDIR[^\n]*\n$/);
});

test("dev: a broken configuration in the folder is named, with 2", () =>
  inFolder(async (folder) => {
    for (const text of ["{", "[]", "null", '{"cluster":"c"}', '{"cluster":"c","nodes":3}']) {
      writeFileSync(path.join(folder, "cluster.json"), text);
      for (const words of [[], ["--nodes", "3"]]) {
        const { code, err } = await run(["dev", "--data", folder, ...words]);
        assert.equal(code, 2, text);
        assert.match(err, /cluster\.json/);
        assert.doesNotMatch(err, /^\s+at /m);
      }
    }
    assert.deepEqual(readdirSync(folder), ["cluster.json"]);
  }));

test("node --check: 0 for a good configuration, 2 with all problems of a bad one", () =>
  inFolder(async (folder) => {
    const file = path.join(folder, "cluster.json");
    const nodes = [{ id: "n1", peer: "127.0.0.1:7201", client: "127.0.0.1:7101" }];
    writeFileSync(file, JSON.stringify({ cluster: "c", nodes }));
    assert.deepEqual(await run(["node", "--config", file, "--check"]), {
      code: 0,
      out: `${file} is good: cluster c, nodes n1\n`,
      err: "",
    });
    const asJson = await run(["node", "--config", file, "--check", "--json"]);
    assert.deepEqual(JSON.parse(asJson.out), { valid: true, cluster: "c", nodes: ["n1"] });
    const other = await run(["node", "--config", file, "--check", "--id", "n2"]);
    assert.deepEqual([other.code, other.err], [2, 'holdfast: the configuration has no node "n2"; it has n1\n']);
    writeFileSync(file, JSON.stringify({ nodes: [{ id: "n1", peer: "nowhere", client: "127.0.0.1:7101" }], bogus: 1 }));
    const bad = await run(["node", "--config", file, "--check"]);
    assert.equal(bad.code, 2);
    for (const place of ["cluster", "nodes[0].peer", "bogus"])
      assert.ok(bad.err.includes(place), `${place} in ${bad.err}`);
    const missing = await run(["node", "--config", path.join(folder, "none.json"), "--check"]);
    assert.equal(missing.code, 2);
    assert.match(missing.err, /can't be read/);
    writeFileSync(file, JSON.stringify({ cluster: "c", nodes }));
    assert.match((await run(["node", "--config", file, "--id", "n1"])).err, /--data is missing/);
    assert.match((await run(["node", "--config", file, "--data", folder])).err, /--id is missing: one of n1/);
    const half = await run(["node", "--config", file, "--id", "n1", "--data", folder, "--bootstrap"]);
    assert.deepEqual([half.code, half.err], [2, "holdfast: --bootstrap and --first-index belong together\n"]);
  }));
