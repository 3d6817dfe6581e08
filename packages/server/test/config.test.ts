import { strict as assert } from "node:assert";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { numberOptions } from "../src/config-options.js";
import { ConfigError, loadConfig, parseConfig } from "../src/config.js";
import type { Config, ConfigEnvironment } from "../src/config.js";

const threeNodes = [
  { id: "n1", peer: "127.0.0.1:7201", client: "127.0.0.1:7101" },
  { id: "n2", peer: "127.0.0.1:7202", client: "127.0.0.1:7102" },
  { id: "n3", peer: "127.0.0.1:7203", client: "127.0.0.1:7103" },
];

function parse(file: object, environment: ConfigEnvironment = {}): Config {
  return parseConfig(JSON.stringify({ cluster: "test", nodes: threeNodes, ...file }), "cluster.json", environment);
}

function problemsOf(text: string, environment: ConfigEnvironment = {}): string[] {
  try {
    parseConfig(text, "cluster.json", environment);
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.problems.map(({ path, problem }) => `${path}: ${problem}`);
  }
  return [];
}

function problems(file: object, environment: ConfigEnvironment = {}): string[] {
  return problemsOf(JSON.stringify({ cluster: "test", nodes: threeNodes, ...file }), environment);
}

/** Sets one number of the file by its path. */
function withNumber(path: string, value: unknown): object {
  const [section = "", key = ""] = path.split(".");
  return { [section]: { [key]: value } };
}

describe("the configuration file", () => {
  test("needs no more than a name and nodes", () => {
    const config = parse({});
    assert.equal(config.cluster, "test");
    assert.deepEqual(config.timing, {
      heartbeatMs: 100,
      electionTimeoutMs: 500,
      diskStallMs: 1000,
      ttlMsMin: 2000,
      ttlMsMax: 3_600_000,
    });
    assert.deepEqual(config.nodes[1], {
      ...threeNodes[1],
      listen: { peer: { host: "127.0.0.1", port: 7202 }, client: { host: "127.0.0.1", port: 7102 } },
    });
    assert.equal(config.logLevel, "info");
    assert.deepEqual(config.origins, []);
    for (const option of numberOptions) {
      const [section = "", key = ""] = option.path.split(".");
      const values = config[section as "timing" | "limits"] as unknown as Record<string, number>;
      assert.equal(values[key], option.defaultValue, option.path);
    }
  });

  test("the examples of the repository are right", async () => {
    for (const name of ["three-node", "five-node"]) {
      const file = new URL(`../../../../cluster-configs/${name}.json`, import.meta.url);
      const config = parseConfig(await readFile(file, "utf8"), name);
      for (const node of config.nodes) assert.match(node.peer, /^127\./, "loopback unless configured otherwise");
    }
  });

  test("defaults follow the election timeout where they must", () => {
    const { timing } = parse({ timing: { electionTimeoutMs: 1_500, heartbeatMs: 300 } });
    assert.equal(timing.diskStallMs, 3_000);
    assert.equal(timing.ttlMsMin, 5_000);
    const fast = parse({ timing: { electionTimeoutMs: 150, heartbeatMs: 50, ttlMsMin: 950 } }).timing;
    assert.deepEqual([fast.diskStallMs, fast.ttlMsMin], [1_000, 950]);
  });

  test("listen addresses stand apart from the advertised ones", () => {
    const nodes = threeNodes.map((node, at) => ({
      ...node,
      peer: `host-${at}:7201`,
      client: `[2001:db8::${at}]:7101`,
      listen: { peer: "0.0.0.0:7201", client: "[::]:7101" },
    }));
    const [first] = parse({ nodes }).nodes;
    assert.deepEqual(first?.listen, { peer: { host: "0.0.0.0", port: 7201 }, client: { host: "::", port: 7101 } });
    assert.equal(first?.peer, "host-0:7201");
  });

  for (const option of numberOptions) {
    test(`${option.path}: its bounds are inside, everything else outside`, () => {
      const own = (value: unknown): string[] =>
        problems(withNumber(option.path, value)).filter(
          (line) =>
            line.startsWith(`${option.path}: `) &&
            !/is below (timing|limits|3 x)|x .* is above|not below|takes/.test(line),
        );
      assert.deepEqual(own(option.min), []);
      assert.deepEqual(own(option.max), []);
      assert.deepEqual(own(option.min - 1), [`${option.path}: ${option.min - 1} is below ${option.min}`]);
      assert.deepEqual(own(option.max + 1), [`${option.path}: ${option.max + 1} is above ${option.max}`]);
      for (const odd of [-1e12, 1e12]) assert.equal(own(odd).length, 1, String(odd));
      for (const [odd, shown] of [
        [0.5 + option.min, `${0.5 + option.min}`],
        ["7", '"7"'],
        [null, "null"],
        [[1], "[1]"],
        [true, "true"],
        [{}, "{}"],
      ] as const) {
        assert.deepEqual(own(odd), [`${option.path}: ${shown} is not a whole number`]);
      }
    });
  }

  const crossChecks: readonly (readonly [string, object, string])[] = [
    [
      "heartbeats",
      { timing: { heartbeatMs: 167 } },
      "timing.heartbeatMs: 3 x 167 is above timing.electionTimeoutMs (500)",
    ],
    ["disk stall", { timing: { diskStallMs: 499 } }, "timing.diskStallMs: 499 is below timing.electionTimeoutMs (500)"],
    [
      "shortest TTL",
      { timing: { ttlMsMin: 1_999 } },
      "timing.ttlMsMin: 1999 is below 3 x timing.electionTimeoutMs + 500 (2000)",
    ],
    ["longest TTL", { timing: { ttlMsMax: 1_999 } }, "timing.ttlMsMax: 1999 is below timing.ttlMsMin (2000)"],
    [
      "a batch in the frame",
      { limits: { appendBytesMax: 8 * 1024 * 1024, appendsInFlightMax: 1, uncommittedBytesMax: 16 * 1024 * 1024 } },
      "limits.appendBytesMax: a full batch takes 8519744 bytes with its 4096 entries, and a frame 8388608",
    ],
    [
      "a batch in the uncommitted bytes",
      { limits: { uncommittedBytesMax: 524_288 } },
      "limits.uncommittedBytesMax: 524288 is below limits.appendBytesMax (1048576): no batch would ever be full",
    ],
    [
      "a window in the peer's buffer",
      { limits: { appendsInFlightMax: 33 } },
      "limits.peerBufferedBytesMax: 33554432 is below limits.appendsInFlightMax x limits.appendBytesMax (34603008)",
    ],
    [
      "slow before too slow",
      { limits: { clientBufferedBytesSlow: 8 * 1024 * 1024 } },
      "limits.clientBufferedBytesSlow: 8388608 is not below limits.clientBufferedBytesMax (8388608)",
    ],
    ["number of nodes", { nodes: threeNodes.slice(0, 2) }, "nodes: has 2 nodes: a cluster has 1, 3 or 5"],
    ["no nodes", { nodes: [] }, "nodes: has 0 nodes: a cluster has 1, 3 or 5"],
    [
      "ids",
      { nodes: threeNodes.map((node) => ({ ...node, id: node.id === "n3" ? "n1" : node.id })) },
      "nodes[2].id: n1 is nodes[0].id too",
    ],
    [
      "peer addresses",
      { nodes: threeNodes.map((node) => ({ ...node, peer: node.id === "n3" ? "127.0.0.1:7101" : node.peer })) },
      "nodes[2].peer: 127.0.0.1:7101 is nodes[0].client too",
    ],
    [
      "two listeners of one node",
      {
        nodes: threeNodes.map((node) => ({
          ...node,
          listen: { peer: `0.0.0.0:80${node.id[1]}`, client: "0.0.0.0:802" },
        })),
      },
      "nodes[1].listen.client: 0.0.0.0:802 is this node's peer listener too",
    ],
  ];
  for (const [what, file, expected] of crossChecks) {
    test(`values are checked against each other: ${what}`, () => assert.deepEqual(problems(file), [expected]));
  }

  const single: readonly (readonly [string, object, string])[] = [
    [
      "an unknown key",
      { colour: 1 },
      "colour: is unknown; known here: cluster, nodes, timing, limits, logLevel, origins, tls, auth",
    ],
    [
      "a key of Object's prototype",
      { constructor: 1 },
      "constructor: is unknown; known here: cluster, nodes, timing, limits, logLevel, origins, tls, auth",
    ],
    [
      "an unknown key deep down",
      { timing: { heartbeat: 1 } },
      "timing.heartbeat: is unknown; known here: heartbeatMs, electionTimeoutMs, diskStallMs, ttlMsMin, ttlMsMax",
    ],
    ["tls", { tls: {} }, "tls: is not supported by this version: remove it"],
    ["auth", { auth: null }, "auth: is not supported by this version: remove it"],
    ["log level", { logLevel: "loud" }, 'logLevel: "loud" is not one of debug, info, warn, error, silent'],
    ["a section that is none", { timing: 5 }, "timing: 5 is not an object"],
    ["a list for a section", { limits: [] }, "limits: [] is not an object"],
    [
      "origins",
      { origins: ["*"] },
      'origins[0]: "*" is not an origin such as "https://tool.example" (scheme, host and port, nothing else)',
    ],
    [
      "an origin with a path",
      { origins: ["http://a.example/x"] },
      'origins[0]: "http://a.example/x" is not an origin such as "https://tool.example" (scheme, host and port, nothing else)',
    ],
    [
      "cluster",
      { cluster: "" },
      'cluster: "" is not a name: 1 to 64 letters, digits, ".", "_" or "-", with a letter or digit at both ends',
    ],
    ["nodes", { nodes: "n1" }, 'nodes: "n1" is not a list'],
  ];
  for (const [what, file, expected] of single) {
    test(`refuses ${what}`, () => assert.deepEqual(problems(file), [expected]));
  }

  test("refuses addresses that are none", () => {
    for (const peer of [
      "127.0.0.1",
      ":7201",
      "host:0",
      "host:65536",
      "host:7x",
      "[::1]",
      "::1:7201",
      "[zz]:1",
      "300.1.1.1:7201",
      "a b:1",
      "http://a:1",
      "-a:1",
      7201,
      null,
    ]) {
      const nodes = threeNodes.map((node) => (node.id === "n2" ? { ...node, peer } : node));
      const [only, ...more] = problems({ nodes });
      assert.match(only ?? "", /^nodes\[1\]\.peer: .* is not an address/, JSON.stringify(peer));
      assert.deepEqual(more, []);
    }
  });

  test("tells all problems at once", () => {
    const text = JSON.stringify({
      nodes: [{ id: "n1", peer: "x", client: "127.0.0.1:1" }, { id: "n1", peer: "127.0.0.1:1" }, 5],
      timing: { heartbeatMs: 400, electionTimeoutMs: "fast", ttlMsMin: 5_000, ttlMsMax: 4_000 },
      limits: { sessionsMax: 0 },
      tls: {},
      extra: true,
    });
    assert.deepEqual(problemsOf(text, { HOLDFAST_LOG: "loud" }).sort(), [
      'HOLDFAST_LOG: "loud" is not one of debug, info, warn, error, silent',
      "cluster: is missing",
      "extra: is unknown; known here: cluster, nodes, timing, limits, logLevel, origins, tls, auth",
      "limits.sessionsMax: 0 is below 1",
      'nodes[0].peer: "x" is not an address: "host:port" or "[ipv6]:port", with a port from 1 to 65535',
      "nodes[1].client: is missing",
      "nodes[1].id: n1 is nodes[0].id too",
      "nodes[1].peer: 127.0.0.1:1 is nodes[0].client too",
      "nodes[2]: 5 is not an object",
      'timing.electionTimeoutMs: "fast" is not a whole number',
      "timing.ttlMsMax: 4000 is below timing.ttlMsMin (5000)",
      "tls: is not supported by this version: remove it",
    ]);
  });

  test("refuses what is no JSON object", () => {
    assert.match(problemsOf("{ nope")[0] ?? "", /^: is not JSON: /);
    assert.deepEqual(problemsOf("[1]"), [": [1] is not an object"]);
    assert.deepEqual(problemsOf("null"), [": null is not an object"]);
  });

  test("HOLDFAST_LOG overrides the log level", () => {
    assert.equal(parse({ logLevel: "warn" }).logLevel, "warn");
    assert.equal(parse({ logLevel: "warn" }, { HOLDFAST_LOG: "debug" }).logLevel, "debug");
    assert.equal(parse({ logLevel: "warn" }, { HOLDFAST_LOG: "" }).logLevel, "warn");
  });

  test("is read from a file", async () => {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-config-"));
    try {
      const file = join(folder, "cluster.json");
      await writeFile(file, JSON.stringify({ cluster: "test", nodes: threeNodes }));
      assert.equal((await loadConfig(file)).cluster, "test");
      await assert.rejects(loadConfig(join(folder, "none.json")), (error: unknown) => {
        return error instanceof ConfigError && /can't be read/.test(error.message);
      });
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test("docs/configuration.md has each number with its default and bounds, and no other", async () => {
    const page = await readFile(new URL("../../../../docs/configuration.md", import.meta.url), "utf8");
    const rows = [...page.matchAll(/^\| `((?:timing|limits)\.[A-Za-z]+)` \| ([^|]+) \| ([^|]+) \|/gm)].map(
      ([, path, value, bounds]) => [path, value, bounds],
    );
    const expected = numberOptions.map((option) => [
      option.path,
      option.defaultText ?? String(option.defaultValue),
      `${option.min} to ${option.max}`,
    ]);
    assert.deepEqual(rows, expected);
    for (const key of ["cluster", "nodes", "logLevel", "origins", "tls", "auth", "HOLDFAST_LOG"])
      assert.ok(page.includes(`\`${key}\``), key);
  });
});
