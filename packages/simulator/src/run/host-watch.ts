/** The watch's ears on a node's host, from the moment that it is there. */
import type { Message } from "@holdfast/raft";
import type { NodeHost } from "@holdfast/server";
import type { DurableView } from "../invariants/index.js";
import { probed } from "../node/host-access.js";
import type { SimulatedNode } from "../node/simulated-node.js";
import type { World } from "./world.js";

export function watchHost({ watch, counts }: World, node: SimulatedNode, host: NodeHost): void {
  const { process, disk } = node;
  if (process === null) return;
  // A disk that lies says so of what is only in its cache.
  const said = (): DurableView => (disk.counts.unsyncedWrites > 0 ? disk.visible() : disk.durable());
  const view: DurableView = {
    get hardState() {
      return said().hardState;
    },
    get last() {
      return said().last;
    },
    termAt: (index) => said().termAt(index),
    chainAt: (index) => said().chainAt(index),
  };
  watch.onStarted(node.id, host, view, process);
  const onMessages = host.onMessages.bind(host);
  host.onMessages = (from, messages): void => {
    watch.onDelivered(node.id, from);
    onMessages(from, messages);
  };
  const { queue, parts } = probed(host);
  const { links } = parts;
  const takeEvents = queue.takeEvents.bind(queue);
  queue.takeEvents = () => {
    const events = takeEvents();
    if (events.length > 1) counts.add("several events in one turn");
    return events;
  };
  const send = links.send.bind(links);
  links.send = (to: string, messages: readonly Message[]): void => {
    if (node.process === process) for (const message of messages) watch.onSent(node.id, to, message);
    send(to, messages);
  };
}
