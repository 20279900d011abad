/** The source of the time to wait: a 429 response, its parsed body, or seconds. */
export type CooldownSource = number | { waitTime?: number | undefined } | Response;

/**
 * Counts down the seconds until the user can try again, for example on a disabled button. It calls `onTick` at once
 * and then whenever the number of seconds left has changed, down to 0. It follows the clock, so it is right again
 * after the tab or the computer slept.
 *
 * A response is read from its header Retry-After. Pages of another origin can't see this header unless the server
 * exposes it. Then the `waitTime` (milliseconds) of the body counts, which must not have been read yet; the first call of
 * `onTick` then comes a moment later. A source that says nothing counts as 0 seconds.
 *
 * It returns a function that stops the countdown.
 */
export function cooldown(source: CooldownSource, onTick: (secondsLeft: number) => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stopped = false;

  function start(milliseconds: number): void {
    const end = Date.now() + (milliseconds > 0 ? milliseconds : 0); // NaN counts as 0
    let shown = -1;
    const tick = (): void => {
      if (stopped) return;
      const left = Math.max(0, end - Date.now());
      const seconds = Math.ceil(left / 1000);
      // Run again when one second less is left. A timer can be a little early, so this can repeat a number.
      if (seconds > 0) timer = setTimeout(tick, left - (seconds - 1) * 1000);
      if (seconds !== shown) onTick((shown = seconds));
    };
    tick();
  }

  if (typeof source === "number") start(source * 1000);
  else if (!isResponse(source)) start(source.waitTime ?? 0);
  else {
    const header = retryAfter(source.headers.get("Retry-After"));
    if (header !== undefined) start(header);
    else void waitTimeOf(source).then(start);
  }

  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}

function isResponse(source: object): source is Response {
  return "headers" in source && "clone" in source;
}

/** Returns the waitTime of a response's body in milliseconds; 0 if it has none. */
async function waitTimeOf(response: Response): Promise<number> {
  try {
    const problem: unknown = await response.clone().json();
    return Number((problem as { waitTime?: unknown } | null)?.waitTime);
  } catch {
    return 0;
  }
}

/** Returns the milliseconds of a Retry-After header: seconds or a date. */
function retryAfter(header: string | null): number | undefined {
  if (!header) return undefined;
  const milliseconds = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(milliseconds) ? undefined : milliseconds;
}
