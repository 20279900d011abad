// Invokes functions with the SDK for JavaScript. Reads a JSON array of calls from stdin and writes an array of outcomes to
// stdout, in the same order.
import { text } from "node:stream/consumers";
import { InvokeCommand, LambdaClient } from "@aws-sdk/client-lambda";

const functions = new LambdaClient();
const calls = JSON.parse(await text(process.stdin));
const outcomes = [];

async function invoke({ function: name, event }) {
  try {
    const response = await functions.send(new InvokeCommand({ FunctionName: name, Payload: JSON.stringify(event) }));
    return { functionError: response.FunctionError, payload: JSON.parse(response.Payload.transformToString()) };
  } catch (error) {
    return { exception: error.name };
  }
}

const left = calls.entries();
async function work() {
  for (const [i, call] of left) outcomes[i] = await invoke(call);
}

await Promise.all(Array.from({ length: Number(process.argv[2]) }, work));
process.stdout.write(JSON.stringify(outcomes));
