package plot

import "time"

// steps are the possible distances between two labels on the time axis, in
// milliseconds.
var steps = []int64{
	1, 2, 5, 10, 20, 50, 100, 200, 500,
	1000, 2000, 5000, 10_000, 15_000, 20_000, 30_000,
	60_000, 120_000, 300_000, 600_000, 900_000, 1_200_000, 1_800_000,
	3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000,
	day, 2 * day, 5 * day, 10 * day, 20 * day, 50 * day, 100 * day, 200 * day, 500 * day, 1000 * day,
}

const day = 86_400_000

// step returns the shortest distance between labels at which the labels of an
// axis of ms milliseconds do not overlap.
func step(ms int64) int64 {
	for _, s := range steps {
		most := int64(9)
		if s < 1000 { // labels with milliseconds are longer
			most = 7
		}
		if ms/s < most {
			return s
		}
	}
	return ms
}

// format returns the layout of labels that are step milliseconds apart.
func format(step int64) string {
	switch {
	case step < 1000:
		return "15:04:05.000"
	case step < 60_000:
		return "15:04:05"
	case step < 43_200_000:
		return "15:04"
	case step < day:
		return "2 Jan 15:04"
	}
	return "2 Jan 2006"
}

// times draws the time axis, in UTC.
func (p *picture) times() {
	by := step(p.t.To - p.t.From)
	for at := (p.t.From + by - 1) / by * by; at <= p.t.To; at += by {
		x := p.x(at)
		p.line("axis", x, p.y, x, p.y+5*pixel)
		p.text("s", "middle", x, p.y+19*pixel, time.UnixMilli(at).UTC().Format(format(by)))
	}
	p.y += 30 * pixel
}
