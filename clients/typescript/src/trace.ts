/** Lambda's store for what belongs to one invocation, in functions that run several at once. */
interface Lambda {
  awslambda?: { InvokeStore?: { getXRayTraceId?: () => string | undefined } };
}

/**
 * Returns a function for the header that continues the app's trace, if the app is a Lambda function. Lambda's own detection
 * of loops needs it, too.
 */
export function traceOf(): () => Record<string, string> | undefined {
  if (!process.env["AWS_LAMBDA_FUNCTION_NAME"]) return () => undefined;
  return () => {
    const id = (globalThis as Lambda).awslambda?.InvokeStore?.getXRayTraceId?.() ?? process.env["_X_AMZN_TRACE_ID"];
    return id ? { "x-amzn-trace-id": id } : undefined;
  };
}
