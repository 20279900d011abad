package oracle

// A Figure is what an answer may say about one limit, in actions.
type Figure struct {
	Name               string
	Limit              int64
	Used, MaxUsed      int64
	Left, MaxLeft      int64
	Resets, LastResets int64
	Window             int64 // the window's number; 0: the kind has none
	Locked             bool  // a lockout allows nothing until Resets
}

// Figures returns what an answer at now may say about each limit.
func (a *Account) Figures(t *Terms, now int64) []Figure {
	w := a.Moment(t, now)
	figures := make([]Figure, 0, len(t.Rates))
	for m, r := range a.Own(t) {
		at := w.in(m)
		used, maxUsed, c := m.Used(at, r, false), m.Used(at, r, true), Cost(r)
		f := Figure{
			Name: r.Name, Limit: r.Burst / c,
			Used: (used + c - 1) / c, MaxUsed: (maxUsed + c - 1) / c,
			Left: max(0, r.Burst-maxUsed) / c, MaxLeft: max(0, r.Burst-used) / c,
			Resets: m.Resets(at, r, false), LastResets: m.Resets(at, r, true),
		}
		switch m := m.(type) {
		case *lockout:
			f.Locked = m.locked(at, r)
		case *bucket, *slots:
		default:
			if !a.Named() {
				f.Window = WindowsOf(r).Key(at)
			}
		}
		figures = append(figures, f)
	}
	return figures
}
