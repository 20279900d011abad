import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { CfnElement, CfnResource, Stack, Token, Validations } from "aws-cdk-lib";
import { type IGrantable, type IIdentity, type IManagedPolicy, ManagedPolicy } from "aws-cdk-lib/aws-iam";
import { type Function, LayerVersion } from "aws-cdk-lib/aws-lambda";
import { Asset } from "aws-cdk-lib/aws-s3-assets";
import { Construct } from "constructs";
import { parse } from "yaml";
import { filled, problem, type Resource, type Template, type Values } from "./template.js";

export interface GuardsProps {
  /** The folder of the project with your limits. Run `sam build` in it first. */
  readonly path: string;

  /**
   * Values for parameters of the project's template.yaml, such as `{ OnOutage: "deny" }`. Each other parameter becomes a
   * parameter of the stack, with the template's default.
   */
  readonly parameters?: Values;
}

/** The layer for each architecture. Lambda does not check a layer's architecture. */
const layers: Record<string, string> = { arm64: "AgentLayerArm64", x86_64: "AgentLayerX86" };

/**
 * Guards adds the guards of a project to a stack, with their table, alarms and everything else that `sam deploy` creates. The
 * template that `sam build` wrote goes into the stack as it is, so a stack can have only one Guards.
 */
export class Guards extends Construct {
  private readonly outputs: Template["Outputs"];
  private readonly resources = new Map<string, CfnResource>();
  private readonly hashes = new Map<string, string>(); // of the code, by the resource's name
  private readonly policies = new Map<string, IManagedPolicy>();

  constructor(scope: Construct, id: string, props: GuardsProps) {
    super(scope, id);
    const folder = resolve(props.path, ".aws-sam", "build");
    const file = join(folder, "template.yaml");
    if (!existsSync(file)) {
      throw new Error(`there is no ${file}: run "sam build" in ${props.path}`);
    }
    const template = parse(readFileSync(file, "utf8")) as Template;
    const values = props.parameters ?? {};
    for (const [name, value] of Object.entries(values)) {
      const wrong = problem(template, name, value);
      if (wrong) {
        throw new Error(`${file}: ${wrong}`);
      }
    }
    const { Conditions, Globals, Mappings, Outputs, Resources, Rules, Transform } = filled(template, values);
    const Parameters = Object.fromEntries(Object.entries(template.Parameters ?? {}).filter(([name]) => !(name in values)));
    for (const [name, resource] of Object.entries(Resources)) {
      this.add(name, resource, folder);
    }
    this.outputs = Outputs;
    new Sections(this, "Sections", { Conditions, Globals, Mappings, Outputs, Parameters, Rules });
    Stack.of(this).addTransform(Transform);
    this.acknowledge();
  }

  /** Lets a function, or another owner of a role, invoke the guards: attaches the template's InvokePolicy to the role. */
  grantCheck(to: IGrantable): void {
    this.attach("InvokePolicy", to);
  }

  /**
   * Puts an agent beside a function, which then decides by itself. The function gets the layer for its architecture, the
   * template's LimiterPolicy, and the variables that the agent and its client read.
   */
  addAgent(fn: Function): void {
    if (Stack.of(fn) !== Stack.of(this)) {
      // Each version of the layer has a new ARN, and CloudFormation changes no value that another stack imports.
      throw new Error(`${fn.node.path} is not in the stack of ${this.node.path}, so the agent could not be updated`);
    }
    const layer = layers[fn.architecture.name];
    if (!layer) {
      throw new Error(`${fn.node.path} has the architecture ${fn.architecture.name}, want ${Object.keys(layers).join(" or ")}`);
    }
    fn.addLayers(LayerVersion.fromLayerVersionArn(fn, "GuardsAgent", this.resource(layer).ref));
    fn.invalidateVersionBasedOn(this.hashes.get(layer) ?? ""); // the reference does not change with the layer's content
    fn.addEnvironment("GUARDS_AGENT", "http://127.0.0.1:2774");
    fn.addEnvironment("GUARDS_TABLE_NAME", Token.asString(this.outputs.TableName?.Value));
    fn.addEnvironment("GUARDS_METRICS_NAMESPACE", Token.asString(this.outputs.MetricsNamespace?.Value));
    this.attach("LimiterPolicy", fn);
  }

  /** Returns a resource by its name in template.yaml, such as ReadyQueue. */
  resource(name: string): CfnResource {
    const resource = this.resources.get(name);
    if (!resource) {
      throw new Error(`the template of ${this.node.path} has no resource ${name}`);
    }
    return resource;
  }

  /** Adds a resource. If it names a folder of built code, the CDK uploads this folder. */
  private add(name: string, { Type, Properties = {}, ...rest }: Resource, folder: string): void {
    const properties = { ...Properties };
    for (const key of ["CodeUri", "ContentUri"]) {
      const uri = properties[key];
      if (typeof uri === "string") {
        const code = new Asset(this, `${name}Code`, { path: join(folder, uri) });
        this.hashes.set(name, code.assetHash);
        properties[key] = { Bucket: code.s3BucketName, Key: code.s3ObjectKey };
      }
    }
    const resource = new CfnResource(this, name, { type: Type, properties });
    resource.overrideLogicalId(name); // other parts of the template refer to it
    for (const [key, value] of Object.entries(rest)) {
      resource.addOverride(key, value);
    }
    this.resources.set(name, resource);
  }

  private attach(name: string, to: IGrantable): void {
    const identity = to.grantPrincipal as Partial<IIdentity>;
    if (!identity.addManagedPolicy) {
      throw new Error(`${name} can be attached only to a role, a user or a group of this app`);
    }
    const policy = this.policies.get(name) ?? ManagedPolicy.fromManagedPolicyArn(this, `${name}Arn`, this.resource(name).ref);
    this.policies.set(name, policy);
    identity.addManagedPolicy(policy);
  }

  /** Silences warnings about what the template does on purpose. The CDK reports some of them on the stack. */
  private acknowledge(): void {
    const unused = "Guards use a parameter that may be empty or 0 only under a condition that excludes this value.";
    const constant = "A condition of the guards is constant if the app sets its parameter.";
    Validations.of(Stack.of(this)).acknowledge(
      { id: "CloudFormation-Validate::W1030", reason: unused },
      { id: "CloudFormation-Validate::W1028", reason: constant },
      { id: "CloudFormation-Validate::W8003", reason: constant },
    );
  }
}

/** The sections of a template other than its resources. The CDK has no construct for Globals, so they go in as they are. */
class Sections extends CfnElement {
  constructor(scope: Construct, id: string, private readonly sections: object) {
    super(scope, id);
  }

  /** The CDK calls this method of each element, and merges the results. Its types don't show the method. */
  _toCloudFormation(): object {
    return this.sections;
  }
}
