package command

import "testing"

// During a trial, a count is an error only if the new limit, the code's and the live one before
// are all lower. Erasing a user with a grant does not change that.
func TestAnErasureLeavesATrial(t *testing.T) {
	for by, erase := range map[string]func(*project){
		"guards erase": func(p *project) { p.does("erase --user u9 --yes") },
		"cleanup": func(p *project) {
			endpoint, _ := serve(p.t, append(p.where, "--store", "dynamodb")...)
			post(p.t, invocations(endpoint, "cleanup"), `{"userId": "u9"}`).Wants(p.t, 200, `"finished":true`)
		},
	} {
		t.Run(by, func(t *testing.T) {
			p := ofApp(t) // its code has 10/1m
			p.does(
				"limits set create_post 100/1m --by op", "limits set create_post 5/1m --mode shadow --by op",
				"grant --user u9 --tier premium --until 7d --reason r --by op",
			)
			erase(p)
			p.lacks("limits --live", "u9")
			p.contains("check create_post --user u1 --count 100 --store dynamodb", "allowed")
			p.fails("check create_post --user u1 --count 101 --store dynamodb", wrongUse, "count is 101")
		})
	}
}
