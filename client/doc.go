// Package client asks the guards whether a user may act. An app's backend asks
// before it writes:
//
//	guards, err := client.New(ctx, client.Options{Activities: activities.All})
//	...
//	d, err := guards.Check(ctx, "create_post", client.Request{UserID: userID})
//	switch {
//	case err != nil:
//		return err // a mistake, such as a missing permission: nothing was allowed
//	case !d.Allowed:
//		return tooMany(d.Message, d.RetryAfter())
//	}
//	return save(post)
//
// The list activities.All names the guard of each activity. guards generate writes
// it, and the client knows no activity without it. A call can also name the guard
// itself, as in "posts-guard/create_post".
//
// [Guards.Guarded] does all of this and gives the count back if saving fails.
//
// If an activity counts for others than the user, such as the room of a message, the
// request has their ids as Subjects. The app checks first that the user is in that room.
//
// If customers buy limits of different sizes, the request has what this one has bought as
// Limit. What follows a check, such as a release, sends its Subjects, Tier and Limit again.
//
// A refusal is a [Decision] and not an error. An outage is a Decision too: if a
// guard does not answer in time, OnOutage of the [Request] or of the [Options]
// decides, and Decision.Outage holds the cause. Every other failure is an error, so a wrong
// region or a missing permission never lets anybody through:
//
//	errors.Is(err, ErrConfiguration)  the app can't reach the guard: region, credentials, permission, function, host
//	errors.Is(err, ErrValidation)     the request is wrong
//	errors.Is(err, ErrAnswer)         the function is no guard, or it crashed (by URL: or it timed out)
//	errors.Is(err, ErrOutage)         the guard did not answer: Status, Release, Renew, Settle, Reset and Ready
//	errors.Is(err, ErrLimited)        the guard refused: Guarded and Attempt
//
// The time of a call begins when its request has a connection, or begins to make
// one. Waiting for a connection of the app's own pool is not an outage; only the
// caller's context ends it.
//
// A call ends 50 ms before the deadline of the caller's context, and OnOutage
// decides. If less than 350 ms are left when the call's time begins, or if the
// caller cancels the context, the error is the context's own. The guard may have
// counted the action even so. Call [Guards.Ready] when the app starts, to find mistakes
// before the first user does.
//
// [Guards.Attempt] counts an attempt, such as a sign-in, and gives it back if it succeeds. So
// only failures count, and guesses at the same moment are still not more than the limit.
//
// [Guards.Slot] lets only a few run at once, for an activity whose limit is a log.
// [Guards.Settle] gives back what a check reserved and the app did not use.
//
// The client sends each check with a request id. If an answer gets lost, it
// asks again with the same id, and the guard counts the action once. A check with
// Partial can't have an id, so it is sent once. So is a reset, because a second
// one could delete newer counts.
package client
