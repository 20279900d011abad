package live

import (
	"maps"
	"time"
)

// Ends tell when overrides end by themselves, by the name of the override.
//
// Like [Trials], they stand beside the document, and each names the text that ends. Older code
// does not read them, and keeps a limit past its end.
type Ends map[string]End

// An End is about one override.
type End struct {
	Limits map[string]Until `json:"limits,omitempty"` // by tier; "" is the ordinary limit
	Mode   Until            `json:"mode,omitzero"`
}

// An Until is when one text of an override ends. The zero Until never does.
type Until struct {
	Of    string    `json:"of"` // the limit or the mode; if another one is in force, the end does not count
	Until time.Time `json:"until"`
}

// For returns when this text ends; zero: never.
func (u Until) For(text string) time.Time {
	if text == "" || u.Of != text {
		return time.Time{}
	}
	return u.Until
}

// ended reports whether something that ends then has ended at now.
func ended(then, now time.Time) bool { return !then.IsZero() && !now.Before(then) }

// At returns the settings without what has ended at now.
func (s Settings) At(now time.Time) Settings {
	if len(s.Ends) == 0 {
		return s
	}
	all, ends := maps.Clone(s.Activities), maps.Clone(s.Ends)
	for name, o := range s.Activities {
		all[name], ends[name] = o.at(s.Ends[name], now)
	}
	maps.DeleteFunc(all, func(_ string, o Override) bool { return o.Empty() })
	maps.DeleteFunc(ends, func(name string, end End) bool {
		_, known := s.Activities[name]
		_, damaged := s.Damaged.Activities[name] // it can be repaired by hand
		return !damaged && (!known || len(end.Limits) == 0 && end.Mode == Until{})
	})
	s.Activities, s.Ends = all, ends
	return s
}

// at returns an override and its end without what has ended at now.
func (o Override) at(end End, now time.Time) (Override, End) {
	o.Tiers, o.Set, end.Limits = maps.Clone(o.Tiers), maps.Clone(o.Set), maps.Clone(end.Limits)
	if ended(end.Mode.For(o.Mode), now) {
		o.Mode, o.ModeSet, end.Mode = "", Stamp{}, Until{}
	}
	for tier, u := range end.Limits {
		if ended(u.For(o.Text(tier)), now) {
			delete(end.Limits, tier)
			delete(o.Set, tier)
			if delete(o.Tiers, tier); tier == "" {
				o.Limit = ""
			}
		}
	}
	return o, end
}

// firstEnd returns when the next text of the settings ends; zero: none does.
func (s Settings) firstEnd() (first time.Time) {
	look := func(then time.Time) {
		if !then.IsZero() && (first.IsZero() || then.Before(first)) {
			first = then
		}
	}
	for name, end := range s.Ends {
		o := s.Activities[name]
		look(end.Mode.For(o.Mode))
		for tier, u := range end.Limits {
			look(u.For(o.Text(tier)))
		}
	}
	return first
}

// unchanged are the limits before anybody has changed or blocked anything.
var unchanged Limits

// At returns the limits at now, after what has ended until then. It never returns nil.
func (l *Limits) At(now time.Time) *Limits {
	if l == nil {
		return &unchanged
	}
	for l.after != nil && !now.Before(l.until) {
		l = l.after
	}
	return l
}
