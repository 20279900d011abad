package ratelimit

// repace records the pace of a check that its item refuses, if the item counts at a faster
// one. That takes one request, once. It reports whether the store has answered it, with the
// item as it is now: t.item. If the item has changed meanwhile, or the request fails, the
// next refusal records the pace.
//
// For example, a user has used 10 of bucket 10/1m, and a live limit makes it bucket 10/1d.
// The next check is refused. Without a record, the item would be full after a minute.
func (t *attempts) repace(v *view) (answered bool) {
	u, expires, slower := v.Policy.Repace(v.write.Now, v.state)
	if !slower {
		return false
	}
	_, _, err := t.update(Write{Key: v.write.Key, Update: u, Now: v.write.Now, Expires: expires})
	return err == nil
}
