/** Three ways to take a lock of etcd, by its usual Node client. One lease for each connection, kept alive by the client, as a session is. */
import { Etcd3 } from "etcd3";

const ttlSeconds = 10;

/** @typedef {import("./peer.js").Connection} Connection */

/**
 * The cheapest: the key is put if it isn't there, and deleted.
 * @param {string[]} hosts
 * @returns {Promise<Connection>}
 */
export async function connectPutIfAbsent(hosts) {
  const { client, lease, close } = await connectWithLease(hosts);
  return {
    acquire: async (name) => {
      const put = client.put(name).value("").lease(lease);
      const { succeeded } = await client.if(name, "Create", "==", 0).then(put).commit();
      if (!succeeded) throw new Error(`etcd: ${name} is held`);
      return async () => {
        await client.delete().key(name);
      };
    },
    close,
  };
}

/**
 * What etcd3 offers: a lease for each lock, which the release revokes.
 * @param {string[]} hosts
 * @returns {Promise<Connection>}
 */
export async function connectOwnLock(hosts) {
  const client = new Etcd3({ hosts });
  return {
    acquire: async (name) => {
      const lock = await client.lock(name).ttl(ttlSeconds).acquire();
      return () => lock.release();
    },
    close: async () => client.close(),
  };
}

/**
 * Fair waiting, as etcd's own Go package `concurrency` does it: a key for each waiter, in the order of their creation; who isn't first
 * watches the one before. The waiters of a connection share its lease, which spares etcd two writes each.
 * @param {string[]} hosts
 * @returns {Promise<Connection>}
 */
export async function connectQueue(hosts) {
  const { client, lease, close } = await connectWithLease(hosts);
  let count = 0;
  return {
    acquire: async (name) => {
      count += 1;
      const key = `${name}/${lease}-${count}`;
      const { header } = await client.put(key).value("").lease(lease).exec();
      const revision = Number(header.revision);
      for (;;) {
        const ahead = await client
          .getAll()
          .prefix(`${name}/`)
          .maxCreateRevision(revision - 1)
          .sort("Create", "Descend")
          .limit(1)
          .exec();
        const last = ahead.kvs[0];
        if (last === undefined) break;
        await deletionOf(client, last.key.toString(), Number(ahead.header.revision) + 1);
      }
      return async () => {
        await client.delete().key(key);
      };
    },
    close,
  };
}

/**
 * @param {import("etcd3").Etcd3} client
 * @param {string} key
 * @param {number} fromRevision A deletion before the watch was there is told too.
 */
async function deletionOf(client, key, fromRevision) {
  const watcher = await client.watch().key(key).startRevision(String(fromRevision)).create();
  await new Promise((resolve) => watcher.once("delete", resolve));
  await watcher.cancel();
}

/** @param {string[]} hosts */
async function connectWithLease(hosts) {
  const client = new Etcd3({ hosts });
  const session = client.lease(ttlSeconds);
  const lease = await session.grant();
  const close = async () => {
    await session.revoke().catch(() => undefined);
    client.close();
  };
  return { client, lease, close };
}
