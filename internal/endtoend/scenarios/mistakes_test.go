package scenarios_test

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/cric-talk/guards/internal/testkit/cricket"
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
	mistake(scenario{name: "no region", invoke: true, url: true, noAgent: noAWS, env: map[string]string{"AWS_REGION": "", "AWS_DEFAULT_REGION": ""}}, step{message: noRegion}),
	mistake(scenario{name: "no credentials", invoke: true, url: true, noAgent: noAWS, env: map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}}, step{message: noCredentials}),
	mistake(scenario{name: "access denied", invoke: true, noAgent: ofLambda}, step{faults: times(1, denied), requests: 1, message: notAllowed}),
	mistake(scenario{name: "access to the URL denied", url: true, noAgent: ofLambda}, step{faults: times(1, denied), requests: 1, message: urlNotAllowed}),
	mistake(scenario{name: "no such function", invoke: true, url: true, noAgent: ofLambda, options: map[string]any{"prefix": "absent-"}}, step{requests: 1, message: noFunction}),
	{name: "not ready", invoke: true, noAgent: ofLambda, mistake: true, steps: []step{
		{call: `{"call":"ready"}`, requests: len(cricket.All), class: "ConfigurationError", message: "*There is no function * in {R}.*"},
		{faults: times(1, absent), call: check, requests: 1, class: "ConfigurationError", message: noFunction},
	}},
	mistake(scenario{name: "expired credentials", invoke: true, url: true, noAgent: noAWS}, step{faults: times(1, expired), requests: 1, message: fmt.Sprintf(refusedKeys, "ExpiredToken")}),
	mistake(scenario{name: "an unknown key", invoke: true, url: true, noAgent: noAWS}, step{faults: times(1, unknownKey), requests: 1, message: fmt.Sprintf(refusedKeys, "UnrecognizedClient")}),
	mistake(scenario{name: "a wrong key", invoke: true, url: true, noAgent: noAWS, env: map[string]string{"AWS_SECRET_ACCESS_KEY": "wrong"}}, step{message: fmt.Sprintf(refusedKeys, "InvalidSignature")}),
	mistake(scenario{name: "another error of Lambda", invoke: true, url: true, noAgent: ofLambda}, step{faults: times(1, badContentType), requests: 1, message: "{F} could not be invoked: *"}),
	mistake(scenario{name: "garbage", invoke: true, url: true, noAgent: another}, step{faults: times(1, garbage), requests: 1, class: "AnswerError", message: noGuard}),
	mistake(scenario{name: "no guard", invoke: true, url: true, noAgent: another, options: map[string]any{"prefix": "hello-"}}, step{requests: 1, class: "AnswerError", message: noGuard}),
	mistake(scenario{name: "a crash", invoke: true, noAgent: ofLambda, options: map[string]any{"prefix": "broken-"}}, step{requests: 1, class: "AnswerError", message: "{F} failed: Runtime.ExitError. Its log says why."}),
	mistake(scenario{name: "a crash behind a URL", url: true, noAgent: ofLambda, options: map[string]any{"prefix": "broken-"}}, step{requests: 1, class: "AnswerError", message: "{F} failed*"}),
	mistake(scenario{name: "a URL of an unknown guard", invoke: true, noAgent: "urls does not go with agent", options: map[string]any{"urls": map[string]string{"post-guard": "https://x.lambda-url.us-east-1.on.aws/"}}}, step{message: "*post-guard*posts-guard*"}),
	mistake(scenario{name: "an unknown certificate", invoke: true, noAgent: "the address is Lambda's", env: map[string]string{"AWS_ENDPOINT_URL_LAMBDA": untrusted}}, step{message: "{F} could not be invoked: *"}),
	mistake(scenario{name: "no such host", invoke: true, noAgent: "the address is Lambda's", resolver: true, env: map[string]string{"AWS_ENDPOINT_URL_LAMBDA": "http://" + absentHost}}, step{message: noHost}),
	mistake(scenario{name: "no such host of the URL", invoke: true, noAgent: "the address is Lambda's", resolver: true, options: map[string]any{"urls": map[string]string{"posts-guard": "http://" + absentHost + "/"}}}, step{message: noHostOfURL}),
	mistake(scenario{name: "a timeout that is too short", invoke: true, url: true, options: map[string]any{"timeout": 5_000}}, step{class: "any"}),
}

// mistake returns a scenario with one step, which is an error. Its class is
// ConfigurationError unless it says otherwise.
func mistake(s scenario, only step) scenario {
	s.mistake, only.class = true, cmp.Or(only.class, "ConfigurationError")
	return one(s, only)
}

// In these scenarios Lambda can't run the guard until somebody corrects it,
// although the status is 502.
var lasting = everyCode(scenario{invoke: true, url: true, noAgent: ofLambda, mistake: true}, step{requests: 1, class: "ConfigurationError"},
	"EC2AccessDeniedException", "InvalidRuntimeException", "InvalidSecurityGroupIDException", "InvalidSubnetIDException",
	"InvalidZipFileException", "KMSAccessDeniedException", "KMSDisabledException", "KMSInvalidStateException", "KMSNotFoundException")

// In these it will soon.
var passing = everyCode(scenario{invoke: true, noAgent: ofLambda}, step{requests: 3, answer: lost},
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
