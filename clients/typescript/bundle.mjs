// Puts the modules of dist into few files, because Node needs a third of a millisecond to load each of them. The tests use
// dist without this step, and the scenarios of the repository the package with it.
import { readdirSync, rmSync } from "node:fs";
import { build } from "esbuild";

const entries = ["index", "express", "fastify", "hono", "express-rate-limit", "cooldown", "testing"];

await build({
  entryPoints: entries.map((name) => `src/${name}.ts`),
  outdir: "dist",
  bundle: true,
  splitting: true, // what several entries share is there once, such as the classes of errors
  format: "esm",
  platform: "node",
  target: "node20.19",
  packages: "external",
  chunkNames: "shared-[hash]",
});
for (const file of readdirSync("dist")) {
  const [name, extension] = [file.replace(/\..*$/, ""), file.replace(/^[^.]*/, "")];
  if (extension === ".js" && !entries.includes(name) && !name.startsWith("shared-")) rmSync(`dist/${file}`);
}
