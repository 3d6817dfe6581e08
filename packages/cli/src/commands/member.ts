/** `holdfast member`: who belongs to the cluster, and how that is changed. */
import { setTimeout as sleep } from "node:timers/promises";
import { HoldfastError } from "@holdfast/client";
import type { Holdfast } from "@holdfast/client";
import type { Command } from "commander";
import { CommandFailure } from "../command-failure.js";
import { withClient, withCluster } from "../context.js";
import type { ClusterOptions, Context } from "../context.js";
import { manual } from "../doctor/finding.js";
import { MemberSteps } from "../members/member-steps.js";
import { membersSummary, membersText } from "../members/member-table.js";
import { identityAt } from "../members/node-identity.js";
import { json, paintFor } from "../output.js";

interface AddressOptions extends ClusterOptions {
  readonly peer: string;
  readonly client: string;
  readonly instance?: string;
}

interface AddOptions extends AddressOptions {
  readonly wait: boolean;
}

interface ForceOptions extends ClusterOptions {
  readonly force?: boolean;
}

const forceText = "begin it though the voters that are up would be no majority";

export function addMemberCommand(program: Command, context: Context): void {
  const member = program.command("member").description("show and change who belongs to the cluster").helpCommand(false);
  addList(member, context);
  addAdd(member, context);
  addPromote(member, context);
  addRemove(member, context);
  addReplace(member, context);
}

function addList(member: Command, context: Context): void {
  withCluster(member.command("list"))
    .description("the members, as the leader sees them")
    .action(async (options: ClusterOptions) => {
      const view = membersSummary(await withClient(options, context.io, (holdfast) => holdfast.members()));
      context.io.out(options.json === true ? json(view) : membersText(view, paintFor(context.io)));
    });
}

function addAdd(member: Command, context: Context): void {
  withAddresses(withCluster(member.command("add")))
    .description("add a node that waits, as a learner, and wait until it has caught up")
    .argument("<id>", "the new node")
    .option("--no-wait", "end when it is a learner")
    .action(async (id: string, options: AddOptions) => {
      await checkNewMember(id, options);
      await change(options, context, async (steps) => {
        await steps.add({ id, peer: options.peer, client: options.client }, options.instance ?? null);
        if (options.wait) await steps.untilCaughtUp(id);
        return { member: id };
      });
    });
}

function addPromote(member: Command, context: Context): void {
  withCluster(member.command("promote"))
    .description("give a learner its vote, once it has caught up")
    .argument("<id>", "the learner")
    .option("--force", forceText)
    .action(async (id: string, options: ForceOptions) => {
      await change(options, context, async (steps) => {
        await steps.promote(id, options.force === true);
        return { member: id };
      });
    });
}

function addRemove(member: Command, context: Context): void {
  withCluster(member.command("remove"))
    .description("remove a node for ever; refused when the nodes that are up would be no majority")
    .argument("<id>", "the node; its id never comes back")
    .option("--force", forceText)
    .action(async (id: string, options: ForceOptions) => {
      await change(options, context, async (steps) => {
        await steps.remove(id, options.force === true);
        return { removed: id };
      });
    });
}

function addReplace(member: Command, context: Context): void {
  withAddresses(withCluster(member.command("replace")))
    .description("put a node that waits into the place of another, in one change")
    .argument("<old>", "the node that goes; its id never comes back")
    .argument("<new>", "the new node")
    .option("--force", forceText)
    .action(async (old: string, id: string, options: AddressOptions & ForceOptions) => {
      await checkNewMember(id, options);
      await change(options, context, async (steps) => {
        await steps.checkReplaceable(old, id);
        await steps.add({ id, peer: options.peer, client: options.client }, options.instance ?? null);
        await steps.swap(old, id, options.force === true);
        return { removed: old, member: id };
      });
    });
}

function withAddresses(command: Command): Command {
  return command
    .requiredOption("--peer <address>", "where the other nodes reach it, host:port")
    .requiredOption("--client <address>", "where clients reach it, host:port")
    .option("--instance <name>", "of its data directory, from its log, when it can't be asked from here");
}

/** What can't be a node would be waited for without end, or its id be burnt. */
async function checkNewMember(id: string, { peer, client, instance }: AddressOptions): Promise<void> {
  const { newMemberProblem } = await import("@holdfast/server");
  const wrong = newMemberProblem({ id, peer, client, instance: instance ?? null });
  if (wrong === null) return;
  const subject = wrong.field === "id" ? "" : `--${wrong.field}: `;
  throw new CommandFailure("usage", "usage", `${subject}${wrong.problem}`);
}

/** Progress goes to people only: with --json there is one document. */
async function change(
  options: ClusterOptions,
  context: Context,
  body: (steps: MemberSteps) => Promise<object>,
): Promise<void> {
  const { io } = context;
  const isJson = options.json === true;
  const changing = withClient(options, io, async (holdfast: Holdfast) => {
    const steps = new MemberSteps({
      holdfast,
      identityAt,
      tell: (line) => (isJson ? undefined : io.tell(`${line}\n`)),
      sleep,
    });
    const done = await body(steps);
    if (isJson) io.out(json({ ...done, changed: steps.hasChanged }));
    else if (!steps.hasChanged) io.out("nothing to do: it is so already\n");
  });
  await changing.catch((error: unknown) => {
    throw withoutMajority(error);
  });
}

/** Who has lost the majority tries --force, which decides nothing without one either. */
export function withoutMajority(error: unknown): unknown {
  if (!(error instanceof HoldfastError) || error.code !== "no_quorum") return error;
  const advice =
    "members change by the decision of a majority of the voters, with --force too: start those that are down; " +
    `if their data directories are lost for ever: ${manual}#lost-majority`;
  return new CommandFailure("error", error.code, `${error.message}; ${advice}`);
}
