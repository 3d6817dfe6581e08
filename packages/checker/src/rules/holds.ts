/**
 * What the libraries said of their locks, in true time (P5, invariant 16): two that exclude each other are never both called held. Beyond
 * the clock bound, and where a paused client could not be asked, nothing is promised. A forced release reaches its holder only by message.
 */
import { acquiredBy } from "../books/calls.js";
import type { Call } from "../books/calls.js";
import type { Mode } from "../log-words.js";
import type { Run } from "../run.js";
import { placeText } from "../texts.js";
import type { Findings } from "../verdict.js";

interface Interval {
  readonly call: Call;
  readonly session: number | null;
  readonly mode: Mode;
  readonly token: number;
  readonly from: number;
  readonly until: number;
  /** Of the events that begin and end it. */
  readonly fromPosition: number;
  readonly untilPosition: number;
  /** It was paused and told late: when a fresh look would have said "lost" is not known. */
  readonly isVague: boolean;
}

interface End {
  readonly at: number;
  readonly position: number;
}

export function checkHolds(run: Run, findings: Findings): void {
  for (const intervals of intervalsByPlace(run).values()) {
    intervals.sort((a, b) => a.from - b.from || a.fromPosition - b.fromPosition);
    let active: Interval[] = [];
    for (const interval of intervals) {
      if (interval.until <= interval.from) {
        // Forced out before it was told of its grant.
        findings.excluded("hold-overlap");
        continue;
      }
      active = active.filter(({ until }) => until > interval.from);
      findings.judged("hold-overlap");
      // Holders of a shared lock are many: a new one is compared with the few that exclude it.
      for (const other of active) {
        if (interval.mode !== "shared" || other.mode !== "shared") checkOverlap(run, findings, other, interval);
      }
      active.push(interval);
    }
  }
}

function checkOverlap(run: Run, findings: Findings, earlier: Interval, later: Interval): void {
  // Whoever has the older token should have known by then that it was over.
  const older = later.token < earlier.token ? later : earlier;
  if (older.isVague || !isInBound(run, older, later)) {
    findings.excluded("hold-overlap");
    return;
  }
  const ms = Math.min(earlier.until, later.until, run.cluster.endAt) - later.from;
  const one = `${earlier.call.client} (call ${earlier.call.call})`;
  const other = `${later.call.client} (call ${later.call.call})`;
  const positions = [earlier.fromPosition, later.fromPosition, earlier.untilPosition];
  findings.violation("hold-overlap", `${one} and ${other} both call the lock held for ${ms.toFixed(3)} ms`, positions);
}

/** The older holder counts from its last acknowledged keepalive by its own clock; the leaders who ended it, by theirs. */
function isInBound(run: Run, older: Interval, later: Interval): boolean {
  const { session, call } = older;
  const lease = session === null ? undefined : run.leases.leases.get(session);
  const renewedAt = lease?.lastToldSendingBefore(later.fromPosition) ?? null;
  const key = session === null ? null : run.calls.keyOf(session);
  const openedAt = key === null ? null : run.leases.firstOpeningOf(key);
  const from = renewedAt ?? openedAt ?? 0;
  const leaders = run.cluster.leaderRate(from, later.from);
  const client = run.cluster.rateOf(call.client, from, later.from);
  return leaders.fastest / client.slowest <= 1 + run.rho;
}

function intervalsByPlace(run: Run): Map<string, Interval[]> {
  const sessionEnds = endsOfSessions(run);
  const closings = endsOfClients(run);
  const forced = forcedTokens(run);
  const byPlace = new Map<string, Interval[]>();
  for (const call of run.calls.calls.values()) {
    const acquired = acquiredBy(call);
    if (acquired === null || call.op.kind !== "acquire" || call.end === null) continue;
    const { session, request, grants } = acquired;
    const held = call.states.find(({ event }) => event.state === "held");
    const from = held !== undefined && held.position < call.end.position ? held.event.at : call.end.at;
    const fromPosition = Math.min(held?.position ?? call.end.position, call.end.position);
    const ends = endsByState(call);
    if (session !== null) ends.push(...(sessionEnds.get(session) ?? []));
    ends.push(...(closings.get(call.client) ?? []));
    const forcings = grants.flatMap(({ name, token }) => forced.get(`${name}@${token}`) ?? []);
    const hold = session === null || request === null ? null : run.ledger.requestFor(session, request)?.hold;
    if (hold?.end?.how === "forced") {
      forcings.push({ at: run.commitAt(hold.end.index), position: run.commitPosition(hold.end.index) });
    }
    // A forced end may come before the holder even hears of its grant.
    ends.push(...forcings.map(({ at, position }) => ({ at: Math.max(at, from), position })));
    const end = earliest(ends.filter(({ at }) => at >= from));
    const interval: Omit<Interval, "token"> = {
      call,
      session,
      mode: call.op.mode,
      from,
      until: end?.at ?? Number.POSITIVE_INFINITY,
      fromPosition,
      untilPosition: end?.position ?? fromPosition,
      isVague: isVague(run, call, from),
    };
    for (const { name, slot, token } of grants) {
      const place = placeText(name, slot);
      const others = byPlace.get(place);
      if (others === undefined) byPlace.set(place, [{ ...interval, token }]);
      else others.push({ ...interval, token });
    }
  }
  return byPlace;
}

/** From its release on the library says "released", whatever becomes of it. */
function endsByState({ states, releases }: Call): End[] {
  const ends: End[] = releases.map(({ at, position }) => ({ at, position }));
  for (const { event, position } of states) {
    if (event.state === "lost") ends.push({ at: event.since ?? event.at, position });
    if (event.state === "released") ends.push({ at: event.at, position });
  }
  return ends;
}

function isVague(run: Run, { client, states }: Call, from: number): boolean {
  const lost = states.find(({ event }) => event.state === "lost")?.event;
  if (lost?.since !== undefined && lost.since !== null) return false;
  return run.cluster.wasPaused(client, from, lost?.at ?? Number.POSITIVE_INFINITY);
}

function endsOfSessions(run: Run): Map<number, End[]> {
  const ends = new Map<number, End[]>();
  for (const { event, position } of run.calls.ended) {
    ends.set(event.session, [...(ends.get(event.session) ?? []), { at: event.at, position }]);
  }
  return ends;
}

function endsOfClients(run: Run): Map<string, End[]> {
  const ends = new Map<string, End[]>();
  for (const [process, end] of run.cluster.crashes) ends.set(process, [end]);
  for (const { client, op, end } of run.calls.calls.values()) {
    if (op.kind === "close" && end !== null) ends.set(client, [...(ends.get(client) ?? []), end]);
  }
  return ends;
}

/** Of these the holder learns late: not covered from the moment they were asked for. */
function forcedTokens(run: Run): Map<string, End[]> {
  const ends = new Map<string, End[]>();
  for (const { op, at, position } of run.calls.calls.values()) {
    if (op.kind !== "forceRelease") continue;
    const key = `${op.name}@${op.token}`;
    ends.set(key, [...(ends.get(key) ?? []), { at, position }]);
  }
  return ends;
}

function earliest(ends: readonly End[]): End | null {
  return ends.reduce<End | null>((first, end) => (first === null || end.at < first.at ? end : first), null);
}
