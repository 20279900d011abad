package dynamotest

import (
	"net/http"

	"github.com/cric-talk/guards/internal/strictjson"
)

// forwardSome implements UnprocessedStatements. The table executes every second
// statement of a batch, and the proxy answers the others.
func (p *Proxy) forwardSome(r *http.Request, body []byte) (answer, error) {
	const op = "BatchExecuteStatement"
	var request map[string]strictjson.Value
	var statements, passed []strictjson.Value
	if strictjson.Unmarshal(body, &request) != nil || strictjson.Unmarshal(request["Statements"], &statements) != nil {
		return p.forward(r, op, body) // the table's response explains what is wrong with the request
	}
	for i, s := range statements {
		if i%2 == 1 {
			passed = append(passed, s)
		}
	}
	got := answer{http.StatusOK, http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, []byte(`{"Responses":[]}`)}
	if len(passed) > 0 { // an empty batch is an error
		request["Statements"] = marshal(passed)
		var err error
		if got, err = p.forward(r, op, marshal(request)); err != nil {
			return answer{}, err
		}
	}
	return interleave(got, len(statements)), nil
}

// interleave returns the response for a batch of n statements if the table
// answered n/2 of them in got. If got is something else, such as an error,
// interleave returns it unchanged.
func interleave(got answer, n int) answer {
	var reply map[string]strictjson.Value
	var done []strictjson.Value
	if strictjson.Unmarshal(got.body, &reply) != nil || strictjson.Unmarshal(reply["Responses"], &done) != nil || len(done) != n/2 {
		return got
	}
	responses := make([]strictjson.Value, n)
	for i := range responses {
		if i%2 == 1 {
			responses[i] = done[i/2]
		} else {
			responses[i] = strictjson.Value(`{"Error":{"Code":"ThrottlingError","Message":"made up for a test"}}`)
		}
	}
	reply["Responses"] = marshal(responses)
	got.body = marshal(reply)
	return got.summed()
}
