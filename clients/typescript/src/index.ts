export type { Activities, Activity } from "./activities.js";
export type { AttemptArgs } from "./attempt.js";
export type {
  CallOptions,
  CheckArgs,
  Decision,
  Figures,
  GivenLimit,
  LimitArgs,
  NamedFigures,
  Reason,
  ReleaseArgs,
  ReleaseOptions,
  SlotArgs,
  StatusArgs,
  SubjectArgs,
  UserArgs,
} from "./decision.js";
export { AnswerError, ConfigurationError, GuardsError, LimitedError, OutageError, ValidationError } from "./errors.js";
export { Guards } from "./guards.js";
export {
  type LambdaEvent,
  type LambdaResult,
  type NodeResponse,
  rateLimitHeaders,
  refusal,
  type Refusal,
  sendTooMany,
  tooMany,
  tooManyForLambda,
} from "./http.js";
export { accountKey, type AccountKeyOptions, type HmacKey, ipKey, type IPKeyOptions } from "./keys.js";
export type { Observed, Options } from "./options.js";
export type { AwsCredentials } from "./sign.js";
export type { Slot } from "./slot.js";
export type { Subjects } from "./subjects.js";
export type { WaitOptions } from "./wait.js";
