package delayed_test

import (
	"encoding/json"
	"testing"

	. "github.com/cric-talk/guards/internal/delayed"
)

func TestBody(t *testing.T) {
	job := placed(start, 1)
	job.Job = json.RawMessage(`{ "html": "<&>", "n": 1.50, "s": "\u00e9\u0000\uffff` + "\ufffe\uffff" + `" }`)
	want := `{"userId":"` + canary + `","activity":"update_member_role","requestId":"job-1","readyAt":1700000000000,"enqueued":1,` +
		`"job":{"html":"<&>","n":1.50,"s":"é\u0000\uffff\ufffe\uffff"}}`
	if got, err := Body(job); got != want || err != nil {
		t.Errorf("Body = %s, %v, want %s", got, err, want)
	}
	job.Job = json.RawMessage(`{`)
	if got, err := Body(job); err == nil {
		t.Errorf("Body = %s for a job that is not JSON, want an error", got)
	}
}
