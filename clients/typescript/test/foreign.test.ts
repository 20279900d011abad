// Servers that are no guard: they send an answer without end, redirect, or speak no HTTP.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHTTP, type RequestListener } from "node:http";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { LambdaClient } from "@aws-sdk/client-lambda";
import { Guards, type Options } from "@cric-talk/guards";
import { activities } from "./activities.js";
import { between, forever, Lambda, ok, quick, timeoutOf, until } from "./lambda.js";

const user = { userId: "u1" };

/** Returns guards that ask one address, by Invoke and by Function URL, and with a client of the SDK. */
function both(url: string, options: Omit<Options, "activities"> = {}): [way: string, guards: Guards<typeof activities>][] {
  const credentials = { accessKeyId: "AKID", secretAccessKey: "secret" };
  const client = new LambdaClient({ region: "eu-west-1", endpoint: url, credentials });
  const given = { activities, maxTries: 1, decisionTimeout: 5000, timeout: 20_000, warn: () => {}, ...options };
  const own = { ...given, region: "eu-west-1", endpoint: url, credentials };
  const urls = { "posts-guard": url };
  return [
    ["Invoke", new Guards(own)],
    ["URL", new Guards({ ...own, urls })],
    ["Invoke of the SDK", new Guards({ ...given, client })],
    ["URL with the SDK", new Guards({ ...given, client, urls })],
  ];
}

/** Starts an HTTP server. Returns its address. */
async function http(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createHTTP(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Starts a TCP server. Returns its address. */
async function tcp(t: TestContext, connected: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    connected(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const endless: [status: number, headers: Record<string, string>, start: string, name: string][] = [
  [200, {}, "", "AnswerError"],
  [200, {}, JSON.stringify(ok), "AnswerError"], // JSON and spaces without end
  [200, { "x-amz-function-error": "Unhandled" }, "", "AnswerError"],
  [404, { "x-amzn-errortype": "ResourceNotFoundException" }, "", "ConfigurationError"],
  [403, {}, "", "ConfigurationError"],
  [500, {}, "", "OutageError"],
];

for (const [status, headers, start, name] of endless) {
  test(`an answer without end is read to 64 KiB: ${status} ${start.slice(0, 9)} ${JSON.stringify(headers)}`, async (t) => {
    let sent = 0;
    let closed = 0;
    const url = await http(t, (request, response) => {
      request.resume();
      response.writeHead(status, headers);
      response.write(start);
      const chunk = Buffer.alloc(16 * 1024, " ");
      const send = () => {
        while (!response.destroyed && response.write(chunk)) sent += chunk.length;
      };
      response.on("drain", send);
      response.on("close", () => closed++);
      send();
    });
    for (const [index, [way, guards]] of both(url).entries()) {
      await assert.rejects(guards.status("create_post", user), { name }, way);
      await until(() => closed === index + 1);
    }
    between(sent, 0, 50_000_000); // what the system buffers
  });
}

test("an answer of 64 KiB is read", async (t) => {
  const answer = JSON.stringify({ ...ok, message: "" });
  for (const [size, reads] of [[64 * 1024, true], [64 * 1024 + 1, false]] as const) {
    const url = await http(t, (request, response) => {
      request.resume();
      response.end(answer + " ".repeat(size - answer.length));
    });
    for (const [way, guards] of both(url)) {
      const check = guards.check("create_post", user);
      if (reads) assert.equal((await check).reason, "ok", way);
      else await assert.rejects(check, { name: "AnswerError", message: /^posts-guard answered something that no guard answers: / }, way);
    }
  }
});

for (const status of [301, 302, 303, 307, 308]) {
  test(`a redirect is not followed: ${status}`, async (t) => {
    const lambda = await Lambda.start(t, { answer: ok }); // would answer
    let asked = 0;
    const url = await http(t, (request, response) => {
      asked++;
      request.resume();
      response.writeHead(status, { location: lambda.url }).end();
    });
    for (const [way, guards] of both(url)) {
      const message = `posts-guard could not be invoked: HTTP ${status}: `;
      await assert.rejects(guards.check("create_post", user), { name: "ConfigurationError", message }, way);
    }
    assert.equal(asked, 4);
    assert.equal(lambda.requests.length, 0);
  });
}

/** What a server of another kind sends at once, or after the first bytes. */
const speakers: [name: string, connected: (socket: Socket) => void][] = [
  ["SSH", (socket) => socket.write("SSH-2.0-OpenSSH_9.6\r\n")],
  ["SMTP", (socket) => socket.write("220 mail.example.com ESMTP\r\n")],
  ["Redis", (socket) => socket.once("data", () => socket.write("-ERR wrong number of arguments for 'post' command\r\n"))],
  ["TLS", (socket) => socket.once("data", () => socket.end(Buffer.from([0x15, 3, 1, 0, 2, 2, 0x46])))], // an alert
];

for (const [name, connected] of speakers) {
  test(`a server that speaks no HTTP is a mistake: ${name}`, async (t) => {
    for (const [way, guards] of both(await tcp(t, connected))) {
      for (let n = 0; n < 2; n++) {
        const wanted = { name: "ConfigurationError", message: /^posts-guard could not be invoked: HPE_/ };
        await assert.rejects(guards.check("create_post", user), wanted, way);
      }
    }
  });

  test(`a server that has spoken HTTP, and does so no more, is an outage: ${name}`, async (t) => {
    const answer = JSON.stringify(ok);
    for (const index of [0, 1, 2, 3]) {
      let connections = 0;
      const url = await tcp(t, (socket) => {
        if (connections++ > 0) return connected(socket);
        const head = `HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${answer.length}\r\n\r\n`;
        socket.once("data", () => socket.end(head + answer));
      });
      const [way, guards] = both(url)[index]!;
      assert.equal((await guards.check("create_post", user)).reason, "ok", way);
      const { allowed, outage } = await guards.check("create_post", user);
      assert.equal(allowed, true);
      assert.match(outage?.message ?? "", /^posts-guard did not answer: HPE_/, way);
    }
  });
}

test("https to a server that speaks no TLS is a mistake", async (t) => {
  const url = await tcp(t, (socket) => socket.write("SSH-2.0-OpenSSH_9.6\r\n"));
  for (const [way, guards] of both(url.replace("http:", "https:"))) {
    await assert.rejects(guards.check("create_post", user), { name: "ConfigurationError" }, way);
  }
});

// The agents of Node 24 report this code.
test("a proxy that opens no tunnel is a mistake, and an outage after an answer", async (t) => {
  const url = await http(t, (request, response) => {
    request.resume();
    response.end(JSON.stringify(ok));
  });
  const client = new LambdaClient({ region: "eu-west-1", endpoint: url, credentials: { accessKeyId: "AKID", secretAccessKey: "secret" } });
  const guards = new Guards({ activities, client, maxTries: 1, warn: () => {} });
  const refused = Object.assign(new Error("HTTP/1.1 407 Proxy Authentication Required"), { code: "ERR_PROXY_TUNNEL" });
  const { mock } = t.mock.method(client.config.requestHandler, "handle", () => Promise.reject(refused));
  await assert.rejects(guards.check("create_post", user), { name: "ConfigurationError", message: /ERR_PROXY_TUNNEL/ });
  mock.restore();
  assert.equal((await guards.check("create_post", user)).reason, "ok");
  t.mock.method(client.config.requestHandler, "handle", () => Promise.reject(refused));
  assert.equal((await guards.check("create_post", user)).outage?.message, "posts-guard did not answer: ERR_PROXY_TUNNEL");
});

test("a server that is silent, or closes the connection, is an outage", async (t) => {
  for (const [way, guards] of both(await tcp(t, () => {}), quick)) {
    const { outage } = await guards.check("create_post", user);
    between(timeoutOf(outage), quick.decisionTimeout, forever);
    assert.equal(outage?.name, "OutageError", way);
  }
  for (const [way, guards] of both(await tcp(t, (socket) => socket.once("data", () => socket.destroy())))) {
    assert.equal((await guards.check("create_post", user)).outage?.name, "OutageError", way);
  }
});
