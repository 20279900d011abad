import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigurationError, Guards, type Options } from "@cric-talk/guards";
import { activities } from "./activities.js";

const bad: [options: object, message: string][] = [
  [{ onOutage: "open" }, 'The option onOutage is "open", want "allow" or "deny".'],
  [{ timeout: 1299 }, "The option timeout is 1299, want at least decisionTimeout and 300 ms more, 1300 ms."],
  [{ timeout: Infinity }, "The option timeout is null, want at least decisionTimeout and 300 ms more, 1300 ms."],
  [{ timeout: 2 ** 31 }, "The option timeout is 2147483648, want at most 2147483647 ms."],
  [{ timeout: 2 ** 32, decisionTimeout: 2 ** 31 }, "The option timeout is 4294967296, want at most 2147483647 ms."],
  [{ timeout: "5s" }, 'The option timeout is "5s", want at least decisionTimeout and 300 ms more, 1300 ms.'],
  [{ timeout: 3000, decisionTimeout: 2701 }, "The option timeout is 3000, want at least decisionTimeout and 300 ms more, 3001 ms."],
  [{ decisionTimeout: 0 }, "The option decisionTimeout is 0, want milliseconds above 0."],
  [{ maxTries: 0 }, "The option maxTries is 0, want a whole number of at least 1."],
  [{ maxTries: 1.5 }, "The option maxTries is 1.5, want a whole number of at least 1."],
  [{ activities: [] }, "The option activities is no plain object."],
  [{ activities: null }, "The option activities is no plain object."],
  [{ activities: "activities.json" }, "The option activities is no plain object."],
  [{ activities: { activities } }, 'The option activities["activities"].guard is undefined, want the name of a guard.'],
  [{ activities: { like: null } }, 'The option activities["like"].guard is undefined, want the name of a guard.'],
  [{ activities: { like: "posts-guard" } }, 'The option activities["like"].guard is undefined, want the name of a guard.'],
  [{ activities: { like: { guard: "" } } }, 'The option activities["like"].guard is "", want the name of a guard.'],
  [
    { activities: { pin: { guard: "pins-guard", window: "12h" } } },
    'The option activities["pin"].window is "12h", want whole seconds of at least 1.',
  ],
  [{ activities: { pin: { guard: "pins-guard", window: 0 } } }, 'The option activities["pin"].window is 0, want whole seconds of at least 1.'],
  [
    { activities: { write: { guard: "rooms-guard", subjects: "room" } } },
    'The option activities["write"].subjects is "room", want names, such as ["room", "tenant?"].',
  ],
  [
    { activities: { write: { guard: "rooms-guard", subjects: ["?"] } } },
    'The option activities["write"].subjects is ["?"], want names, such as ["room", "tenant?"].',
  ],
  [{ activities: { like: { guard: "posts-guard", hold: 15 } } }, 'The option activities["like"].hold is 15, want true or false.'],
  [{ prefix: 7 }, "The option prefix is 7, want a string."],
  [{ region: "" }, 'The option region is "", want a name such as eu-west-1.'],
  [{ endpoint: "localhost:3001" }, 'The option endpoint is "localhost:3001", want an address with https:.'],
  [{ credentials: { accessKeyId: "AKID" } }, "The option credentials has no accessKeyId and secretAccessKey, and is no function that returns them."],
  [{ connections: 0 }, "The option connections is 0, want a whole number of at least 1."],
  [{ client: {} }, "The option client is no LambdaClient of AWS's SDK."],
  [{ client: { send: () => {} }, region: "eu-west-1" }, "The option client has region, credentials and endpoint itself. Leave out those options."],
  [{ warn: "console" }, 'The option warn is "console", want a function.'],
  [{ observe: "metrics" }, 'The option observe is "metrics", want a function.'],
  [{ urls: { "posts-guard": "posts-guard" } }, 'The option urls["posts-guard"] is "posts-guard", want an address with https:.'],
  [{ urls: { "posts-guard": "ftp://host/" } }, 'The option urls["posts-guard"] is "ftp://host/", want an address with https:.'],
  [
    { urls: { "post-guard": "https://host/" } },
    'The option urls["post-guard"] names no guard of the option activities. Do you mean "posts-guard"?',
  ],
  [
    { urls: { "pobs-guard": "https://host/" } }, // near posts-guard and pins-guard, too
    'The option urls["pobs-guard"] names no guard of the option activities. Do you mean "jobs-guard"?',
  ],
  [{ urls: { "no-such-guard": "https://host/" } }, 'The option urls["no-such-guard"] names no guard of the option activities.'],
  [{ urls: { __proto__: null, constructor: "https://host/" } }, 'The option urls["constructor"] names no guard of the option activities.'],
  [
    { tiemout: 5000 },
    "The option tiemout is not known, want one of activities, agent, token, region, credentials, endpoint, connections, client, urls, prefix, onOutage, timeout, maxTries, decisionTimeout, warn, observe.",
  ],
];

for (const [options, message] of bad) {
  test(`the constructor refuses ${JSON.stringify(options)}`, () => {
    assert.throws(
      () => new Guards({ activities, ...options } as Options),
      (error) => error instanceof ConfigurationError && error.message === message && error.guard === undefined,
    );
  });
}

test("each option has a default, and undefined means the default", () => {
  new Guards();
  new Guards({ activities: undefined, timeout: undefined, maxTries: undefined, urls: undefined, warn: undefined, client: undefined });
  new Guards({ timeout: 2 ** 31 - 1 });
  new Guards({ timeout: 1300, maxTries: 1, prefix: "dev-", onOutage: "deny", urls: { "posts-guard": "https://host/" } });
});
