// This stands for your app's log-in. It believes every name, so don't copy it.
export function logIn(request, response, next) {
  request.user = request.get("Authorization")?.replace("Bearer ", "");
  if (request.user) next();
  else response.sendStatus(401);
}
