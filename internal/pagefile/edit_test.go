package pagefile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/pagefile"
	"github.com/cric-talk/guards/internal/testkit"
)

// An addition keeps the text that is there, and has the form of its neighbours.
func TestAdditions(t *testing.T) {
	g := guards.Guard{Name: "a-guard", Message: "m", Activities: []guards.Activity{{Name: "b", Limit: "5/1m"}}}
	text := pagefile.Text(g)
	want := `{
  "$schema": "https://github.com/cric-talk/guards/schema/page.schema.json",
  "guards": [
    {
      "name": "a-guard",
      "message": "m",
      "activities": [
        {"name": "b", "limit": "5/1m"}
      ]
    }
  ]
}
`
	if text != want {
		t.Errorf("a new page:\n%s", cmp.Diff(want, text))
	}
	a := guards.Activity{
		Name: "c", Limit: "w: 6/1m", Tiers: guards.Tiers{"z": "w: 8/1m", "p": "w: 7/1m"}, Label: "ä \"c\"", Group: "d", Hold: true,
		Subjects: []guards.Subject{{Name: "room", Limit: "w: 9/1m", Optional: true}},
	}
	text = testkit.Must(pagefile.WithActivity(text, "a-guard", a))(t)
	other := guards.Guard{Name: "c-guard", Message: "m", DelayedQueue: true, MemorySize: 128, Activities: []guards.Activity{{Name: "e", Limit: "reservoir 1/2s ahead 1m"}}}
	text = testkit.Must(pagefile.WithGuard(text, other))(t)
	want = strings.Replace(want, `"5/1m"}
      ]
    }
`, `"5/1m"},
        {"name": "c", "limit": "w: 6/1m", "tiers": {"p": "w: 7/1m", "z": "w: 8/1m"}, "label": "ä \"c\"", "group": "d", "hold": true, "subjects": [{"name": "room", "limit": "w: 9/1m", "optional": true}]}
      ]
    },
    {
      "name": "c-guard",
      "message": "m",
      "activities": [
        {"name": "e", "limit": "reservoir 1/2s ahead 1m"}
      ],
      "delayedQueue": true,
      "memorySize": 128
    }
`, 1)
	if text != want {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, text))
	}
	g.Activities = append(g.Activities, a)
	got, err := pagefile.Read("limits.json", []byte(text))
	if diff := cmp.Diff([]guards.Guard{g, other}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	const compact = `{"guards":[{"name":"a-guard","message":"m","activities":[{"name":"b","limit":"5/1m"}]}]}`
	text, err = pagefile.WithActivity(compact, "a-guard", guards.Activity{Name: "c", Unlimited: true})
	if want := strings.Replace(compact, `"}]`, `"}, {"name": "c", "unlimited": true}]`, 1); text != want || err != nil {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
}
