/** What this machine allows: which network a scenario runs on, and which scenarios can't run here. */
import type { MachineFaultKind } from "../machine/machine.js";
import type { RealMachine } from "../machine/real-machine.js";
import { missingDelay } from "../network/netns/enter.js";
import { NetnsNetwork } from "../network/netns/netns-network.js";
import type { Network, Parties } from "../network/network.js";
import { ProxyNetwork } from "../network/proxy/proxy-network.js";
import type { Scenario } from "../scenario/scenario.js";

export interface Facilities {
  /** Whether this process is in a network namespace of its own. */
  readonly isInside: boolean;
  /** The mode was asked for, not found: then a scenario that needs the other is skipped. */
  readonly isStrict: boolean;
}

export type Place =
  | { readonly skipped: null; readonly openNetwork: (parties: Parties) => Promise<Network> }
  | { readonly skipped: string };

/** `machine`: asked only. */
export async function placeFor(scenario: Scenario, facilities: Facilities, machine: RealMachine): Promise<Place> {
  for (const kind of machineKinds(scenario)) {
    const problem = await machine.missing(kind);
    if (problem !== null) return { skipped: `${kind}: ${problem}` };
  }
  const proxyReason = await needsProxy(scenario, facilities);
  if (facilities.isInside && proxyReason === null)
    return { skipped: null, openNetwork: (all) => NetnsNetwork.open(all) };
  if (scenario.mode === "netns") return { skipped: "it needs network namespaces" };
  if (facilities.isInside && facilities.isStrict) return { skipped: `it needs a proxy: ${proxyReason}` };
  return { skipped: null, openNetwork: (all) => ProxyNetwork.open(all) };
}

async function needsProxy({ mode, schedule }: Scenario, { isInside }: Facilities): Promise<string | null> {
  if (mode === "proxy") return "it says so";
  if (!isInside) return null;
  const isDelaying = schedule.some(
    ({ action }) => action.kind === "shape" && (action.shape.delayMs ?? action.shape.jitterMs) !== undefined,
  );
  return isDelaying ? missingDelay() : null;
}

function machineKinds({ schedule }: Scenario): ReadonlySet<MachineFaultKind> {
  return new Set(
    schedule.flatMap(({ action }): MachineFaultKind[] => {
      if (action.kind === "machine") return [action.fault.kind];
      return action.kind === "pause" && action.how === "freeze" ? ["frozen"] : [];
    }),
  );
}
