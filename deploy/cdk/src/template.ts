import { Token } from "aws-cdk-lib";

/** Values of a template's parameters, by name. */
export type Values = Readonly<Record<string, string | number>>;

/** The parts of a SAM template that the construct reads. */
export interface Template {
  Transform: string;
  Parameters?: Record<string, Parameter>;
  Resources: Record<string, Resource>;
  Outputs: Record<string, { Value: unknown }>;
  Conditions?: object;
  Globals?: object;
  Mappings?: object;
  Rules?: object;
}

export interface Resource {
  Type: string;
  Properties?: Record<string, unknown>;
}

interface Parameter {
  Type: string;
  AllowedPattern?: string;
  AllowedValues?: (string | number)[];
  ConstraintDescription?: string;
  MinValue?: number;
  MaxValue?: number;
}

/** Returns what is wrong with a value of a parameter, or undefined. A value of the app never gets to CloudFormation's check. */
export function problem(template: Template, name: string, value: string | number): string | undefined {
  const parameter = template.Parameters?.[name];
  if (!parameter) {
    return `there is no parameter ${name}, only ${Object.keys(template.Parameters ?? {}).join(", ")}`;
  }
  if (Token.isUnresolved(value)) {
    return undefined; // it is known only during a deploy
  }
  const { AllowedPattern: pattern, AllowedValues: allowed, MinValue: min = -Infinity, MaxValue: max = Infinity } = parameter;
  const number = value === "" ? NaN : Number(value);
  const fits =
    (!pattern || new RegExp(`^(?:${pattern})$`).test(String(value))) &&
    (!allowed || allowed.map(String).includes(String(value))) &&
    (parameter.Type !== "Number" || (number >= min && number <= max));
  const range = max === Infinity ? `a number of at least ${min}` : `a number from ${min} to ${max}`;
  const want = parameter.ConstraintDescription ?? allowed?.join(" or ") ?? range;
  return fits ? undefined : `${name} is ${JSON.stringify(value)}, want ${want}`;
}

/** Returns a part of a template with values instead of the references to their parameters. */
export function filled<T>(part: T, values: Values): T {
  return fill(part, values) as T;
}

function fill(part: unknown, values: Values): unknown {
  if (Array.isArray(part)) {
    return part.map((element) => fill(element, values));
  }
  if (typeof part !== "object" || part === null) {
    return part;
  }
  const { Ref: name, "Fn::Sub": sub } = part as Record<string, unknown>;
  if (typeof name === "string" && name in values) {
    return values[name];
  }
  if (sub !== undefined) {
    const [text, variables] = (Array.isArray(sub) ? sub : [sub, {}]) as [string, object];
    const used = Object.entries(values).filter(([parameter]) => text.includes("${" + parameter + "}"));
    const all = { ...Object.fromEntries(used), ...(fill(variables, values) as object) };
    return { "Fn::Sub": Object.keys(all).length > 0 ? [text, all] : text };
  }
  return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, fill(value, values)]));
}
