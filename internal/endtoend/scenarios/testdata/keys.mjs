// Makes keys for strangers. See keys_test.go for what is read and written.
import { createInterface } from "node:readline";
import { accountKey, ipKey } from "@cric-talk/guards";

for await (const line of createInterface({ input: process.stdin })) {
  const { units = [], text, account, prefix, key, keyText, fold } = JSON.parse(line);
  const given = text ?? String.fromCharCode(...units);
  const secret = keyText ?? (key === undefined ? null : Buffer.from(key, "base64"));
  let result;
  try {
    result = account ? accountKey(given, { key: secret, fold }) : ipKey(given, { prefix, key: secret });
  } catch (error) {
    result = error.name;
    if (error.message.length > 99) result = "a message that shows the value";
  }
  process.stdout.write(`${result}\n`);
}
