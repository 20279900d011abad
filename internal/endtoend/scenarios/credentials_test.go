package scenarios_test

import (
	"encoding/json"
	"net/http"
	"time"
)

// In these scenarios the credentials come from a source, as they do in a
// container. A source that never gave any is a mistake. One that fails later is an
// outage.
var sources = []scenario{
	one(scenario{name: "slow credentials", invoke: true, url: true, noAgent: noAWS, env: from("slow"), options: map[string]any{"decisionTimeout": 200}, counted: 1}, step{requests: -1, answer: `{"allowed":true,"outage":null}`}),
	one(scenario{name: "a source of credentials that fails", invoke: true, url: true, noAgent: noAWS, mistake: true, env: from("failing")}, step{requests: 0, class: "ConfigurationError", message: "*"}),
	{name: "credentials that can't be renewed", invoke: true, noAgent: noAWS, env: from("short"), counted: 1, steps: []step{
		{call: check, requests: 1, answer: fine},
		{pause: shortLife + time.Second, sourceFails: true, call: check, requests: 0, answer: lost},
	}},
}

// from returns the environment of a driver that gets its credentials from a
// source of this name; see source.
func from(source string) map[string]string {
	return map[string]string{
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_CONTAINER_CREDENTIALS_FULL_URI": fromSource + source,
	}
}

// fromSource, at the beginning of a variable's value, stands for the address of
// the sources.
const fromSource = "source "

// shortLife is how long credentials of the source short can be used. Until then,
// some SDKs use them even if the source fails.
const shortLife = 5 * time.Second

// secret is in the message of a source that fails.
const secret = "about the credentials"

// source answers as the source of credentials in a container does:
//
//	slow     after 0.8 s; an SDK may give up after 1 s
//	failing  always with an error
//	short    with credentials that live for shortLife, until expect says that it fails
func (c *cloud) source(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	fails := c.sourceFails
	c.mu.Unlock()
	expires := time.Now().Add(time.Hour)
	switch r.PathValue("name") {
	case "slow":
		time.Sleep(800 * time.Millisecond)
	case "failing":
		fails = true
	case "short":
		expires = time.Now().Add(shortLife)
	}
	if fails {
		http.Error(w, `{"code":"InternalFailure","message":"`+secret+`"}`, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{
		"AccessKeyId": credentials.AccessKeyID, "SecretAccessKey": credentials.SecretAccessKey,
		"Token": "token", "Expiration": expires.UTC().Format(time.RFC3339),
	})
}
