/** `holdfast doctor --guard s3://...` on Ceph's gateway, and on a server that breaks the rule. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { examineByCli } from "./doctor-run.js";
import { skipWithoutDriver } from "./drivers.js";
import { skipWithoutRadosgw, startRadosgw } from "./radosgw.js";
import { bucketOf, s3Client, s3Keys } from "./s3-client.js";
import type { TestS3 } from "./s3-client.js";
import { startS3Server } from "./s3-server.js";

interface Listed extends TestS3 {
  putBucketLifecycleConfiguration(input: object): Promise<unknown>;
}

const environment = {
  AWS_ACCESS_KEY_ID: s3Keys.accessKeyId,
  AWS_SECRET_ACCESS_KEY: s3Keys.secretAccessKey,
  AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
};

test("doctor --guard on Ceph's gateway: sound, and a lifecycle rule that deletes fences", {
  skip: skipWithoutRadosgw(),
  timeout: 360_000,
}, async () => {
  const radosgw = await startRadosgw();
  const client = s3Client(radosgw.address) as Listed;
  const Bucket = bucketOf(radosgw.address);
  try {
    const sound = await examineByCli(`s3+${radosgw.address}`, "drivers", environment);
    assert.deepEqual([sound.code, sound.problems], [0, []], sound.text);
    assert.match(sound.text, /of 16 writers at once the newest had the last word/);
    assert.match(sound.text, /no lifecycle rule deletes current objects under holdfast\//);
    const { Contents = [] } = await client.listObjectsV2({ Bucket, Prefix: "" });
    assert.deepEqual(Contents, [], "nothing is left behind");

    const Rules = [{ ID: "old", Status: "Enabled", Filter: { Prefix: "hold" }, Expiration: { Days: 30 } }];
    await client.putBucketLifecycleConfiguration({ Bucket, LifecycleConfiguration: { Rules } });
    // As Amazon's, with the endpoint from the environment.
    const AWS_ENDPOINT_URL_S3 = new URL(radosgw.address).origin;
    const ruled = await examineByCli(`s3://${Bucket}`, "drivers", { ...environment, AWS_ENDPOINT_URL_S3 });
    assert.deepEqual([ruled.code, ruled.problems], [4, ["eviction"]], ruled.text);
    const elsewhere = await examineByCli(`s3+${radosgw.address}/fences`, "drivers", environment);
    assert.deepEqual([elsewhere.code, elsewhere.problems], [0, []], elsewhere.text);
  } finally {
    client.destroy();
    await radosgw.stop();
  }
});

test("doctor --guard on a store that ignores If-Match, on one that is gone, and on what is no bucket", {
  skip: skipWithoutDriver("@aws-sdk/client-s3"),
}, async () => {
  const ignoring = await startS3Server({ etags: "ignored" });
  try {
    const found = await examineByCli(`s3+${ignoring.address}`, "drivers", environment);
    assert.deepEqual([found.code, found.problems], [4, ["old token"]], found.text);
    assert.match(found.text, /can't be guarded: the store, or the client in use, ignores If-Match/);
    assert.deepEqual([...ignoring.objects.keys()], []);
  } finally {
    await ignoring.stop();
  }
  const gone = await examineByCli(`s3+${ignoring.address}`, "drivers", environment);
  assert.equal(gone.code, 1, gone.text);
  assert.match(gone.text, /client-s3 says: .*ECONNREFUSED/);
  for (const url of [
    "s3://",
    "s3+http://host",
    "s3://key:secret@bucket",
    "s3://bucket?region=x",
    "s3+https://host/b/%ff",
  ]) {
    const odd = await examineByCli(url, "drivers", environment);
    assert.equal(odd.code, 2, odd.text);
    assert.doesNotMatch(odd.text, /secret/);
  }
});
