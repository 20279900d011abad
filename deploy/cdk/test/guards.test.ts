import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, before, test } from "node:test";
import { App, Stack } from "aws-cdk-lib";
import { Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Architecture, Code, Function, Runtime } from "aws-cdk-lib/aws-lambda";
import { Guards, type GuardsProps } from "@cric-talk/guards-cdk";

// make cdk runs this test in .cache/cdk of the repository. A project must be outside the repository.
const here = join(__dirname, "..");
const root = join(here, "..", "..");
const python = join(root, ".cache", "venv", "bin");
const example = mkdtempSync(join(tmpdir(), "guards-cdk-"));
const project = join(example, "my-guards");
const app = join(example, "my-app");

type Json = any; // a part of a template

let synthesized: Json; // the example's stack
let transformed: { ours: Json; sams: Json }; // what SAM makes of it, and of the project's template.yaml

/** Runs a program and returns what it prints. If it fails, the error has what it printed. */
function run(cwd: string, program: string, ...args: string[]): string {
  const env = { ...process.env, PATH: [python, process.env.PATH].join(delimiter), SAM_CLI_TELEMETRY: "0", CDK_DISABLE_CLI_TELEMETRY: "true" };
  return execFileSync(program, args, { cwd, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 26 });
}

function transform(file: string): Json {
  return JSON.parse(run(root, join(python, "python"), "tools/transform.py", file));
}

/** Returns the first block of a language in the README. */
function block(language: string): string {
  const readme = readFileSync(join(root, "deploy", "cdk", "README.md"), "utf8");
  const found = readme.match(new RegExp("^```" + language + "\n(.*?)^```$", "ms"))?.[1];
  assert.ok(found, `the README has no block of ${language}`);
  return found;
}

before(() => {
  run(root, "go", "run", "./cmd/guards", "init", project, "--guard", "photos-guard", "--activity", "upload_photo", "--limit", "5/1m");
  run(project, "go", "run", "./cmd/guards", "new", "jobs-guard", "sync_role", "reservoir 10/10s ahead 15m"); // the queues, too

  for (const fn of ["upload", "show"]) {
    mkdirSync(join(app, fn), { recursive: true });
    writeFileSync(join(app, fn, "index.mjs"), "export const handler = async () => {};\n");
  }
  mkdirSync(join(app, "node_modules", "@cric-talk"), { recursive: true });
  symlinkSync(here, join(app, "node_modules", "@cric-talk", "guards-cdk"));
  for (const name of [".bin", "@types", "aws-cdk-lib"]) {
    symlinkSync(join(here, "node_modules", name), join(app, "node_modules", name));
  }
  writeFileSync(join(app, "app.ts"), block("ts"));
  writeFileSync(join(app, "cdk.json"), block("json"));
  run(app, "npx", "tsc", "--strict", "--module", "nodenext", "--target", "es2022", "--types", "node", "--skipLibCheck", "app.ts");
  run(app, "npx", "cdk", "synth", "--quiet", "--no-notices", "--app", "node app.js");

  const file = join(app, "cdk.out", "Photos.template.json");
  synthesized = JSON.parse(readFileSync(file, "utf8"));
  transformed = { ours: transform(file), sams: transform(join(project, "template.yaml")) };
});

after(() => rmSync(example, { recursive: true }));

/** Removes from the names of layers what SAM adds: a hash of the content. */
function versionless(part: Json): Json {
  return JSON.parse(JSON.stringify(part).replace(/(AgentLayer(?:Arm64|X86))[0-9a-f]{10}/g, "$1"));
}

/** Returns some resources without metadata and without the place of the code. */
function normalized(template: Json, names: string[]): Json {
  const resources = Object.entries<Json>(template.Resources).filter(([name]) => names.includes(name));
  const bare = resources.map(([name, { Metadata: _, ...resource }]) => {
    const { Code, Content, ...properties } = resource.Properties;
    assert.ok(!["AWS::Lambda::Function", "AWS::Lambda::LayerVersion"].includes(resource.Type) || (Code ?? Content), `${name} has no code`);
    return [name, { ...resource, Properties: properties }];
  });
  return versionless(Object.fromEntries(bare));
}

test("the resources of the example are those of the SAM template, and the app's own", () => {
  const { ours, sams } = transformed;
  const names = Object.keys(sams.Resources);
  assert.ok(names.length > 40, `the SAM template has ${names.length} resources`);
  assert.deepEqual(normalized(ours, Object.keys(ours.Resources).filter((n) => !/^(Upload|Show|CDKMetadata)/.test(n))), normalized(sams, names));
  delete ours.Conditions.CDKMetadataAvailable; // what the CDK adds for itself
  delete ours.Parameters.BootstrapVersion;
  for (const section of ["Conditions", "Outputs", "Parameters"]) {
    assert.deepEqual(versionless(ours[section]), versionless(sams[section]), section);
  }
});

test("each function and layer has the code that sam build wrote", () => {
  let found = 0;
  for (const [name, { Type, Properties }] of Object.entries<Json>(synthesized.Resources)) {
    const program = { "AWS::Serverless::Function": "bootstrap", "AWS::Serverless::LayerVersion": "extensions/guards-agent" }[Type as string];
    if (program) {
      const hash = (Properties.CodeUri ?? Properties.ContentUri).Key.replace(/\.zip$/, "");
      const built = readFileSync(join(project, ".aws-sam", "build", name, program));
      assert.ok(readFileSync(join(app, "cdk.out", `asset.${hash}`, program)).equals(built), name);
      found++;
    }
  }
  assert.equal(found, 6); // photos-guard, jobs-guard, delayed-jobs, cleanup and two layers
});

test("cfn-lint finds nothing in the example's template", () => {
  assert.equal(run(app, join(python, "cfn-lint"), "--ignore-checks", "W3005", "--", "cdk.out/Photos.template.json"), "");
});

/** Returns the template of a stack with the project's guards, after an app has used them. */
function stackWith(use: (guards: Guards, stack: Stack) => void, props: Partial<GuardsProps> = {}): Json {
  const outdir = mkdtempSync(join(example, "cdk.out-"));
  const all = new App({ outdir, context: { "@aws-cdk/core:validateAgainstDefaultRules": true } });
  const stack = new Stack(all, "Test");
  use(new Guards(stack, "Guards", { path: project, ...props }), stack);
  return all.synth().getStackByName("Test").template;
}

function fn(stack: Stack, architecture?: Architecture): Function {
  return new Function(stack, "Fn", { runtime: Runtime.NODEJS_22_X, handler: "index.handler", code: Code.fromInline("//"), architecture });
}

/** Returns the properties of the function Fn and of its role. */
function fnOf(template: Json): { properties: Json; policies: Json[] } {
  const resources = Object.entries<Json>(template.Resources).filter(([name]) => /^Fn(ServiceRole)?[0-9A-F]{8}$/.test(name));
  const properties = (type: string) => resources.find(([, r]) => r.Type === type)?.[1].Properties;
  return { properties: properties("AWS::Lambda::Function"), policies: properties("AWS::IAM::Role").ManagedPolicyArns.slice(1) };
}

for (const [architecture, layer] of [[Architecture.ARM_64, "AgentLayerArm64"], [Architecture.X86_64, "AgentLayerX86"], [undefined, "AgentLayerX86"]] as const) {
  test(`a function for ${architecture?.name ?? "Lambda's default architecture"} gets an agent`, () => {
    const { properties, policies } = fnOf(stackWith((guards, stack) => guards.addAgent(fn(stack, architecture))));
    assert.deepEqual(properties.Layers, [{ Ref: layer }]);
    assert.deepEqual(policies, [{ Ref: "LimiterPolicy" }]);
    assert.deepEqual(properties.Environment.Variables, {
      GUARDS_AGENT: "http://127.0.0.1:2774",
      GUARDS_TABLE_NAME: { Ref: "Table" },
      GUARDS_METRICS_NAMESPACE: { "Fn::Sub": "${NamePrefix}Guards" },
    });
    const processor = { AgentLayerArm64: "arm64", AgentLayerX86: "x86_64" }[layer];
    assert.deepEqual(transformed.sams.Resources[layerNamed(layer)].Properties.CompatibleArchitectures, [processor]);
  });
}

function layerNamed(layer: string): string {
  return Object.keys(transformed.sams.Resources).find((name) => name.startsWith(layer)) ?? layer;
}

test("SAM replaces the reference to a layer by its version", () => {
  const show = Object.entries<Json>(transformed.ours.Resources).find(([name]) => /^Show[0-9A-F]{8}$/.test(name))?.[1];
  assert.match(show.Properties.Layers[0].Ref, /^AgentLayerArm64[0-9a-f]{10}$/);
  assert.ok(transformed.ours.Resources[show.Properties.Layers[0].Ref]);
});

test("a function and a role may invoke the guards, also from another stack", () => {
  assert.deepEqual(fnOf(stackWith((guards, stack) => guards.grantCheck(fn(stack)))).policies, [{ Ref: "InvokePolicy" }]);
  const template = stackWith((guards, stack) => {
    const other = new Stack(stack.node.root as App, "Other");
    guards.grantCheck(new Role(other, "Role", { assumedBy: new ServicePrincipal("ecs-tasks.amazonaws.com") }));
  });
  const [, exported] = Object.entries<Json>(template.Outputs).find(([name]) => name.startsWith("ExportsOutputRefInvokePolicy")) ?? [];
  assert.deepEqual(exported.Value, { Ref: "InvokePolicy" });
});

test("a new version of the agent makes a new version of the function", () => {
  const versions = () => {
    const template = stackWith((guards, stack) => {
      const function_ = fn(stack);
      guards.addAgent(function_);
      function_.currentVersion.node.addMetadata("used", true);
    });
    return Object.keys(template.Resources).filter((name) => name.startsWith("FnCurrentVersion"));
  };
  const first = versions();
  const extra = join(project, ".aws-sam", "build", "AgentLayerX86", "extra");
  writeFileSync(extra, "another version");
  try {
    assert.notDeepEqual(versions(), first);
  } finally {
    rmSync(extra);
  }
});

test("a parameter's value replaces each reference to it", () => {
  const parameters = { NamePrefix: "dev-", Mode: "shadow", GuardConcurrency: 5 };
  const template = stackWith((guards, stack) => guards.addAgent(fn(stack)), { parameters });
  const text = JSON.stringify(template);
  for (const name of Object.keys(parameters)) {
    assert.ok(!(name in template.Parameters), name);
    assert.ok(!text.includes(`{"Ref":"${name}"}`), name);
  }
  assert.equal(template.Globals.Function.Environment.Variables.MODE, "shadow");
  assert.deepEqual(template.Conditions.ReservesConcurrency, { "Fn::Not": [{ "Fn::Equals": [5, 0] }] });
  const prefixed = { "Fn::Sub": ["${NamePrefix}Guards", { NamePrefix: "dev-" }] };
  assert.deepEqual(fnOf(template).properties.Environment.Variables.GUARDS_METRICS_NAMESPACE, prefixed);
  assert.deepEqual(template.Resources.GuardsDashboard.Properties.DashboardBody["Fn::Sub"][1].NamePrefix, "dev-");
});

test("mistakes are errors", () => {
  for (const [parameters, want] of [
    [{ Mode: "of" }, /Mode is "of", want enforce or shadow or off/],
    [{ Modes: "off" }, /there is no parameter Modes, only NamePrefix, TableName/],
    [{ GuardConcurrency: -1 }, /GuardConcurrency is -1, want a number from 0 to 10000/],
    [{ MaxReadUnitsPerSecond: "" }, /MaxReadUnitsPerSecond is "", want a number of at least 0/],
    [{ DecisionTimeout: "9s" }, /DecisionTimeout is "9s", want a duration of at most 5s/],
  ] as const) {
    assert.throws(() => stackWith(() => {}, { parameters: parameters as GuardsProps["parameters"] }), want);
  }
  assert.throws(() => stackWith(() => {}, { path: app }), /run "sam build" in /);
  assert.ok(!existsSync(join(app, ".aws-sam")));
  assert.throws(() => stackWith((guards, stack) => guards.addAgent(fn(new Stack(stack.node.root as App, "Other")))), /is not in the stack of Test\/Guards/);
  assert.throws(
    () => stackWith((guards, stack) => guards.grantCheck(Function.fromFunctionArn(stack, "Fn", "arn:aws:lambda:us-east-1:123456789012:function:fn"))),
    /InvokePolicy can be attached only to a role/,
  );
  assert.throws(() => stackWith((guards) => guards.resource("Tables")), /has no resource Tables/);
});
