// create-post.mjs is a backend that knows its user from the authorizer.
export async function handler({ requestContext: { authorizer } }) {
  const { userId } = authorizer.lambda ?? authorizer; // of an HTTP API, or of a REST API
  return { statusCode: 201, body: `created a post of ${userId}` };
}
