package clients_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestInAnOutageTheAppDoesWhatItChose(t *testing.T) {
	for onOutage, want := range map[string]int{"allow": http.StatusCreated, "deny": http.StatusServiceUnavailable} {
		t.Run(onOutage, func(t *testing.T) {
			forEachApp(t, func(t *testing.T, guards string, app app) {
				between := newProxy(t, guards)
				_, url := app.serving(t, between.endpoint(), "GUARDS_ON_OUTAGE="+onOutage)
				between.set(breaks)
				got := post(t, url, rand.Text())
				if got.status != want {
					t.Errorf("%+v, want %d", got, want)
				}
				if want == http.StatusServiceUnavailable && (got.header.Get("Retry-After") != "1" ||
					got.header.Get("Content-Type") != "application/problem+json" || !strings.Contains(got.body, `"Unavailable"`)) {
					t.Errorf("%+v is not the problem of an outage", got)
				}
			})
		})
	}
}

func TestAMistakeLetsNobodyPost(t *testing.T) {
	forEachApp(t, func(t *testing.T, guards string, app app) {
		for name, mistake := range map[string]struct {
			env     []string
			fault   fault
			message string
		}{
			"no permission":   {nil, denied, "The app may not invoke posts-guard in us-east-1."},
			"a wrong name":    {nil, knowsAnotherName, "There is no function posts-guard in us-east-1."},
			"no region":       {[]string{"AWS_REGION=", "AWS_DEFAULT_REGION="}, nil, "No AWS region is set."},
			"no credentials":  {[]string{"AWS_ACCESS_KEY_ID="}, nil, "No AWS credentials were found."},
			"a wrong setting": {[]string{"GUARDS_ON_OUTAGE=perhaps"}, nil, "perhaps"},
		} {
			t.Run(name, func(t *testing.T) {
				between := newProxy(t, guards)
				if mistake.fault != nil {
					between.set(mistake.fault)
				}
				env := slices.Concat(mistake.env, []string{between.endpoint()})
				started := app(t, env...)
				for range 4 {
					if started.status(t) != 0 && started.tookForAnOutage() {
						started = app(t, env...)
					}
				}
				if status := started.status(t); status == 0 || !strings.Contains(started.String(), mistake.message) {
					t.Errorf("exit status %d, want an error that contains %q and no start", status, mistake.message)
				}
			})
		}
		t.Run("a permission that was taken away later", func(t *testing.T) {
			between := newProxy(t, guards)
			running, url := app.serving(t, between.endpoint())
			between.set(denied)
			running.repeat(t, func(t *testing.T, user string) error {
				if got := post(t, url, user); got.status != http.StatusInternalServerError {
					return fmt.Errorf("%+v, want 500", got)
				}
				return nil
			})
		})
	})
}
