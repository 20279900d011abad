package client_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cric-talk/guards/client"
)

// An argument that the guard would refuse lets nobody pass while the guard is away.
func TestAWrongArgumentIsNotSent(t *testing.T) {
	check := func(g *client.Guards, r client.Request) error {
		_, err := g.Check(t.Context(), "create_post", r)
		return err
	}
	for name, tt := range map[string]struct {
		call func(g *client.Guards, r client.Request) error
		r    client.Request
	}{
		"no user":                  {check, client.Request{}},
		"a negative count":         {check, client.Request{UserID: "user-1", Count: -1}},
		"no JSON":                  {check, client.Request{UserID: "user-1", Job: func() {}}},
		"no decision in an outage": {check, client.Request{UserID: "user-1", OnOutage: "user-1"}},
		"an empty subject": {func(g *client.Guards, r client.Request) error {
			_, err := g.Check(t.Context(), "write", r)
			return err
		}, client.Request{UserID: "user-1", Subjects: map[string]string{"room": ""}}},
		"an empty optional subject": {func(g *client.Guards, r client.Request) error {
			_, err := g.Check(t.Context(), "write", r)
			return err
		}, client.Request{UserID: "user-1", Subjects: map[string]string{"room": "r1", "tenant": ""}}},
		"an empty subject without a list": {func(g *client.Guards, r client.Request) error {
			_, err := g.Check(t.Context(), "forum-guard/other", r)
			return err
		}, client.Request{UserID: "user-1", Subjects: map[string]string{"tenant": ""}}},
		"a release without an id": {func(g *client.Guards, r client.Request) error {
			_, err := g.Release(t.Context(), "create_post", r)
			return err
		}, client.Request{UserID: "user-1", At: 1}},
		"a renewal without a time": {func(g *client.Guards, r client.Request) error {
			_, err := g.Renew(t.Context(), "create_post", r)
			return err
		}, client.Request{UserID: "user-1", RequestID: "r1"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, f := with(t, client.Options{}, broken(errNetwork))
			if err := tt.call(g, tt.r); !errors.Is(err, client.ErrValidation) || strings.Contains(err.Error(), "user-1") || len(f.events) != 0 {
				t.Errorf("%v after %d requests", err, len(f.events))
			}
		})
	}
}
