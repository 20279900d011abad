/** The list of these tests, in the form that `guards generate` writes. */
export const activities = {
  create_post: { guard: "posts-guard", window: 60 },
  like: { guard: "posts-guard" },
  create_room: { guard: "rooms-guard", window: 60 },
  pin: { guard: "pins-guard", window: 43200 },
  update_member_role: { guard: "jobs-guard", window: 10 },
} as const;
