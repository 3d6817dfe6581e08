import { strict as assert } from "node:assert";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { describe, test } from "node:test";
import { createLogger } from "../src/logger.js";
import type { LogLevel } from "../src/logger.js";

function linesOf(level: LogLevel, write: (logger: ReturnType<typeof createLogger>) => void): Record<string, unknown>[] {
  const lines: string[] = [];
  write(createLogger({ node: "n1", level }, { write: (line) => void lines.push(line) }));
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

const script = (body: string): string[] => [
  "--input-type=module",
  "-e",
  `import { createLogger } from ${JSON.stringify(new URL("../src/logger.js", import.meta.url).href)};
   const logger = createLogger({ node: "n1", level: "info" });
   ${body}`,
];

describe("the log", () => {
  test("one JSON line each: level by name, time, node, facts, text", () => {
    const [line] = linesOf("info", (logger) => logger.info({ term: 3, index: 9 }, "leader in term 3"));
    assert.match(String(line?.["time"]), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    assert.deepEqual(
      { ...line, time: null },
      { level: "info", time: null, node: "n1", term: 3, index: 9, msg: "leader in term 3" },
    );
  });

  test("levels", () => {
    const all = (logger: ReturnType<typeof createLogger>): void => {
      for (const level of ["debug", "info", "warn", "error"] as const) logger[level]({}, level);
    };
    const texts = (level: LogLevel): unknown[] => linesOf(level, all).map((line) => line["msg"]);
    assert.deepEqual(texts("debug"), ["debug", "info", "warn", "error"]);
    assert.deepEqual(texts("warn"), ["warn", "error"]);
    assert.deepEqual(texts("silent"), []);
  });

  test("secrets don't get in, errors do", () => {
    const [first, second] = linesOf("info", (logger) => {
      logger.info({ secret: "s3", headers: { authorization: "Bearer s3" }, options: { auth: "s3" } }, "x");
      logger.error({ err: new Error("disk full") }, "y");
    });
    assert.doesNotMatch(JSON.stringify(first), /s3/);
    assert.match(JSON.stringify(second), /disk full/);
  });

  test("the last line before an exit is not lost, and a reader that goes away ends nothing", async () => {
    const text = execFileSync(
      process.execPath,
      script(`for (let n = 0; n < 2000; n += 1) logger.info({ n }, "x".repeat(100)); process.exit(0);`),
    );
    const lines = text.toString().trimEnd().split("\n");
    assert.equal((JSON.parse(lines.at(-1) ?? "") as { n: number }).n, 1_999);
    const child = spawn(
      process.execPath,
      script(
        `process.on("message", () => { for (let n = 0; n < 100; n += 1) logger.info({}, "gone"); process.exit(7); }); process.send("up");`,
      ),
      {
        stdio: ["ignore", "pipe", "ignore", "ipc"],
      },
    );
    await once(child, "message");
    child.stdout?.destroy();
    child.send("go");
    const [code] = (await once(child, "exit")) as [number | null];
    assert.equal(code, 7);
  });
});
