package explore

import "slices"

// In some systems, two versions of a limit are at work at once on one item, as during a deploy.
// The second one decides every other request. Their limits count apart: each version has its
// own promise, and keeps it whatever the other one writes.

// version returns the slot whose policy judges the figures of an item after the request in slot s
// has changed it. That is s itself with two versions, and with numbers of callers, because these
// change the pace of a bucket.
func (y *system) version(s int) int {
	if y.versions || !y.numbered.IsZero() || !y.inRoom.IsZero() {
		return s
	}
	return old
}

// isApart reports whether an entry is of another version than the request in slot s.
func (y *system) isApart(e *entry, s int) bool {
	return y.versions && y.isOther(int(e.writer)) != y.isOther(s)
}

// entriesOf returns the entries of l. Entries of another version than the request in slot s are
// in no item.
func (y *system) entriesOf(l *ledger, s int) []entry {
	if !y.versions {
		return l.entries
	}
	entries := slices.Clone(l.entries)
	for i := range entries {
		if y.isApart(&entries[i], s) {
			entries[i].item = -1
		}
	}
	return entries
}

// sideBySide returns limits that a deploy can replace by one another, and that count apart in
// one item.
func sideBySide() (subjects []subject) {
	for _, texts := range [][2]string{
		{"sliding 2/10s", "sliding 2/30s"},
		{"sliding 2/30s", "sliding 2/10s"},
		{"sliding 2/10s", "log 2/10s"},
		{"log 2/10s", "bucket 2/10s"},
		{"bucket 2/10s", "sliding 2/20s"},
		{"a: sliding 2/10s", "a: sliding 2/30s"},
		{"a: sliding 2/10s", "b: sliding 2/10s"},
	} {
		subjects = append(subjects, subject{kinds: "two versions", text: texts[:1], dear: texts[1:]})
	}
	return subjects
}
