// A page of another origin that calls the service as gRPC-Web, with two libraries; what came of it goes
// to whoever served the page.
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-web";
import * as grpcWeb from "grpc-web";
import { EventQueryService, WatchEventsRequestSchema, WatchEventsResponseSchema } from "./made/wire/bellwether/v1/event_pb.js";
import { CreateTriggerRequestSchema, CreateTriggerResponseSchema, ListTriggersRequestSchema, ListTriggersResponseSchema, TriggerService } from "./made/wire/bellwether/v1/trigger_pb.js";
import { DataReceiverService } from "./made/wire/zenoss/cloud/data_receiver_pb.js";
import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";

const asked = new URLSearchParams(location.search);
const service = asked.get("service")!;
const key = asked.get("key")!;

const withKey: Interceptor = (next) => (request) => {
  request.header.set("authorization", `Bearer ${key}`);
  return next(request);
};
const transport = createGrpcWebTransport({ baseUrl: service, interceptors: [withKey] });

function trigger(name: string) {
  const type = { type: { case: "event" as const, value: { filter: "host=web-1" } } };
  return { trigger: { name, type } };
}

async function connect() {
  const triggers = createClient(TriggerService, transport);
  const made = await triggers.createTrigger(trigger("of connect"));
  const listed = await triggers.listTriggers({});
  const error = await triggers.createTrigger(trigger("")).catch((error: unknown) => error);
  const refused = error as ConnectError;
  const watching = new AbortController();
  const events = createClient(EventQueryService, transport);
  const seen = (async () => {
    for await (const news of events.watchEvents({}, { signal: watching.signal })) {
      if (news.events[0]) return news.events[0].name;
      await send();
    }
    return "";
  })();
  const told = {
    created: made.trigger?.name,
    listed: listed.triggers.length,
    refused: Code[refused.code],
    details: refused.details.length > 0,
    watched: await seen,
  };
  watching.abort();
  return told;
}

let sent = false;
async function send() {
  if (sent) return;
  sent = true;
  const event = { name: "from a page", dimensions: { host: "web-1" } };
  await createClient(DataReceiverService, transport).putEvents({ events: [event] });
}

function method<I extends DescMessage, O extends DescMessage>(path: string, type: string, input: I, output: O) {
  return new grpcWeb.MethodDescriptor<MessageShape<I>, MessageShape<O>>(
    path,
    type,
    Object as never,
    Object as never,
    (message: MessageShape<I>) => toBinary(input, message),
    (bytes: Uint8Array) => fromBinary(output, bytes),
  );
}

async function google() {
  const client = new grpcWeb.GrpcWebClientBase({ format: "text" });
  const metadata = { authorization: `Bearer ${key}` };
  const createMethod = method("/bellwether.v1.TriggerService/CreateTrigger", "unary", CreateTriggerRequestSchema, CreateTriggerResponseSchema);
  const listMethod = method("/bellwether.v1.TriggerService/ListTriggers", "unary", ListTriggersRequestSchema, ListTriggersResponseSchema);
  const watchMethod = method("/bellwether.v1.EventQueryService/WatchEvents", "server_streaming", WatchEventsRequestSchema, WatchEventsResponseSchema);
  const call = <I, O>(method: grpcWeb.MethodDescriptor<I, O>, request: I) =>
    client.unaryCall(service + method.getName(), request, metadata, method) as Promise<O>;
  const made = await call(createMethod, create(CreateTriggerRequestSchema, trigger("of grpc-web")));
  const listed = await call(listMethod, create(ListTriggersRequestSchema));
  const error = await call(createMethod, create(CreateTriggerRequestSchema, trigger(""))).catch((error: unknown) => error);
  const refused = error as grpcWeb.RpcError;
  const watched = await new Promise<boolean>((resolve, reject) => {
    const stream = client.serverStreaming(service + watchMethod.getName(), create(WatchEventsRequestSchema), metadata, watchMethod);
    stream.on("data", () => { resolve(true); stream.cancel(); });
    stream.on("error", reject);
  });
  return {
    created: made.trigger?.name,
    listed: listed.triggers.length,
    refused: refused.code,
    details: "grpc-status-details-bin" in refused.metadata,
    watched,
  };
}

async function tell(what: unknown) {
  await fetch("/told", { method: "POST", body: JSON.stringify(what) });
}

(async () => ({ connect: await connect(), google: await google() }))().then(tell, (error: unknown) => tell({ error: String(error) }));
