package command

import (
	"testing"
)

// A mode that refuses no request can't be verified.
func TestVerifyInALiveMode(t *testing.T) {
	p := ofApp(t)
	for mode, want := range map[string]string{
		"off":    "guards: create_room is not limited now: the guard answers unlimited\n",
		"shadow": "guards: create_room is in shadow mode, in which the guard refuses nobody: set the mode to enforce, and try again\n",
	} {
		p.does("limits set create_room --mode " + mode + " --yes")
		p.fails("verify create_room --callers 5 --store dynamodb", wrongUse, want)
	}
}

// A live limit says prepaid itself, and is judged by it.
func TestVerifyOfALivePrepaidLimit(t *testing.T) {
	p := ofContent(t)
	p.page = busy
	for activity, tt := range map[string][2]string{
		"call":  {"190/1m", "exactly the limit,"},
		"plain": {"300/1m prepaid", "at most the limit of 300, as a prepaid one promises,"},
	} {
		p.does(`limits set ` + activity + ` "` + tt[0] + `" --yes`)
		p.contains("verify "+activity+" --callers 5 --store dynamodb", " allowed, "+tt[1])
	}
}
