// From an empty service to a delivery that arrived, with a client generated from /openapi.json.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

type Schemas = components["schemas"];

const [service, key, receiver] = process.argv.slice(2) as [string, string, string];
const client = createClient<paths>({
  baseUrl: service,
  headers: { authorization: `Bearer ${key}` },
});

function given<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

const trigger: Schemas["Trigger"] = {
  name: "disk full",
  tags: ["generated"],
  type: {
    event: {
      query: {
        clause: {
          and: {
            clauses: [
              { equals: { field: "type", stringVal: "disk" } },
              { not: { clause: { exists: { field: "dimensions.lab" } } } },
            ],
          },
        },
      },
    },
  },
};
const destination: Schemas["Destination"] = {
  name: "on call",
  type: { webhook: { url: receiver, headers: { "x-team": "ops" }, plainHeaders: ["x-team"] } },
};
const made = given(await client.POST("/v1/notification/triggers", { body: trigger }));
given(await client.POST("/v1/notification/destinations", { body: destination }));
const test = given(
  await client.POST("/v1/notification/destinations:test", { body: { name: "on call" } }),
);
given(
  await client.POST("/v1/notification/rules", {
    body: {
      name: "disk",
      enabled: true,
      triggerNames: [made.trigger.name],
      destinationNames: [destination.name],
    },
  }),
);
const taken = given(
  await client.POST("/v1/data-receiver/events", {
    body: {
      events: [
        {
          name: "disk full",
          type: "disk",
          dimensions: { host: "db-1" },
          metadataFields: { mount: "/var", inodes: { free: 12 } },
          severity: "SEVERITY_CRITICAL",
        },
      ],
    },
  }),
);
const found = given(
  await client.POST("/v1/events:search", { body: { query: { filter: "host=db-1" } } }),
);
const occurrence = found.results?.[0]?.occurrences?.[0];

async function delivered(): Promise<string> {
  for (const end = Date.now() + 20_000; Date.now() < end; ) {
    const query = { destinationNames: ["on call"] };
    const page = given(await client.GET("/v1/notification/deliveries", { params: { query } }));
    const delivery = page.deliveries?.find((one) => one.ruleName === "disk");
    if (delivery?.state === "DELIVERED") return delivery.state;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return "nothing arrived";
}
const state = await delivered();

const refused = await client.PUT("/v1/notification/triggers/{name}", {
  params: { path: { name: "disk full" } },
  body: { ...made.trigger, description: "x".repeat(1_001) },
});
const violations = refused.error?.details?.flatMap((detail) => detail.fieldViolations ?? []);

console.log(
  JSON.stringify({
    test: test.outcome,
    succeeded: taken.succeeded,
    inodes: (occurrence?.metadataFields?.["inodes"] as { free: number }).free,
    delivered: state,
    refused: refused.response.status,
    field: violations?.[0]?.field,
  }),
);
