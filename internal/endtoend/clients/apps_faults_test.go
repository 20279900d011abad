package clients_test

import (
	"crypto/rand"
	"net/http"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

func TestInAnOutageTheAppDoesWhatItChose(t *testing.T) {
	testkit.Clients.Need(t)
	for onOutage, want := range map[string]int{"allow": http.StatusCreated, "deny": http.StatusServiceUnavailable} {
		t.Run(onOutage, func(t *testing.T) {
			forEachApp(t, func(t *testing.T, guards string, app app) {
				between := newProxy(t, guards)
				_, url := app.serving(t, between.endpoint(), "GUARDS_ON_OUTAGE="+onOutage)
				between.set(breaks)
				got := post(t, url, rand.Text())
				if got.StatusCode != want {
					t.Errorf("%+v, want %d", got, want)
				}
				if want == http.StatusServiceUnavailable && (got.Header.Get("Retry-After") != "1" ||
					got.Header.Get("Content-Type") != "application/problem+json" || !strings.Contains(got.Text, `"Unavailable"`)) {
					t.Errorf("%+v is not the problem of an outage", got)
				}
			})
		})
	}
}

func TestAMistakeLetsNobodyPost(t *testing.T) {
	testkit.Clients.Need(t)
	forEachApp(t, func(t *testing.T, guards string, app app) {
		for name, mistake := range map[string]struct {
			fault            fault
			setting, message string
		}{
			"no permission":   {denied, "GUARDS_ON_OUTAGE=allow", "The app may not invoke posts-guard in us-east-1."},
			"a wrong name":    {knowsAnotherName, "GUARDS_ON_OUTAGE=allow", "There is no function posts-guard in us-east-1."},
			"a wrong setting": {breaks, "GUARDS_ON_OUTAGE=perhaps", "perhaps"},
		} {
			t.Run(name, func(t *testing.T) {
				testkit.Retry(t, func(t testing.TB) { // a busy machine can look like an outage
					started := app(t, mistake.setting, "AWS_ENDPOINT_URL_LAMBDA="+mistake.fault.between(t, guards))
					if status := started.status(t); status == 0 || !strings.Contains(started.String(), mistake.message) {
						t.Errorf("exit status %d, want an error that contains %q and no start", status, mistake.message)
					}
				})
			})
		}
		t.Run("a permission that was taken away later", func(t *testing.T) {
			between := newProxy(t, guards)
			running, url := app.serving(t, between.endpoint())
			between.set(denied)
			running.retry(t, func(t testing.TB, user string) {
				t.Helper()
				if got := post(t, url, user); got.StatusCode != http.StatusInternalServerError {
					t.Errorf("%+v, want 500", got)
				}
			})
		})
	})
}
