// An app with Express. A user can create ten posts in a minute.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import express from "express";
import { Guards } from "@cric-talk/guards";
import { limit } from "@cric-talk/guards/express";
import { logIn } from "./log-in.mjs";

// In your app, this is the list of your own guards project.
const activities = JSON.parse(await readFile(new URL("../../activities/activities.json", import.meta.url), "utf8"));
const guards = new Guards({ activities, onOutage: process.env.GUARDS_ON_OUTAGE });
await guards.ready("create_post"); // a missing permission or a wrong name ends the app here, and not at a user's request

const app = express();
const posts = [];

app.post("/posts", logIn, limit(guards, "create_post", { userId: (request) => request.user }), (request, response) => {
  posts.push({ by: request.user });
  response.status(201).json({ posts: posts.length });
});

// The page of examples/countdown, and the function that it imports.
app.get("/", (_, response) => response.sendFile(fileURLToPath(new URL("../countdown/index.html", import.meta.url))));
const cooldown = fileURLToPath(import.meta.resolve("@cric-talk/guards/cooldown"));
app.get("/cooldown.js", (_, response) => response.sendFile(cooldown, { dotfiles: "allow" })); // in any folder

const server = app.listen(process.env.PORT ?? 8080, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/`));
