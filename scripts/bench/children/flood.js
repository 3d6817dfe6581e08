/**
 * Offers acquires at a given rate, whether or not those before were answered, and releases what it is granted. Counted is what comes of it
 * after a warm-up, in which the queues have filled. `offered` tells whether it kept up with the rate.
 *
 * It speaks the wire by itself: the client library would hold the load back, and costs more than the node's refusal.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { decodeServerFrame, encodeClientFrame, encodeCommand, limits } from "@holdfast/wire";
import { WebSocket } from "ws";
import { AcquireFrames, firstRequest } from "../acquire-frames.js";

const tickMs = 5;
/** What a late tick may offer at once, at most: as much as is due in so long. */
const catchUpMs = 200;
/** An acquire that is granted later than that came too late for whoever asked. */
const waitMs = 5_000;
const warmupMs = waitMs;
/** Long: keepalives are the holders' business, beside it. */
const ttlMs = 600_000;
const acquiresPerFrame = 32;
const sessionsPerConnection = 16;
/** A session keeps so many answers that its client has not seen yet; a client that keeps the rules waits then. */
const openPerSessionMax = limits.outcomesPerSessionMax - acquiresPerFrame;
/** More that TCP has not taken yet than this, and nothing is offered on a connection: releases would wait behind it, here and not at the node. */
const bufferedBytesMax = 64 * 1024;

/** @typedef {{ endpoint: string, connections: number, rate: number, seconds: number }} Order */
/** @typedef {ReturnType<typeof noCounts>} Counts */

process.on("message", (/** @type {Order} */ order) => {
  void run(order);
});
process.send?.({ ready: 1 });

/** @param {Order} order */
async function run({ endpoint, connections, rate, seconds }) {
  const counts = noCounts();
  const opened = await Promise.all(Array.from({ length: connections }, () => openSessions(endpoint, counts)));
  const sessions = opened.flat();
  let due = 0;
  let next = 0;
  let lastMs = performance.now();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    due += (rate * Math.min(nowMs - lastMs, catchUpMs)) / 1_000;
    lastMs = nowMs;
    for (let tried = 0; due >= acquiresPerFrame && tried < sessions.length; tried += 1) {
      next = (next + 1) % sessions.length;
      if (sessions[next].offer(nowMs)) due -= acquiresPerFrame;
    }
    // What nobody could offer is not made up for later.
    due = Math.min(due, acquiresPerFrame);
  }, tickMs);
  await sleep(warmupMs);
  Object.assign(counts, noCounts());
  process.send?.({ warm: 1 });
  const startMs = performance.now();
  await sleep(seconds * 1_000);
  clearInterval(timer);
  process.send?.({ ...counts, seconds: (performance.now() - startMs) / 1_000 });
}

/** `lost`: sessions that ended. */
function noCounts() {
  return { offered: 0, done: 0, overloaded: 0, timedOut: 0, failed: 0, lost: 0 };
}

/**
 * @param {string} endpoint
 * @param {Counts} counts
 * @returns {Promise<FloodSession[]>}
 */
function openSessions(endpoint, counts) {
  const socket = new WebSocket(`ws://${endpoint}`, {
    perMessageDeflate: false,
    maxPayload: limits.serverFrameBytesMax,
  });
  /** @type {Map<number, FloodSession>} */
  const sessions = new Map();
  return new Promise((resolve, reject) => {
    socket.on("error", reject);
    socket.on("close", () => {
      counts.lost += sessions.size;
      reject(new Error("the node has closed the connection"));
    });
    socket.on("open", () => {
      const hello = {
        protocol: limits.protocolVersion,
        features: ["refusedRuns"],
        clusterId: null,
        seenIndex: 0,
        info: "flood",
      };
      const openings = Array.from({ length: sessionsPerConnection }, opening);
      socket.send(encodeClientFrame([{ kind: "hello", ...hello }, ...openings]));
    });
    socket.on("message", (bytes) => {
      for (const message of decodeServerFrame(/** @type {Buffer} */ (bytes))) {
        if (message.kind === "sessionOpened") {
          sessions.set(message.session, new FloodSession(socket, message.session, counts));
          if (sessions.size === sessionsPerConnection) resolve([...sessions.values()]);
        } else if ("session" in message && message.session !== null) {
          sessions.get(message.session)?.onMessage(message);
        }
      }
    });
  });
}

/** @returns {import("@holdfast/wire").ClientMessage} */
function opening() {
  const key = randomBytes(limits.keyDigits / 2).toString("hex");
  return { kind: "command", payload: encodeCommand({ kind: "openSession", key, ttlMs, info: "flood" }) };
}

class FloodSession {
  #socket;
  #session;
  #counts;
  #frames;
  #next = firstRequest;
  /** All numbers below it were answered. */
  #settled = firstRequest;
  /** Numbers without an answer, and when each was offered. @type {Map<number, number>} */
  #open = new Map();
  /** Of those, releases of what was granted too late. @type {Set<number>} */
  #late = new Set();
  /** @type {import("@holdfast/wire").ClientMessage[]} */
  #releases = [];

  /**
   * @param {WebSocket} socket
   * @param {number} session
   * @param {Counts} counts
   */
  constructor(socket, session, counts) {
    this.#socket = socket;
    this.#session = session;
    this.#counts = counts;
    this.#frames = new AcquireFrames(session, `flood-${session}-`, acquiresPerFrame);
  }

  /**
   * Some acquires. False when it can't: too much is open, or TCP takes no more.
   * @param {number} nowMs
   */
  offer(nowMs) {
    if (this.#next - this.#settled >= openPerSessionMax || this.#socket.bufferedAmount > bufferedBytesMax) return false;
    for (let at = 0; at < acquiresPerFrame; at += 1) this.#open.set(this.#next + at, nowMs);
    this.#socket.send(this.#frames.bytesFor(this.#next, this.#settled));
    this.#next += acquiresPerFrame;
    this.#counts.offered += acquiresPerFrame;
    return true;
  }

  /** @param {Extract<import("@holdfast/wire").ServerMessage, { session: number | null }>} message */
  onMessage(message) {
    if (message.kind === "sessionEnded") this.#counts.lost += 1;
    if (message.kind === "refusedRun") return this.#onRefusedRun(message);
    if (!("request" in message) || message.request === null) return;
    const { request } = message;
    const offeredMs = this.#open.get(request);
    if (offeredMs === undefined) return;
    this.#open.delete(request);
    if (message.kind === "outcome" && message.outcome.kind === "granted") this.#onGranted(request, offeredMs);
    else if (message.kind === "outcome" && message.outcome.kind === "released") this.#onReleased(request);
    else if (message.kind === "refused" && message.refusal.code === "overloaded") this.#counts.overloaded += 1;
    else this.#counts.failed += 1;
    this.#settle();
  }

  /** @param {{ from: number, to: number }} run */
  #onRefusedRun({ from, to }) {
    for (let request = from; request <= to; request += 1) if (this.#open.delete(request)) this.#counts.overloaded += 1;
    this.#settle();
  }

  #settle() {
    while (this.#settled < this.#next && !this.#open.has(this.#settled)) this.#settled += 1;
  }

  /**
   * @param {number} request
   * @param {number} offeredMs
   */
  #onGranted(request, offeredMs) {
    const nowMs = performance.now();
    const number = this.#next++;
    this.#open.set(number, nowMs);
    if (nowMs - offeredMs > waitMs) this.#late.add(number);
    const carried = { session: this.#session, request: number, settled: this.#settled, seen: [] };
    const payload = encodeCommand({ kind: "release", ...carried, of: request, afterMs: 0 });
    this.#releases.push({ kind: "command", payload });
    if (this.#releases.length === 1) queueMicrotask(() => this.#sendReleases());
  }

  /** @param {number} request */
  #onReleased(request) {
    if (this.#late.delete(request)) this.#counts.timedOut += 1;
    else this.#counts.done += 1;
  }

  #sendReleases() {
    for (let at = 0; at < this.#releases.length; at += limits.messagesPerFrameMax) {
      this.#socket.send(encodeClientFrame(this.#releases.slice(at, at + limits.messagesPerFrameMax)));
    }
    this.#releases = [];
  }
}
