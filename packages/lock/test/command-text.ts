/** Commands as one writes them in a table: `1 acquire a,b shared try delay=5000`. */
import type { Command, Mode, SessionId } from "../src/index.js";

/** Sessions by the names that a table gives them; a name that isn't known yet must be a number. */
export type Aliases = Map<string, SessionId>;

interface Words {
  readonly plain: string[];
  readonly options: Map<string, string>;
}

export function splitWords(text: string): Words {
  const plain: string[] = [];
  const options = new Map<string, string>();
  for (const word of text.split(/\s+/).filter((each) => each !== "")) {
    const equals = word.indexOf("=");
    if (equals > 0) options.set(word.slice(0, equals), word.slice(equals + 1));
    else plain.push(word);
  }
  return { plain, options };
}

export function parseCommand(who: string, text: string, aliases: Aliases): Command {
  const { plain, options } = splitWords(text);
  const [first = "", second = "", third = ""] = plain;
  const number = (name: string, otherwise = 0): number => numberOf(options.get(name), otherwise);
  if (first === "open") {
    const ttlMs = number("ttl", 10_000);
    return { kind: "openSession", key: options.get("key") ?? who, ttlMs, info: options.get("info") ?? "" };
  }
  if (who !== "-") return parseSessionCommand(who, plain, options, aliases);
  const idsOf = (list: string) => list.split(",").map((name) => sessionOf(name, aliases));
  switch (first) {
    case "expire":
      return { kind: "expireSessions", ids: idsOf(second) };
    case "suspect":
      return { kind: "suspectSessions", ids: idsOf(second), eighths: number("eighths", 4) };
    case "renew":
      return { kind: "renewSuspects", ids: idsOf(second) };
    case "force": {
      const principal = options.get("by") ?? "admin";
      return { kind: "forceRelease", name: second, token: numberOf(third), principal, lockDelayMs: number("delay") };
    }
    case "end-delay":
      return { kind: "endLockDelay", name: second, index: numberOf(third) };
    case "end-hold": {
      const [, , of = "", token = ""] = plain;
      return { kind: "endHold", session: sessionOf(second, aliases), of: numberOf(of), token: numberOf(token) };
    }
    case "version":
      return { kind: "setClusterVersion", version: numberOf(second) };
    case "key": {
      const principal = options.get("by") ?? "";
      const replaces = options.get("replaces") ?? null;
      return { kind: "setSigningKey", id: second, publicKey: `P${second}`, seed: `S${second}`, replaces, principal };
    }
    default:
      throw new Error(`no such command: ${text}`);
  }
}

function parseSessionCommand(who: string, plain: string[], options: Map<string, string>, aliases: Aliases): Command {
  const [request = "", verb = "", third = "", ...rest] = plain;
  const seen =
    options
      .get("seen")
      ?.split(",")
      .map((each) => numberOf(each)) ?? [];
  const settled = numberOf(options.get("settled"), 1);
  const base = { session: sessionOf(who, aliases), request: numberOf(request), settled, seen };
  switch (verb) {
    case "acquire": {
      const slots = numberOf(options.get("slots"), 0);
      const mode: Mode = options.has("slots") ? "slot" : rest.includes("shared") ? "shared" : "exclusive";
      return {
        kind: "acquire",
        ...base,
        names: third === "-" ? [] : third.split(","),
        mode,
        slots,
        wait: !rest.includes("try"),
        lockDelayMs: numberOf(options.get("delay"), 0),
        maxHoldMs: numberOf(options.get("max"), 0),
        info: options.get("info") ?? "",
      };
    }
    case "release":
      return { kind: "release", ...base, of: numberOf(third), afterMs: numberOf(options.get("after"), 0) };
    case "cancel":
      return { kind: "cancel", ...base, of: numberOf(third) };
    case "info":
      return { kind: "setInfo", ...base, of: numberOf(third), info: rest[0] ?? "" };
    case "close":
      return { kind: "closeSession", ...base };
    default:
      throw new Error(`no such command of a session: ${plain.join(" ")}`);
  }
}

export function sessionOf(name: string, aliases: Aliases): SessionId {
  return aliases.get(name) ?? numberOf(name);
}

export function numberOf(text: string | undefined, otherwise?: number): number {
  if (text === undefined || text === "") {
    if (otherwise === undefined) throw new Error("a number is missing");
    return otherwise;
  }
  const value = Number(text);
  if (Number.isNaN(value) && text !== "NaN") throw new Error(`${text} is no number`);
  return value;
}
