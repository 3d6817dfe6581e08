/** What is handed to a tracer and a meter of OpenTelemetry's shape. test/client/open-telemetry.test.ts does it with its SDK. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeCommand } from "@holdfast/wire";
import type {
  OpenTelemetryMeter,
  OpenTelemetrySpan,
  OpenTelemetrySpanOptions,
  OpenTelemetryTracer,
} from "../src/open-telemetry.js";
import { World } from "./world/world.js";

interface SeenSpan extends OpenTelemetrySpanOptions {
  readonly name: string;
  readonly set: Record<string, string | number>;
  status: number | null;
  isEnded: boolean;
}

function fakeTracer(traceId = "t"): { tracer: OpenTelemetryTracer; spans: SeenSpan[] } {
  const spans: SeenSpan[] = [];
  const startSpan = (name: string, options: OpenTelemetrySpanOptions = {}): OpenTelemetrySpan => {
    const seen: SeenSpan = { ...options, name, set: {}, status: null, isEnded: false };
    spans.push(seen);
    return {
      setAttribute: (key, value) => Object.assign(seen.set, { [key]: value }),
      setStatus: ({ code }) => Object.assign(seen, { status: code }),
      spanContext: () => ({
        traceId,
        spanId: String(spans.indexOf(seen)).padStart(traceId.length / 2, "a"),
        traceFlags: 1,
      }),
      end: () => {
        seen.isEnded = true;
      },
    };
  };
  return { tracer: { startSpan }, spans };
}

function fakeMeter(): { meter: OpenTelemetryMeter; seen: string[] } {
  const seen: string[] = [];
  const instrument = (name: string) => {
    const note = (value: number, attributes?: Record<string, string>): void =>
      void seen.push(`${name} ${value} ${JSON.stringify(attributes ?? {})}`);
    return { add: note, record: (_value: number, attributes?: Record<string, string>) => note(1, attributes) };
  };
  return { meter: { createCounter: instrument, createUpDownCounter: instrument, createHistogram: instrument }, seen };
}

test("an acquire and a release are spans of a client, the release linked to its acquire", async () => {
  const { tracer, spans } = fakeTracer();
  const world = new World();
  const holdfast = await world.connect({ tracer });
  const lock = await world.within(100, holdfast.acquire("doc:42"));
  await world.within(100, lock.release());
  const [acquire, release] = spans;
  assert.equal(spans.length, 2);
  const attributes = { "holdfast.lock.name": "doc:42", "holdfast.lock.mode": "exclusive" };
  const [address, port] = world.cluster.endpoints[0]?.split(":") ?? [];
  assert.deepEqual(acquire, {
    name: "acquire",
    kind: 2,
    attributes,
    set: {
      "holdfast.acquire.outcome": "granted",
      "holdfast.lock.token": lock.token,
      "server.address": address,
      "server.port": Number(port),
    },
    status: null,
    isEnded: true,
  });
  assert.deepEqual(release, {
    name: "release",
    kind: 2,
    attributes,
    links: [{ context: { traceId: "t", spanId: "0", traceFlags: 1 } }],
    set: { "holdfast.release.result": "released", "holdfast.lock.token": lock.token },
    status: null,
    isEnded: true,
  });
});

test("the cluster is told of the spans, nothing of what is no W3C trace", async () => {
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  for (const id of [traceId, "t", "0".repeat(32)]) {
    const world = new World();
    const holdfast = await world.connect({ tracer: fakeTracer(id).tracer });
    const lock = await world.within(100, holdfast.acquire("doc:42"));
    await world.within(100, lock.release());
    const told = world.cluster.received.flatMap(({ message }) =>
      message.kind === "command" ? [`${decodeCommand(message.payload).kind} ${message.traceparent ?? "untraced"}`] : [],
    );
    const of = (span: number): string =>
      id === traceId ? `00-${id}-${String(span).padStart(16, "a")}-01` : "untraced";
    assert.deepEqual(told, ["openSession untraced", `acquire ${of(0)}`, `release ${of(1)}`]);
  }
});

test("a failed acquire's span has the code as its error's type; one that is given up or not free is no failure", async () => {
  const { tracer, spans } = fakeTracer();
  const world = new World();
  const holdfast = await world.connect({ tracer, ttlMs: 4_000 });
  await world.within(100, holdfast.acquire(["a", "b"]));
  assert.equal(await world.within(100, holdfast.tryAcquire("a")), null);
  await assert.rejects(world.within(1_000, holdfast.acquire("a", { waitMs: 100 })), { code: "wait_timeout" });
  const controller = new AbortController();
  const given = holdfast.acquire("a", { signal: controller.signal });
  controller.abort();
  await assert.rejects(given, { name: "AbortError" });
  for (const node of world.cluster.nodes) node.reach = "silent";
  await assert.rejects(world.within(20_000, holdfast.acquire("c", { waitMs: 10_000 })), { code: "unreachable" });
  assert.deepEqual(spans[0]?.attributes, { "holdfast.lock.names": ["a", "b"], "holdfast.lock.mode": "exclusive" });
  assert.deepEqual(
    spans
      .slice(1)
      .map(({ set, status, isEnded }) => [set["holdfast.acquire.outcome"], set["error.type"] ?? null, status, isEnded]),
    [
      ["refused", null, null, true],
      ["timeout", "wait_timeout", 2, true],
      ["aborted", null, null, true],
      ["error", "unreachable", 2, true],
    ],
  );
});

test("a meter gets each figure, with attributes of closed sets", async () => {
  const { meter, seen } = fakeMeter();
  const world = new World();
  const holdfast = await world.connect({ meter, ttlMs: 4_000 });
  const lock = await world.within(100, holdfast.acquire("doc:42"));
  await world.clock.advance(1_500);
  await world.within(100, lock.release());
  await world.within(100, holdfast.acquire("doc:43"));
  await world.within(1_000, holdfast.close());
  const session = (value: number, state: string): string =>
    `holdfast.client.session.state ${value} {"holdfast.session.state":"${state}"}`;
  const granted = '{"holdfast.acquire.outcome":"granted","holdfast.lock.mode":"exclusive"}';
  const mode = '{"holdfast.lock.mode":"exclusive"}';
  assert.deepEqual(seen, [
    session(1, "opening"),
    session(-1, "opening"),
    session(1, "open"),
    `holdfast.client.lock.count 1 ${mode}`,
    `holdfast.client.acquire.duration 1 ${granted}`,
    'holdfast.client.renewals 1 {"holdfast.renewal.outcome":"renewed"}',
    "holdfast.client.lease.margin 1 {}",
    `holdfast.client.lock.count -1 ${mode}`,
    'holdfast.client.hold.duration 1 {"holdfast.hold.ending":"released"}',
    `holdfast.client.lock.count 1 ${mode}`,
    `holdfast.client.acquire.duration 1 ${granted}`,
    `holdfast.client.lock.count -1 ${mode}`,
    'holdfast.client.hold.duration 1 {"holdfast.hold.ending":"lost"}',
    'holdfast.client.losses 1 {"holdfast.loss.reason":"closed"}',
    session(-1, "open"),
  ]);
});

test("a tracer and a meter that throw cost nothing but what they would have told", async () => {
  const fail = (): never => {
    throw new Error("the exporter is full");
  };
  const broken = { add: fail, record: fail };
  const meter: OpenTelemetryMeter = {
    createCounter: () => broken,
    createUpDownCounter: () => broken,
    createHistogram: () => broken,
  };
  const span: OpenTelemetrySpan = { setAttribute: fail, setStatus: fail, spanContext: fail, end: fail };
  for (const startSpan of [fail, () => span]) {
    const world = new World();
    const holdfast = await world.connect({ meter, tracer: { startSpan } });
    const lock = await world.within(100, holdfast.acquire("a"));
    assert.equal(await world.within(100, lock.release()), "released");
    await world.within(1_000, holdfast.close());
  }
});
