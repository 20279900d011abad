package ratelimit

// refuse returns the refusal of a check whose item the store has shown. If the item counts
// at a faster pace than the check's limit, refuse records the slower one, by one request. If
// that has no effect, the next refusal does it.
//
// For example, a user has used 10 of bucket 10/1m, and a live limit makes it bucket 10/1d.
// The next check is refused. Without a record, the item would be full after a minute.
func (t *attempts) refuse(v *view) Decision {
	w := Write{Key: v.write.Key, Now: v.write.Now}
	var records bool
	if w.Update, w.Expires, records = v.Policy.Repace(v.write.Now, v.state); records {
		_, _, _ = t.update(w)
	}
	return v.decision(0, 0)
}
