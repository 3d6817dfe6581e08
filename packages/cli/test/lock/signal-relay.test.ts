import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { CommandFailure } from "../../src/command-failure.js";
import { SignalRelay } from "../../src/lock/signal-relay.js";

test("while waiting, a signal that asks to end aborts with 128 + n; others do nothing", () => {
  const source = new EventEmitter();
  const relay = new SignalRelay(source);
  source.emit("SIGUSR1", "SIGUSR1");
  assert.equal(relay.waiting.aborted, false);
  source.emit("SIGTERM", "SIGTERM");
  assert.ok(relay.waiting.reason instanceof CommandFailure);
  assert.equal(relay.waiting.reason.exitCode, 143);
});

test("once a command runs, every signal is passed on; after one that asks to end nothing is waited for again", () => {
  const source = new EventEmitter();
  const relay = new SignalRelay(source);
  const passed: string[] = [];
  relay.to((name) => passed.push(name));
  for (const name of ["SIGUSR1", "SIGUSR2"]) source.emit(name, name);
  assert.equal(relay.waiting.aborted, false);
  for (const name of ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"]) source.emit(name, name);
  assert.deepEqual(passed, ["SIGUSR1", "SIGUSR2", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"]);
  assert.equal(relay.waiting.aborted, true);
  relay.to(null);
  source.emit("SIGUSR1", "SIGUSR1");
  assert.equal(passed.length, 6);
  relay.close();
  assert.equal(source.listenerCount("SIGTERM"), 0);
});
