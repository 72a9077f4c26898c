// Calls every method of the echoing server at ADDRESS; prints what went wrong in each case, empty where nothing did.
"use strict";
const assert = require("node:assert");
const grpc = require("@grpc/grpc-js");

const unlimited = { "grpc.max_receive_message_length": -1, "grpc.max_send_message_length": -1 };
const address = process.argv[2];
const client = new grpc.Client(address, grpc.credentials.createInsecure(), unlimited);
const same = (data) => data;

function call(name, data, { deadline = 60, metadata = new grpc.Metadata(), on = client } = {}) {
  return new Promise((resolve, reject) => {
    const options = { deadline: Date.now() + deadline * 1000 };
    const done = (error, answer) => (error ? reject(error) : resolve(answer));
    on.makeUnaryRequest(`/test/${name}`, same, same, Buffer.from(data), metadata, options, done);
  });
}

async function refused(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("it was answered");
}

const cases = {
  async small() {
    assert.strictEqual((await call("Echo", "hello")).toString(), "hello");
    assert.strictEqual((await call("Echo", "")).length, 0);
  },
  async "one after the other"() {
    for (let n = 0; n < 500; n++) assert.strictEqual((await call("Echo", `${n}`)).toString(), `${n}`);
  },
  async "a thousand at once"() {
    const sent = Array.from({ length: 1000 }, (_, n) => `${n}`);
    const answers = await Promise.all(sent.map((text) => call("Echo", text)));
    assert.deepStrictEqual(answers.map(String), sent);
  },
  async "large both ways"() {
    const data = Buffer.alloc(20 << 20, "glow");
    assert.ok((await call("Echo", data)).equals(data));
  },
  async "a large answer"() {
    assert.strictEqual((await call("Zeros", "30000000")).length, 30000000);
  },
  async "small beside large"() {
    const large = call("Zeros", "50000000");
    for (let n = 0; n < 100; n++) assert.strictEqual((await call("Echo", "x")).toString(), "x");
    assert.strictEqual((await large).length, 50000000);
  },
  async compressed() {
    const on = new grpc.Client(address, grpc.credentials.createInsecure(), {
      ...unlimited,
      "grpc.default_compression_algorithm": grpc.compressionAlgorithms.gzip,
    });
    const data = Buffer.alloc(1 << 20, "glow");
    assert.ok((await call("Echo", data, { on })).equals(data));
    on.close();
  },
  async "an error and its text"() {
    const error = await refused(call("Fail", "it was 漢字 %41"));
    assert.strictEqual(error.code, grpc.status.FAILED_PRECONDITION);
    assert.strictEqual(error.details, "it was 漢字 %41");
  },
  async "no such method"() {
    assert.strictEqual((await refused(call("None", ""))).code, grpc.status.UNIMPLEMENTED);
  },
  async "a deadline"() {
    const error = await refused(call("Wait", "60", { deadline: 0.3 }));
    assert.strictEqual(error.code, grpc.status.DEADLINE_EXCEEDED);
  },
  async "a call that is taken back"() {
    const error = await new Promise((resolve) => {
      const one = client.makeUnaryRequest("/test/Wait", same, same, Buffer.from("60"), resolve);
      setTimeout(() => one.cancel(), 100);
    });
    assert.strictEqual(error.code, grpc.status.CANCELLED);
  },
  async "messages in both directions"() {
    const stream = client.makeBidiStreamRequest("/test/Chat", same, same, new grpc.Metadata());
    const seen = [];
    const ended = new Promise((resolve, reject) => {
      stream.on("data", (data) => seen.push(data.length));
      stream.on("error", reject);
      stream.on("end", resolve);
    });
    for (let n = 0; n < 200; n++) stream.write(Buffer.alloc(n * 97));
    stream.end();
    await ended;
    assert.deepStrictEqual(seen, Array.from({ length: 200 }, (_, n) => n * 97));
  },
  async "many heads"() {
    for (let n = 0; n < 200; n++) {
      const metadata = new grpc.Metadata();
      for (let field = 0; field < 40; field++) metadata.set(`field-${field}`, `${n}-${field}`);
      assert.strictEqual((await call("Echo", "x", { metadata })).toString(), "x");
    }
  },
};

async function main() {
  const found = {};
  for (const [name, run] of Object.entries(cases)) {
    try {
      await run();
      found[name] = "";
    } catch (error) {
      found[name] = String(error.message || error).slice(0, 200);
    }
  }
  client.close();
  console.log(JSON.stringify(found));
}

main();
