/** Where a network of namespaces can be built: in a network namespace that has no way out of the machine. */
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { runCommand, whyNot } from "../../machine/command.js";
import { findRules } from "./filter.js";

/** As root. The mounts are its own too, so that what is mounted there ends with it. */
const asRoot = ["unshare", "--net", "--mount", "--"];
/** Without: root's rights over new namespaces and nothing else. The user stays who they are, for PostgreSQL refuses to run as root. */
const asUser = ["unshare", "--user", "--map-current-user", "--keep-caps", "--net", "--mount", "--"];

/** Everything that is needed, tried out in one go; `bridge` and `veth` may be modules that can't be loaded. */
const trial = [
  "ip link add name b type bridge",
  "ip link add name v type veth peer name w",
  "ip link set dev lo up",
  "unshare --net -- true",
  "nsenter --net=/proc/$$/ns/net -- true",
].join(" && ");

export type Entrance =
  | { readonly command: readonly string[]; readonly missing: null }
  | { readonly command: null; readonly missing: string };

/**
 * The command that starts a program in a network namespace of its own: a run starts itself anew by it, for no process can change the
 * namespace of its sockets once they are open. Else why there is none here.
 */
export async function entrance(): Promise<Entrance> {
  const problems: string[] = [];
  for (const command of [asRoot, asUser]) {
    const problem = await whyNot([...command, "sh", "-c", trial]);
    const found = problem === null ? await findRules(command) : { missing: problem };
    if ("rules" in found) return { command, missing: null };
    problems.push(found.missing);
  }
  const [, lastWord = ""] = problems;
  return { command: null, missing: `no network namespaces here: ${lastWord}` };
}

/**
 * Starts this program anew by the command of `entrance()`, with the same arguments, and resolves with its exit code. It is killed when this
 * process dies.
 */
export async function startAnew(command: readonly string[]): Promise<number> {
  const [program = "", ...rest] = [
    ...command,
    "setpriv",
    "--pdeathsig",
    "KILL",
    "--",
    process.execPath,
    ...process.argv.slice(1),
  ];
  const child = spawn(program, rest, { stdio: "inherit" });
  // A terminal sends these to both: the one inside comes to its end, and this one waits for it.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => resolve(code ?? 1));
  });
}

/** The kernel puts these into each new namespace when it has their modules; they lead nowhere until somebody gives them an end. */
const fallbackTunnels = ["tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0"];

/**
 * Null when this process is in a namespace of its own: nothing but the loopback leads anywhere, so no packet can leave the machine. Else what
 * is in the way.
 */
export async function notAlone(): Promise<string | null> {
  const names = await interfaces();
  const others = names.filter((name) => name !== "lo" && !fallbackTunnels.includes(name));
  if (others.length > 0) return `this process's network has other interfaces than the loopback: ${others.join(", ")}`;
  return whyNot(["unshare", "--net", "--", "true"]);
}

/** Of this process's own network namespace, up or down. */
async function interfaces(): Promise<string[]> {
  const lines = (await readFile("/proc/self/net/dev", "utf8")).split("\n").slice(2);
  return lines.map((line) => line.split(":")[0]?.trim() ?? "").filter((name) => name !== "");
}

/** Null when the kernel can delay packets. */
export async function missingDelay(): Promise<string | null> {
  const problem = await whyNot([
    "unshare",
    "--net",
    "--",
    "tc",
    "qdisc",
    "add",
    "dev",
    "lo",
    "root",
    "netem",
    "delay",
    "1ms",
  ]);
  return problem === null ? null : `the kernel has no netem to delay packets: ${problem}`;
}

export async function raiseLoopback(): Promise<void> {
  await runCommand(["ip", "link", "set", "dev", "lo", "up"]);
}
