import type { ServerResponse } from "node:http";

/**
 * Calls `act` once with the status, when the headers of a response are sent. If the client has gone away by then, it is not
 * called. Node has no event for this, but it sends all headers by `writeHead`, those of `write` and `end`, too.
 */
export function whenHeadersSent(response: ServerResponse, act: (status: number) => void): void {
  const { writeHead } = response;
  let acted = false;
  response.writeHead = function (this: ServerResponse, ...args: unknown[]): ServerResponse {
    Reflect.apply(writeHead, this, args); // throws if the status can't be sent
    if (!acted && response.headersSent && !response.destroyed && !response.req.socket.destroyed) {
      acted = true;
      act(response.statusCode);
    }
    return this;
  };
}
