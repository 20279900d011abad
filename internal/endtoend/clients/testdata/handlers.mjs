// Calls the handler in a file for each event of stdin, a line each. For each event, it writes a line with what the
// platform gets: the result of a Lambda function as JSON, its error, or the response of a route handler.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { handler, POST } = await import(pathToFileURL(process.argv[2]));

async function route({ user }) {
  const request = new Request("http://localhost/posts", { method: "POST", headers: user ? { Authorization: `Bearer ${user}` } : {} });
  const response = await POST(request);
  return { statusCode: response.status, headers: Object.fromEntries(response.headers), body: await response.text() };
}

for await (const line of createInterface({ input: process.stdin })) {
  try {
    const result = await (POST ? route : handler)(JSON.parse(line));
    console.log(JSON.stringify({ result: result ?? null }));
  } catch (error) {
    console.log(JSON.stringify({ errorType: error.name, errorMessage: error.message }));
  }
}
