/**
 * What no service of this kind can go below on this machine: one synced write, with two others writing at the same time as three nodes do,
 * and two round trips over ws, from the client to the leader and from the leader to a follower.
 */
import path from "node:path";
import { fileURLToPath } from "node:url";
import WebSocket from "ws";
import { Started } from "./processes.js";
import { percentile } from "./statistics.js";

const diskWriter = fileURLToPath(new URL("./children/disk-writer.js", import.meta.url));
const echo = fileURLToPath(new URL("./children/echo.js", import.meta.url));
/** About an acquire's frame. */
const messageBytes = 100;

/**
 * @param {string} folder
 * @param {number} seconds
 */
export async function measureFloor(folder, seconds) {
  const disk = await syncedBatch(folder, seconds);
  const trip = await roundTrip(folder, seconds);
  return { acquireP50Ms: disk.p50Ms + 2 * trip.p50Ms, acquireP99Ms: disk.p99Ms + 2 * trip.p99Ms };
}

/**
 * @param {string} folder
 * @param {number} seconds
 */
async function syncedBatch(folder, seconds) {
  const writers = [1, 2, 3].map((number) => {
    const words = [process.execPath, diskWriter];
    return new Started(`writer-${number}`, words, { folder: path.join(folder, `${number}`), hasChannel: true });
  });
  try {
    await Promise.all(writers.map((writer) => writer.next()));
    const [first] = await Promise.all(writers.map((writer) => writer.ask({ seconds })));
    return { p50Ms: first.p50Ms, p99Ms: first.p99Ms };
  } finally {
    await Promise.all(writers.map((writer) => writer.kill()));
  }
}

/**
 * @param {string} folder
 * @param {number} seconds
 */
async function roundTrip(folder, seconds) {
  const server = new Started("echo", [process.execPath, echo], { folder, hasChannel: true });
  try {
    const { port } = await server.next();
    const socket = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false });
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
    const times = [];
    const message = Buffer.alloc(messageBytes, 1);
    for (const untilMs = performance.now() + seconds * 1_000; performance.now() < untilMs; ) {
      const startMs = performance.now();
      socket.send(message);
      await new Promise((resolve) => socket.once("message", resolve));
      times.push(performance.now() - startMs);
    }
    socket.terminate();
    return { p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99) };
  } finally {
    await server.kill();
  }
}
