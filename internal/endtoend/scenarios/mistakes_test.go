package scenarios_test

import (
	"fmt"
	"net/http"
)

const (
	noRegion      = "No AWS region is set. Set {AWS_REGION}, or pass a Lambda client that has one."
	noCredentials = "No AWS credentials were found. Give the app a role, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
	notAllowed    = "The app may not invoke {F} in {R}. Allow its role the action lambda:InvokeFunction on this function."
	urlNotAllowed = "The app may not call the URL of {F}. Allow its role lambda:InvokeFunctionUrl and lambda:InvokeFunction on this function."
	noFunction    = "There is no function {F} in {R}. Deploy it, or check the region and the name."
	refusedKeys   = "AWS refused the credentials (%s*). Renew them, and check this machine's clock."
	noHost        = "There is no host " + absentHost + ". Check the region {R}."
	noHostOfURL   = "There is no host " + absentHost + ". Check the URL of {F}."
	noGuard       = "{F} answered something that no guard answers: *. Check the function's name."
)

// In these scenarios the app can't reach the guard because of a mistake. Each is
// repeated with guarded, and must not let the save happen, although onOutage is
// "allow".
var mistakes = []scenario{
	{name: "no region", invoke: true, url: true, mistake: true, env: map[string]string{"AWS_REGION": "", "AWS_DEFAULT_REGION": ""}, steps: []step{
		{call: check, requests: 0, class: "ConfigurationError", message: noRegion},
	}},
	{name: "no credentials", invoke: true, url: true, mistake: true, env: map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, steps: []step{
		{call: check, requests: 0, class: "ConfigurationError", message: noCredentials},
	}},
	{name: "access denied", invoke: true, mistake: true, steps: []step{
		{faults: times(1, denied), call: check, requests: 1, class: "ConfigurationError", message: notAllowed},
	}},
	{name: "access to the URL denied", url: true, mistake: true, steps: []step{
		{faults: times(1, denied), call: check, requests: 1, class: "ConfigurationError", message: urlNotAllowed},
	}},
	{name: "no such function", invoke: true, url: true, mistake: true, options: map[string]any{"prefix": "absent-"}, steps: []step{
		{call: check, requests: 1, class: "ConfigurationError", message: noFunction},
	}},
	{name: "not ready", invoke: true, mistake: true, steps: []step{
		{call: `{"call":"ready"}`, requests: -1, class: "ConfigurationError", message: "*There is no function * in {R}.*"},
		{faults: times(1, absent), call: check, requests: 1, class: "ConfigurationError", message: noFunction},
	}},
	{name: "expired credentials", invoke: true, url: true, mistake: true, steps: []step{
		{faults: times(1, expired), call: check, requests: 1, class: "ConfigurationError", message: fmt.Sprintf(refusedKeys, "ExpiredToken")},
	}},
	{name: "an unknown key", invoke: true, url: true, mistake: true, steps: []step{
		{faults: times(1, unknownKey), call: check, requests: 1, class: "ConfigurationError", message: fmt.Sprintf(refusedKeys, "UnrecognizedClient")},
	}},
	{name: "a wrong key", invoke: true, url: true, mistake: true, env: map[string]string{"AWS_SECRET_ACCESS_KEY": "wrong"}, steps: []step{
		{call: check, requests: 0, class: "ConfigurationError", message: fmt.Sprintf(refusedKeys, "InvalidSignature")},
	}},
	{name: "another error of Lambda", invoke: true, url: true, mistake: true, steps: []step{
		{faults: times(1, badContentType), call: check, requests: 1, class: "ConfigurationError", message: "{F} could not be invoked: *"},
	}},
	{name: "garbage", invoke: true, url: true, mistake: true, steps: []step{
		{faults: times(1, garbage), call: check, requests: 1, class: "AnswerError", message: noGuard},
	}},
	{name: "no guard", invoke: true, url: true, mistake: true, options: map[string]any{"prefix": "hello-"}, steps: []step{
		{call: check, requests: 1, class: "AnswerError", message: noGuard},
	}},
	{name: "a crash", invoke: true, mistake: true, options: map[string]any{"prefix": "broken-"}, steps: []step{
		{call: check, requests: 1, class: "AnswerError", message: "{F} failed: Runtime.ExitError. Its log says why."},
	}},
	{name: "a crash behind a URL", url: true, mistake: true, options: map[string]any{"prefix": "broken-"}, steps: []step{
		{call: check, requests: 1, class: "AnswerError", message: "{F} failed*"},
	}},
	{name: "a URL of an unknown guard", invoke: true, mistake: true, options: map[string]any{"urls": map[string]string{"post-guard": "https://x.lambda-url.us-east-1.on.aws/"}}, steps: []step{
		{call: check, requests: 0, class: "ConfigurationError", message: "*post-guard*posts-guard*"},
	}},
	{name: "an unknown certificate", invoke: true, mistake: true, env: map[string]string{"AWS_ENDPOINT_URL_LAMBDA": untrusted}, steps: []step{
		{call: check, requests: 0, class: "ConfigurationError", message: "{F} could not be invoked: *"},
	}},
	{name: "no such host", invoke: true, mistake: true, resolver: true, env: map[string]string{"AWS_ENDPOINT_URL_LAMBDA": "http://" + absentHost}, steps: []step{
		{call: check, requests: 0, class: "ConfigurationError", message: noHost},
	}},
	{name: "no such host of the URL", invoke: true, mistake: true, resolver: true, options: map[string]any{"urls": map[string]string{"posts-guard": "http://" + absentHost + "/"}}, steps: []step{
		{call: check, requests: 0, class: "ConfigurationError", message: noHostOfURL},
	}},
	{name: "a timeout that is too short", invoke: true, url: true, mistake: true, options: map[string]any{"timeout": 5_000}, steps: []step{
		{call: check, requests: 0, class: "any"},
	}},
}

// In these scenarios Lambda can't run the guard until somebody corrects it,
// although the status is 502.
var lasting = everyCode(scenario{invoke: true, url: true, mistake: true}, step{requests: 1, class: "ConfigurationError"},
	"EC2AccessDeniedException", "InvalidRuntimeException", "InvalidSecurityGroupIDException", "InvalidSubnetIDException",
	"InvalidZipFileException", "KMSAccessDeniedException", "KMSDisabledException", "KMSInvalidStateException", "KMSNotFoundException")

// In these it will soon.
var passing = everyCode(scenario{invoke: true}, step{requests: 3, answer: `{"allowed":true,"reason":"unavailable","outage":"{F} did not answer: *"}`},
	"EC2ThrottledException", "EC2UnexpectedException", "ENILimitReachedException", "ResourceNotReadyException", "SubnetIPAddressLimitReachedException")

// everyCode returns a scenario for each of Lambda's codes with status 502.
func everyCode(s scenario, want step, codes ...string) (list []scenario) {
	for _, code := range codes {
		want.call, want.faults = check, times(3, byLambda(http.StatusBadGateway, code, "the cause"))
		if want.class != "" {
			want.message = "*{F}*" + code + "*"
		}
		s.name, s.steps = code, []step{want}
		list = append(list, s)
	}
	return list
}
