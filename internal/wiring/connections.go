package wiring

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/cric-talk/guards/internal/retry"
)

// connectWait is how long a guard tries to make one connection, without the time in a
// freeze.
const connectWait = 10 * time.Second

// throughFreezes returns a copy of client for a guard's requests to its table. Lambda
// freezes a guard's instance after each answer, and the timeouts of a transport go on
// meanwhile: they would end a request whose answer waits in its socket. So the copy has
// none. Each request of a guard ends by its context, which closes a dead connection, too.
// A connection that can't be made ends by the time that the process runs.
//
// The SDK keeps ten idle connections to a host. A guard's function needs one, but an app that
// decides in its own process can have many decisions under way. So the copy keeps all.
//
// It is not for requests whose context never ends, such as the SDK's for credentials.
func throughFreezes(client aws.HTTPClient) aws.HTTPClient {
	own, ok := client.(*awshttp.BuildableClient)
	if !ok {
		return client
	}
	dialer := own.GetDialer()
	dialer.Timeout = 0
	type dial = func(ctx context.Context, network, address string) (net.Conn, error)
	awake := func(dial dial) dial {
		return func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, stop := retry.Awake(ctx, connectWait)
			defer stop()
			return dial(ctx, network, address)
		}
	}
	t := own.WithReadTimeout(0).GetTransport()
	t.ResponseHeaderTimeout = 0
	t.MaxIdleConnsPerHost = t.MaxIdleConns
	t.DialContext = awake(dialer.DialContext)
	t.DialTLSContext = awake((&tls.Dialer{NetDialer: dialer, Config: t.TLSClientConfig}).DialContext)
	// The SDK adds no timeouts to a client of another type, and the store can copy this one.
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
