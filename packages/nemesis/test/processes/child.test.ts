import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { Child } from "../../src/processes/child.js";
import { until } from "../until.js";

/** A zombie has ended, too. */
function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

const idle = [process.execPath, "--eval", "console.log('up'); setInterval(() => {}, 1_000)"];

describe("a child process", { timeout: 60_000 }, () => {
  it("is heard line by line, and its end is told once", async () => {
    const said: string[] = [];
    const ends: unknown[] = [];
    const script =
      "process.stdin.once('data', (said) => { console.log('heard ' + said); console.error('oops'); process.exit(3); })";
    const child = new Child({
      command: [process.execPath, "--eval", script],
      env: {},
      onOut: (line) => said.push(line),
      onErr: (line) => said.push(`error: ${line}`),
      onExit: (end) => ends.push(end),
    });
    child.send("hello");
    assert.equal(await child.exited(), 3);
    await until("all was heard", () => said.includes("heard hello") && said.includes("error: oops"));
    assert.deepEqual(ends, [3]);
    assert.equal(child.isRunning, false);
    child.signal("SIGKILL");
    assert.equal(await child.exitedWithin(10), 3);
  });

  it("is stopped with its whole group, and killed while it is stopped", async () => {
    const said: string[] = [];
    const wrapped = ["sh", "-c", '"$@" & echo "$!"; wait', "sh", ...idle];
    const nothing = (): void => undefined;
    const child = new Child({
      command: wrapped,
      env: {},
      onOut: (line) => said.push(line),
      onErr: nothing,
      onExit: nothing,
    });
    await until("it runs", () => said.includes("up"));
    const inner = Number(said[0]);
    child.signal("SIGSTOP");
    await until("the inner one stands", () => / T /.test(readFileSync(`/proc/${inner}/stat`, "utf8")));
    assert.equal(await child.exitedWithin(50), null);
    child.kill();
    assert.equal(await child.exited(), "SIGKILL");
    await until("the inner one is gone", () => !isAlive(inner));
  });

  it("that can't be started ends with a word", async () => {
    const said: string[] = [];
    const command = ["/nowhere/to/be/found"];
    const tell = (line: string): unknown => said.push(line);
    const child = new Child({ command, env: {}, onOut: tell, onErr: tell, onExit: () => undefined });
    assert.notEqual(await child.exited(), 0);
    await until("it was said", () => said.join(" ").includes("/nowhere/to/be/found"));
  });

  for (const [signal, isStopped] of [
    ["SIGTERM", false],
    ["SIGKILL", false],
    ["SIGKILL", true],
  ] as const) {
    it(`dies with its parent's ${signal}${isStopped ? ", stopped" : ""}`, async () => {
      const module = JSON.stringify(new URL("../../src/processes/child.js", import.meta.url).href);
      const script = `
        const { Child } = await import(${module});
        const nothing = () => {};
        const child = new Child({ command: ${JSON.stringify(idle)}, env: {}, onErr: nothing, onExit: nothing, onOut: () => {
          ${isStopped ? 'child.signal("SIGSTOP");' : ""}
          console.log(child.pid);
        } });`;
      const parent = spawn(process.execPath, ["--input-type=module", "--eval", script], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const [line] = (await once(parent.stdout, "data")) as [Buffer];
      const pid = Number(line.toString());
      assert.equal(isAlive(pid), true);
      parent.kill(signal);
      await once(parent, "exit");
      await until("it is gone", () => !isAlive(pid));
    });
  }
});
