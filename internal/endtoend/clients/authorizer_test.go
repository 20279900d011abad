package clients_test

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// forEachAPI runs a test for a REST API and for an HTTP API. The authorizer has the client's own timeouts.
func forEachAPI(t *testing.T, test func(t testing.TB, on gateway)) {
	t.Helper()
	for _, on := range []gateway{restGateway, httpGateway} {
		t.Run(on.name, func(t *testing.T) { testkit.Retry(t, func(t testing.TB) { test(t, on) }) })
	}
}

func TestTheAuthorizerLimitsTheUserOfAToken(t *testing.T) {
	testkit.Clients.Need(t)
	endpoint, issuer := serve(t), newIssuer(t)
	a := newAuthorizer(t, endpoint, issuer.settings()...)
	forEachAPI(t, func(t testing.TB, on gateway) {
		t.Helper()
		user := rand.Text()
		askPosts(t, endpoint, user, `,"count":9`)
		token := caller{token: issuer.token(t, user, nil)}
		all := a.answers(t, on, token, token, caller{token: issuer.token(t, rand.Text(), nil)})
		if got := all[0]; got.StatusCode != http.StatusCreated || got.Text != user {
			t.Errorf("the tenth post: %v, want 201 for the user", got)
		}
		if got := all[1]; got.StatusCode != on.refused {
			t.Errorf("the eleventh post: %v, want %d", got, on.refused)
		}
		if got := all[2]; got.StatusCode != http.StatusCreated {
			t.Errorf("another user: %v, want 201", got)
		}
		if on.refused != http.StatusTooManyRequests {
			return
		}
		var body struct{ Message string }
		err := json.Unmarshal([]byte(all[1].Text), &body)
		after, _ := strconv.Atoi(all[1].Header.Get("Retry-After"))
		if err != nil || body.Message != "Rate limit exceeded: Too many requests in a short period" || after < 1 || after > 60 {
			t.Errorf("%v, %v, want the guard's message and a Retry-After of 1 to 60 s", all[1], err)
		}
	})
}

func TestTheAuthorizerCountsNothingForAnUnknownCaller(t *testing.T) {
	testkit.Clients.Need(t)
	endpoint, issuer, other := serve(t), newIssuer(t), newIssuer(t)
	a := newAuthorizer(t, endpoint, issuer.settings()...)
	forEachAPI(t, func(t testing.TB, on gateway) {
		t.Helper()
		user := rand.Text()
		valid := issuer.token(t, user, nil)
		unknown := map[string]string{
			"no token":           "",
			"no JSON Web Token":  user,
			"a changed token":    valid[:len(valid)-6] + "AAAAAA",
			"an expired token":   issuer.token(t, user, fields{"exp": time.Now().Add(-time.Minute).Unix()}),
			"another audience":   issuer.token(t, user, fields{"aud": "another"}),
			"another issuer":     issuer.token(t, user, fields{"iss": other.url}),
			"another's key":      other.token(t, user, fields{"iss": issuer.url}),
			"an unknown key":     issuer.token(t, user, fields{"kid": "2"}),
			"a second such key":  issuer.token(t, user, fields{"kid": "3"}),
			"no signature":       issuer.token(t, user, fields{"alg": "none"}),
			"a token of no user": issuer.token(t, "", nil),
		}
		names := slices.Sorted(maps.Keys(unknown))
		var callers []caller
		for _, name := range names {
			callers = append(callers, caller{token: unknown[name]})
		}
		all := a.answers(t, on, append(callers, caller{token: valid})...)
		for i, name := range names {
			if got := all[i]; got.StatusCode != on.unknown {
				t.Errorf("%s: %v, want %d", name, got, on.unknown)
			}
		}
		if got := all[len(names)]; got.StatusCode != http.StatusCreated {
			t.Errorf("a valid token after all of them: %v, want 201", got)
		}
		if counted := askPosts(t, endpoint, user, `,"op":"status"`); counted != 1 {
			t.Errorf("%d counted, want 1", counted)
		}
	})
}

func TestTheAuthorizerLimitsAnAddress(t *testing.T) {
	testkit.Clients.Need(t)
	endpoint := serve(t)
	a := newAuthorizer(t, endpoint, "LIMIT_BY=address")
	forEachAPI(t, func(t testing.TB, on gateway) {
		t.Helper()
		network := make([]byte, 4)
		_, _ = rand.Read(network) // it never fails
		prefix := "2001:db8:1" + strconv.Itoa(int(network[0])) + ":1" + strconv.Itoa(int(network[1]))
		askPosts(t, endpoint, prefix+"::/64", `,"count":9`)
		all := a.answers(t, on, caller{address: prefix + "::1"}, caller{address: prefix + "::2"})
		if all[0].StatusCode != http.StatusCreated || all[0].Text != prefix+"::/64" || all[1].StatusCode != on.refused {
			t.Errorf("%v, want 201 for the first address of the network, and %d for the second one", all, on.refused)
		}
	})
}

func TestTheAuthorizerLimitsAnAPIKeyOfARESTAPI(t *testing.T) {
	testkit.Clients.Need(t)
	endpoint := serve(t)
	a := newAuthorizer(t, endpoint, "LIMIT_BY=key")
	testkit.Retry(t, func(t testing.TB) {
		key := rand.Text() + "a"
		callers := slices.Repeat([]caller{{key: key}}, 11)
		all := a.answers(t, restGateway, append(callers, caller{key: strings.ToLower(key)}, caller{})...)
		for i, want := range slices.Concat(slices.Repeat([]int{http.StatusCreated}, 10), []int{http.StatusTooManyRequests, http.StatusCreated, http.StatusUnauthorized}) {
			if got := all[i]; got.StatusCode != want || strings.Contains(got.Text, key) {
				t.Errorf("request %d: %v, want %d without the key", i+1, got, want)
			}
		}
		if got := a.answers(t, httpGateway, caller{})[0]; got.StatusCode != http.StatusInternalServerError {
			t.Errorf("an HTTP API: %v, want 500", got)
		}
	})
}

// A message goes into the JSON of a gateway response as it is.
func TestTheMessageOfAGuardMayHaveQuotes(t *testing.T) {
	testkit.Clients.Need(t)
	const message = "Say \"please\"\\\nand wait."
	refusing := fault(func(w http.ResponseWriter, _ *http.Request, _ int64, _ http.Handler) {
		_ = json.NewEncoder(w).Encode(fields{
			"allowed": false, "reason": "limited", "userId": "192.0.2.1", "activity": "create_post", "op": "check", "message": message,
			"waitTime": 1500, "limit": 10, "activityCount": 10, "remaining": 0, "resetAt": time.Now().Add(time.Minute).UnixMilli(),
		})
	})
	a := newAuthorizer(t, refusing.between(t, nowhere), "LIMIT_BY=address")
	testkit.Retry(t, func(t testing.TB) {
		got := a.answers(t, restGateway, caller{address: "192.0.2.1"})[0]
		var body struct{ Message string }
		if err := json.Unmarshal([]byte(got.Text), &body); err != nil || body.Message != message || got.Header.Get("Retry-After") != "2" {
			t.Errorf("%v, %v, want the message and a Retry-After of 2 s", got, err)
		}
	})
}

// The table in examples/README.md lists these.
func TestInAnOutageTheAuthorizerDoesWhatItChoseAndAMistakeLetsNobodyPass(t *testing.T) {
	testkit.Clients.Need(t)
	endpoint, issuer := serve(t), newIssuer(t)
	for name, tt := range map[string]struct {
		lambda   string
		settings []string
		status   int
		contains string
	}{
		"an outage, allow":            {nowhere, nil, http.StatusCreated, ""},
		"an outage, deny":             {nowhere, []string{"ON_OUTAGE=deny"}, http.StatusInternalServerError, "did not answer"},
		"no permission":               {denied.between(t, endpoint), nil, http.StatusInternalServerError, "may not invoke posts-guard"},
		"a wrong name":                {fault(knowsAnotherName).between(t, endpoint), nil, http.StatusInternalServerError, "There is no function"},
		"an issuer without an answer": {endpoint, []string{"ISSUER=https://127.0.0.1:1"}, http.StatusInternalServerError, "Failed to fetch"},
		"no audience":                 {endpoint, []string{"AUDIENCE="}, http.StatusInternalServerError, "audience must be provided"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthorizer(t, tt.lambda, append(issuer.settings(), tt.settings...)...)
			forEachAPI(t, func(t testing.TB, on gateway) {
				t.Helper()
				got := a.answers(t, on, caller{token: issuer.token(t, rand.Text(), nil)})[0]
				if got.StatusCode != tt.status || !strings.Contains(got.Text, tt.contains) {
					t.Errorf("%v, want %d with %q", got, tt.status, tt.contains)
				}
			})
		})
	}
	t.Run("a route without an activity", func(t *testing.T) {
		a := newAuthorizer(t, endpoint, issuer.settings()...)
		forEachAPI(t, func(t testing.TB, on gateway) {
			t.Helper()
			event := on.event
			on.event = func(t testing.TB, c caller) fields {
				t.Helper()
				e := event(t, c)
				if e["routeKey"] == nil {
					e["httpMethod"] = http.MethodDelete
				} else {
					e["routeKey"] = "DELETE /posts"
				}
				return e
			}
			got := a.answers(t, on, caller{token: issuer.token(t, rand.Text(), nil)})[0]
			if got.StatusCode != http.StatusInternalServerError || !strings.Contains(got.Text, "DELETE /posts") {
				t.Errorf("%v, want 500 with the route", got)
			}
		})
	})
}

// A cached answer is not counted.
func TestTheTemplateOfTheAuthorizerCachesNothing(t *testing.T) {
	testkit.Clients.Need(t)
	template := newAuthorizer(t, nowhere, "LIMIT_BY=address").template
	for _, on := range []gateway{restGateway, httpGateway} {
		guard := inside(template, "Resources."+on.name+".Properties.Auth.Authorizers.Guard")
		if ttl := inside(guard, "Identity")["ReauthorizeEvery"]; ttl != uint64(0) {
			t.Errorf("%s: ReauthorizeEvery is %v, want 0", on.name, ttl)
		}
		if on.name == "HttpApi" && (guard["EnableSimpleResponses"] != true || guard["AuthorizerPayloadFormatVersion"] != "2.0") {
			t.Errorf("the authorizer of the HTTP API is %v, want payload 2.0 and simple responses", guard)
		}
	}
}
