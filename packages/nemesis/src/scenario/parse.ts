/** From a file's text to a scenario. Everything that is wrong with it is said at once, each with its path. */
import type { Action, Expectations, Role, Scenario, Step } from "./scenario.js";
import { readAction } from "./actions.js";
import { Fields } from "./fields.js";
import type { Problem } from "./fields.js";

export class ScenarioError extends Error {
  override readonly name: string = "ScenarioError";
  readonly problems: readonly Problem[];

  constructor(file: string, problems: readonly Problem[]) {
    super(
      problems
        .map(({ path, problem }) => (path === "" ? `${file}: ${problem}` : `${file}: ${path} ${problem}`))
        .join("\n"),
    );
    this.problems = problems;
  }
}

/** A lease must outlive an election (docs/configuration.md, ttlMsMin). */
const ttlMsLeast = (electionTimeoutMs: number): number => 3 * electionTimeoutMs + 500;
const hourSeconds = 3_600;

/** Throws ScenarioError. `file` is for the message. */
export function parseScenario(text: string, file: string): Scenario {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ScenarioError(file, [{ path: "", problem: `is no JSON: ${(error as Error).message}` }]);
  }
  const problems: Problem[] = [];
  const scenario = readScenario(new Fields(value, "", problems), problems);
  if (problems.length > 0) throw new ScenarioError(file, problems);
  return scenario;
}

function readScenario(fields: Fields, problems: Problem[]): Scenario {
  const electionTimeoutMs = fields.number("electionTimeoutMs", 100, 20_000, 500);
  const fastSeconds = fields.number("fastSeconds", 1, hourSeconds);
  const scenario: Scenario = {
    name: fields.text("name"),
    about: fields.text("about"),
    nodes: fields.oneOf("nodes", [1, 3, 5], 3),
    workers: fields.number("workers", 1, 20, 3),
    locks: fields.number("locks", 1, 20, 2),
    mode: fields.oneOf("mode", ["any", "proxy", "netns"], "any"),
    ttlMs: fields.number(
      "ttlMs",
      ttlMsLeast(electionTimeoutMs),
      3_600_000,
      Math.max(2_000, ttlMsLeast(electionTimeoutMs)),
    ),
    electionTimeoutMs,
    limits: fields.numbers("limits"),
    fastSeconds,
    seconds: fields.number("seconds", fastSeconds, hourSeconds, fastSeconds),
    holdMs: fields.number("holdMs", 0, 60_000, 40),
    restMs: fields.number("restMs", 0, 60_000, 80),
    schedule: fields.list("schedule", 0, (each, path) => readStep(new Fields(each, path, problems))),
    expect: readExpectations(fields.fields("expect")),
  };
  fields.noMore();
  checkWhole(scenario, fields);
  return scenario;
}

function readStep(fields: Fields): Step {
  const step: Step = {
    at: fields.number("at", 0, hourSeconds),
    forSeconds: fields.numberOrNull("for", 0.1, hourSeconds),
    action: readAction(fields.fields("do")),
    backWithin: fields.numberOrNull("backWithin", 0, 1_000),
    backFrom: fields.oneOf("backFrom", ["begin", "end"], "begin"),
  };
  fields.noMore();
  const happensOnce = step.action.kind === "reset" || step.action.kind === "halfClose" || step.action.kind === "roll";
  if (happensOnce && step.forSeconds !== null) fields.note("for", `makes no sense: ${step.action.kind} happens once`);
  if (!happensOnce && step.forSeconds === null) fields.note("for", `is missing: ${step.action.kind} lasts`);
  return step;
}

function readExpectations(fields: Fields): Expectations {
  const many = 1_000_000;
  const expect: Expectations = {
    electionsMin: fields.number("electionsMin", 0, many, 0),
    electionsMax: fields.numberOrNull("electionsMax", 0, many),
    termsMax: fields.numberOrNull("termsMax", 0, many),
    grantsMin: fields.number("grantsMin", 1, many, 1),
    refusedMin: fields.number("refusedMin", 0, many, 0),
    lostUnguardedMin: fields.number("lostUnguardedMin", 0, many, 0),
    lossesMax: fields.numberOrNull("lossesMax", 0, many),
    installsMin: fields.number("installsMin", 0, many, 0),
    judged: fields.numbers("judged"),
    refusesToStart: fields.numberOrNull("refusesToStart", 1, 255),
  };
  fields.noMore();
  return expect;
}

/** What fields can't see alone. */
function checkWhole(scenario: Scenario, fields: Fields): void {
  const { schedule, expect, fastSeconds } = scenario;
  for (const [at, { at: begins, forSeconds, action }] of schedule.entries()) {
    const path = `schedule[${at}]`;
    if (begins + (forSeconds ?? 0) > fastSeconds) fields.note(path, `ends after the ${fastSeconds} s of the load`);
    if (
      action.kind === "machine" &&
      action.fault.kind === "clockRate" &&
      action.who.some((role) => !/^[nw]\d+$/.test(role))
    ) {
      fields.note(
        `${path}.do.who`,
        "must name nodes and workers: a clock's rate holds from the start, when there is no leader yet",
      );
    }
  }
  for (const { path, problem } of roleProblems(scenario)) fields.noteAt(path, problem);
  const pauses = schedule.some(({ action }) => action.kind === "pause");
  if (pauses && (expect.refusedMin < 1 || expect.lostUnguardedMin < 1)) {
    fields.note(
      "expect",
      "must demand refusedMin and lostUnguardedMin of a pause: else nobody knows whether it was long enough",
    );
  }
}

/** Throws ScenarioError. */
export function checkRoles(scenario: Scenario): void {
  const problems = roleProblems(scenario);
  if (problems.length > 0) throw new ScenarioError(scenario.name, problems);
}

function roleProblems({ schedule, nodes, workers }: Scenario): readonly Problem[] {
  return schedule.flatMap(({ action }, at) =>
    [...new Set(rolesIn(action))].flatMap((role): Problem[] => {
      const problem = problemWithRole(role, nodes, workers);
      return problem === null ? [] : [{ path: `schedule[${at}].do`, problem }];
    }),
  );
}

function rolesIn(action: Action): readonly Role[] {
  if ("ways" in action) return action.ways.flatMap(({ from, to }) => [from, to]);
  if (action.kind === "split") return action.groups.flat();
  return "who" in action ? action.who : [];
}

const namedRoles = ["leader", "followers", "holder", "prober", "others", "nodes", "workers", "clients", "store"];

function problemWithRole(role: Role, nodes: number, workers: number): string | null {
  if (namedRoles.includes(role)) return null;
  const [, kind = "", number = "1"] = /^(follower|n|w)(\d*)$/.exec(role) ?? [];
  const most = { follower: nodes - 1, n: nodes, w: workers }[kind];
  if (most === undefined || (kind !== "follower" && role === kind)) return `names ${role}, which is no role`;
  const at = number === "" ? 1 : Number(number);
  return at >= 1 && at <= most ? null : `names ${role}, and there are only ${most}`;
}
