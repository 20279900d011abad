package client

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// Options configure the guards' client. The zero value of each field means its
// default.
type Options struct {
	// Activities is the app's list of activities with their guards. guards
	// generate writes it, as All in activities/activities.go. Without a list, each
	// call names its guard, as in "photos-guard/upload_photo".
	Activities []Activity

	// Local decides in this process, as a limiter of package limiter does. Then no function
	// is asked, and no region or credentials are needed for one. It goes with Activities,
	// Warn and Observe alone; without Activities, the list is its guards' list. What happens
	// in an outage is the limiter's setting, unless a request has its own OnOutage.
	Local Local

	// Agent is the address of an agent, which is asked instead of the functions:
	// http://127.0.0.1:2774, unix:/PATH or https://HOST. The default is GUARDS_AGENT. No SDK,
	// region or credentials are needed, and no list: without one, the agent knows the guard of
	// each activity. Client, URLs and Prefix are then without effect; with the option Agent,
	// Client and URLs are an error.
	Agent string

	// Token is the agent's GUARDS_AGENT_TOKEN, and by default this process's variable of this
	// name. It goes to Agent and nowhere else.
	Token string

	// Client invokes the functions. The default is made from the SDK's own
	// configuration: environment, shared files and the role of the machine.
	// The SDK's own retries are off for the guards' requests.
	Client Invoker

	// URLs holds the Function URL of guards that are asked by URL instead of
	// Invoke, by the guard's name. If Activities is set, each must be the guard of
	// one of them. These requests are signed for IAM. They need a Client of type
	// *lambda.Client, or none.
	URLs map[string]string

	Prefix          string        // comes before each guard's name; the template's NamePrefix
	OnOutage        OnOutage      // decides a check if the guard does not answer; the default is Allow
	Timeout         time.Duration // for a whole call with credentials and all attempts, without waiting for a connection; the default is 3 s
	MaxTries        int           // at most; the default is 3
	DecisionTimeout time.Duration // the guards' DECISION_TIMEOUT; the default is 1 s

	// Warn gets the error of a check that OnOutage decided, and of a renewal that
	// failed in a Slot, at most one a second. It also gets an error if a release failed in
	// Guarded or after an attempt, or twice at the end of a Slot. The others are an attempt that
	// succeeded too late to be sure of its release, and a panic of OnLocked. The
	// errors contain no user id and no request id. If Warn panics, the panic is logged with
	// log/slog and changes no decision. The default logs a warning with log/slog.
	Warn func(error)

	// Observe gets each decision for traces and metrics, but no error: how long it took
	// with all attempts, and its way, which is "invoke", "url", "agent" or "local". The
	// decision has no UserID, RequestID and Subjects. Calls and renewals of slots wait for
	// Observe, and it can run several times at once. If it panics, the panic is logged with
	// log/slog and changes no decision.
	Observe func(d Decision, took time.Duration, way string)
}

// Invoker is the part of *lambda.Client that the guards' client needs. Invoke
// must return when ctx ends.
type Invoker interface {
	Invoke(ctx context.Context, in *lambda.InvokeInput, options ...func(*lambda.Options)) (*lambda.InvokeOutput, error)
}

// OnOutage is the decision of a check if the guard does not answer.
type OnOutage string

// The values of OnOutage.
const (
	Allow OnOutage = "allow"
	Deny  OnOutage = "deny"
)

// network is the time that an attempt has in addition to the guard's own
// decision.
const network = 300 * time.Millisecond

// complete fills in the defaults and returns an error for a wrong option.
func (o *Options) complete() error {
	if o.Local != nil {
		if o.Agent != "" || o.Token != "" || o.Client != nil || o.URLs != nil || o.Prefix != "" || o.OnOutage != "" || o.Timeout != 0 || o.MaxTries != 0 || o.DecisionTimeout != 0 {
			return wrongOption("Local goes with Activities, Warn and Observe alone: the limiter has the other settings")
		}
		if o.Activities == nil {
			o.Activities = activitiesOf(o.Local)
		}
		o.OnOutage = Deny // a limiter that allows an outage decides from its memory
	} else if err := o.useAgent(); err != nil {
		return err
	}
	o.OnOutage, o.MaxTries = cmp.Or(o.OnOutage, Allow), cmp.Or(o.MaxTries, 3)
	o.Timeout, o.DecisionTimeout = cmp.Or(o.Timeout, 3*time.Second), cmp.Or(o.DecisionTimeout, time.Second)
	if o.Warn == nil {
		o.Warn = func(err error) { slog.Warn("guards", slog.Any("error", err)) }
	}
	warn := o.Warn
	o.Warn = func(err error) {
		defer logPanic("Warn")
		warn(err)
	}
	switch {
	case o.OnOutage != Allow && o.OnOutage != Deny:
		return wrongOption("OnOutage is %q, want allow or deny", o.OnOutage)
	case o.MaxTries < 1:
		return wrongOption("MaxTries is %d, want at least 1", o.MaxTries)
	case o.DecisionTimeout < 0:
		return wrongOption("DecisionTimeout is %v, want a positive duration", o.DecisionTimeout)
	case o.Timeout < o.attempt():
		return wrongOption("Timeout is %v, want at least %v: DecisionTimeout and %v for the network", o.Timeout, o.attempt(), network)
	}
	if err := checkList(o.Activities); err != nil {
		return err
	}
	return o.checkURLs()
}

// checkURLs returns an error for a wrong URL, or for one of a guard that is not in
// the list.
func (o *Options) checkURLs() error {
	var known []string
	for _, a := range o.Activities {
		known = append(known, a.Guard)
	}
	for guard, address := range o.URLs {
		if known != nil && !slices.Contains(known, guard) {
			return wrongOption("URLs has %q, which is the guard of no known activity%s", guard, suggestion(guard, known))
		}
		if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return wrongOption("URLs has %q for %s, want a URL that begins with https://", address, guard)
		}
	}
	return nil
}

// attempt returns how long one attempt lasts.
func (o *Options) attempt() time.Duration { return o.DecisionTimeout + network }

func wrongOption(format string, args ...any) error {
	return &Error{Kind: ErrConfiguration, Message: fmt.Sprintf(format, args...)}
}
