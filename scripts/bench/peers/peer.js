/**
 * What is measured: services that run here, and ways to take a lock of them.
 *
 * @typedef {object} Connection One connection, which several clients share.
 * @property {(name: string) => Promise<() => Promise<void>>} acquire Resolves, when the lock is held, with what releases it.
 * @property {() => Promise<void>} close
 *
 * @typedef {object} ConnectOptions
 * @property {boolean} [everyNode] Knows all nodes, as a program would that outlives one of them. Else it goes straight to the leader
 * where the service has one: no request takes a hop more.
 *
 * @typedef {object} Contender A way to take locks.
 * @property {string} id
 * @property {string} title
 * @property {boolean} waits Whether acquire waits in a queue; else it rejects when the lock is held.
 * @property {(options?: ConnectOptions) => Promise<Connection>} connect
 *
 * @typedef {object} Peer
 * @property {string} id
 * @property {() => Promise<void>} start Resolves when it serves.
 * @property {() => Promise<void>} stop
 * @property {() => number[]} pids Of all its servers.
 * @property {readonly Contender[]} contenders
 * @property {(() => Promise<Killing>) | null} killLeader SIGKILL to the leader; null for a service without replicas.
 *
 * @typedef {{ atMs: number, heal: () => Promise<void> }} Killing When it was, by performance.now(); what starts that node again and
 * waits until all serve.
 *
 * @typedef {object} PeerKind
 * @property {string} id
 * @property {() => string | null} missing What to install when it can't run here.
 * @property {(folder: string) => Peer} make
 */
import { etcdKind } from "./etcd.js";
import { redisKind } from "./redis.js";
import { zooKeeperKind } from "./zookeeper.js";

/** The services that are measured beside ours. @type {readonly PeerKind[]} */
export const otherKinds = [etcdKind, zooKeeperKind, redisKind];
