// Calls methods with grpc-js and prints, as a line of JSON each, how the call ended. Reads from
// standard input the address, the API key, the descriptors of the details of errors, and the calls
// with their messages.
import { text } from "node:stream/consumers";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const asked = JSON.parse(await text(process.stdin));
const described = loader.loadFileDescriptorSetFromBuffer(Buffer.from(asked.details, "base64"));
const client = new grpc.Client(asked.address, grpc.credentials.createInsecure());
const metadata = new grpc.Metadata();
metadata.set("authorization", `Bearer ${asked.key}`);

// Makes a call; of a stream of responses only the first is read.
function make({ path, message, clientStreams, serverStreams }) {
  const same = (bytes) => bytes;
  const bytes = Buffer.from(message, "base64");
  const options = { deadline: Date.now() + 60_000 };
  return new Promise((resolve, reject) => {
    const done = (error, value) => (error ? reject(error) : resolve(value));
    let call;
    if (serverStreams) {
      call = clientStreams
        ? client.makeBidiStreamRequest(path, same, same, metadata, options)
        : client.makeServerStreamRequest(path, same, same, bytes, metadata, options);
      call.on("error", reject);
      call.on("end", resolve);
      call.on("data", () => {
        resolve();
        call.cancel();
      });
    } else if (clientStreams) {
      call = client.makeClientStreamRequest(path, same, same, metadata, options, done);
    } else {
      client.makeUnaryRequest(path, same, same, bytes, metadata, options, done);
    }
    if (clientStreams) {
      call.end(bytes);
    }
  });
}

// The details of an error, as JSON.
function details(error) {
  const [bytes] = error.metadata.get("grpc-status-details-bin");
  if (!bytes) {
    return [];
  }
  const status = described["google.rpc.Status"].deserialize(bytes);
  return status.details.map((any) => {
    const name = any.type_url ?? any.typeUrl;
    const type = described[name.split("/").at(-1)];
    const { field_violations: fieldViolations, ...fields } = type.deserialize(any.value);
    return { "@type": name, ...fields, fieldViolations };
  });
}

// Makes a call; tells how it ended.
async function endOf(call) {
  const ended = { path: call.path, sent: call.sent, code: "OK" };
  try {
    await make(call);
  } catch (error) {
    ended.code = grpc.status[error.code];
    ended.message = error.details;
    ended.details = details(error);
  }
  return ended;
}

const calls = asked.calls.values();

// Makes one call after the other, as long as there are any.
async function work() {
  for (const call of calls) {
    let ended = await endOf(call);
    // Too many others of its kind run.
    for (let turn = 0; ended.code === "UNAVAILABLE" && turn < 100; turn++) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      ended = await endOf(call);
    }
    console.log(JSON.stringify(ended));
  }
}

// A watch says nothing for a while.
await Promise.all(Array.from({ length: 8 }, work));
client.close();
